package host

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// ownProgram is the running program, whatever has become of its file.
const ownProgram = "/proc/self/exe"

// programs knows the sha256 of program files. It is safe for concurrent use.
type programs struct {
	mu    sync.Mutex // guards known
	known map[string]hashed
}

type hashed struct {
	info os.FileInfo
	sum  string
}

// sum returns the sha256 of a file in hexadecimal. A file that looks as it did
// is not read again.
func (p *programs) sum(path string) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if h, ok := p.known[path]; ok && same(h.info, info) {
		return h.sum, nil
	}
	hash := sha256.New()
	if _, err := io.Copy(hash, f); err != nil {
		return "", err
	}
	sum := hex.EncodeToString(hash.Sum(nil))
	if p.known == nil {
		p.known = map[string]hashed{}
	}
	// A file that was changed just now may be changed again in the same tick of
	// its clock.
	if time.Since(info.ModTime()) > time.Second {
		p.known[path] = hashed{info, sum}
	}
	return sum, nil
}

func same(a, b os.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// program returns what to start now and the sha256 of its file, or why that must
// not be started.
func (x *executor) program() (cmd Command, sum string, err error) {
	x.host.mu.Lock()
	cmd = x.cmd
	x.host.mu.Unlock()
	path := cmd.Path
	if cmd.Own {
		path = ownProgram
	}
	sum, err = x.host.programs.sum(path)
	switch {
	case err != nil:
		return cmd, "", fmt.Errorf("read program: %w", err)
	case cmd.SHA256 != "" && cmd.SHA256 != sum:
		return cmd, sum, fmt.Errorf("%w: %s has sha256 %s, its plugin block says %s", errPinned, cmd.Path, sum, cmd.SHA256)
	default:
		return cmd, sum, nil
	}
}

// setup tells two ways to start one program apart: by arguments and environment.
func (c Command) setup() string {
	h := sha256.New()
	for _, list := range [][]string{c.Args, c.Env} {
		_, _ = fmt.Fprintf(h, "%q\n", list)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// is reports whether a process is what would be started now.
func (r record) is(cmd Command, sum string) bool {
	return r.SHA256 == sum && (r.Setup == "" || r.Setup == cmd.setup())
}

// errPinned says that a program is not the one it should be.
var errPinned = errors.New("program is not started")
