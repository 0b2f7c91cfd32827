package shell

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/axctl/ax/plugins"
	"github.com/axctl/ax/plugins/sdk"
)

// workspace has a folder for the files of each user's attempts, which only
// that user can enter. A folder for each attempt would cost as much as the
// attempt's process.
type workspace struct {
	mu   sync.Mutex
	dirs map[uint32]string // by user id
}

// dir returns the user's folder.
func (w *workspace) dir(who user) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if dir, ok := w.dirs[who.uid]; ok {
		return dir, nil
	}
	base := "" // the executor's own temporary folder
	if who.credential != nil {
		base = "/tmp" // others may not be let into that
	}
	dir, err := os.MkdirTemp(base, "ax-shell-")
	if err == nil && who.credential != nil {
		err = os.Chown(dir, int(who.credential.Uid), int(who.credential.Gid))
	}
	if err != nil {
		return "", err
	}
	if w.dirs == nil {
		w.dirs = map[uint32]string{}
	}
	w.dirs[who.uid] = dir
	return dir, nil
}

// close removes the folders.
func (w *workspace) close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var errs []error
	for _, dir := range w.dirs {
		errs = append(errs, os.RemoveAll(dir))
	}
	w.dirs = nil
	return errors.Join(errs...)
}

// files are those of one attempt.
type files struct {
	who    user
	output string // path of $AX_OUTPUT, which the task makes if it wants
	// progress is the path of $AX_PROGRESS, likewise.
	progress string
	script   string // path, when there is one
	stdin    *os.File
}

func newFiles(w *workspace, in body, who user) (f *files, err error) {
	f = &files{who: who}
	defer func() {
		if err != nil {
			f.close()
			err = sdk.Resource(fmt.Errorf("attempt's files: %w", err))
		}
	}()
	dir, err := w.dir(who)
	if err != nil {
		return nil, err
	}
	name := rand.Text()
	f.output = filepath.Join(dir, "output-"+name)
	f.progress = filepath.Join(dir, "progress-"+name)
	if in.Script != "" {
		path := filepath.Join(dir, "script-"+name)
		script, err := f.create(path, in.Script)
		if err != nil {
			return nil, err
		}
		f.script = path
		_ = script.Close()
	}
	if in.Stdin == "" {
		f.stdin, err = os.Open(os.DevNull)
		return f, err
	}
	path := filepath.Join(dir, "stdin-"+name)
	f.stdin, err = f.create(path, in.Stdin)
	_ = os.Remove(path) // open is enough
	return f, err
}

// create makes a file with the text and leaves it at its start.
func (f *files) create(path, text string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if c := f.who.credential; c != nil {
		err = file.Chown(int(c.Uid), int(c.Gid))
	}
	if err == nil {
		_, err = file.WriteString(text)
	}
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close(), os.Remove(path))
	}
	return file, nil
}

var outputName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]*$`)

// outputs reads $AX_OUTPUT: one key=value a line, the last one of a key
// stands. What is no such line, as the second line of a value, is an error.
func (f *files) outputs(job sdk.Job) (sdk.Outputs, error) {
	b, err := f.readOutput()
	switch {
	case err != nil:
		return nil, sdk.Permanent(fmt.Errorf("AX_OUTPUT: %w", err))
	case len(b) > plugins.MaxOutputsBytes:
		why := fmt.Sprintf("more than %d bytes in AX_OUTPUT", plugins.MaxOutputsBytes)
		job.Output.Note("outputs dropped: " + why)
		return sdk.Outputs{plugins.OutputsDropped: why}, nil
	}
	var outputs sdk.Outputs
	for i, line := range strings.Split(string(b), "\n") {
		if line == "" {
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok || !outputName.MatchString(key) {
			return outputs, sdk.Permanent(fmt.Errorf("line %d of AX_OUTPUT is not key=value on one line", i+1))
		}
		if outputs == nil {
			outputs = sdk.Outputs{}
		}
		outputs[key] = strings.ToValidUTF8(value, "\uFFFD")
	}
	return outputs, nil
}

// readOutput reads a little more than may be kept.
func (f *files) readOutput() ([]byte, error) {
	file, err := f.open(f.output)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	return io.ReadAll(io.LimitReader(file, plugins.MaxOutputsBytes+1))
}

func (f *files) close() {
	if f.stdin != nil {
		_ = f.stdin.Close()
	}
	_ = os.Remove(f.output)
	_ = os.Remove(f.progress)
	if f.script != "" {
		_ = os.Remove(f.script)
	}
}
