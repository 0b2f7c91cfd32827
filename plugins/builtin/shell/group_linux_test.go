package shell

import (
	"os"
	"syscall"
	"testing"

	"github.com/axctl/ax/plugins"
	"golang.org/x/sys/unix"
)

// What the machine lacks for the moment is a resource; what will never start is
// permanent.
func TestClassOfAFailedStart(t *testing.T) {
	t.Parallel()
	for errno, want := range map[syscall.Errno]plugins.Class{
		unix.EAGAIN: plugins.Resource, unix.ENOMEM: plugins.Resource,
		unix.EMFILE: plugins.Resource, unix.ENFILE: plugins.Resource, unix.EBADF: plugins.Resource,
		unix.ETXTBSY: plugins.Transient,
		unix.E2BIG:   plugins.Permanent, unix.ENOEXEC: plugins.Permanent, unix.EACCES: plugins.Permanent,
	} {
		if err := startError("x", &os.PathError{Op: "fork/exec", Path: "x", Err: errno}); plugins.Classify(err) != want {
			t.Errorf("%v: %v", errno, err)
		}
	}
}
