package shell

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/axctl/ax/plugins"
	"github.com/axctl/ax/plugins/sdk"
)

// files are what an attempt needs on disk, in a folder of its own that only
// its user can read.
type files struct {
	dir    string
	output *os.File // $AX_OUTPUT; kept open, so that what is read is this file
	stdin  *os.File
	script string // path, when there is one
}

// newFiles makes them. The folder stays the executor's, so that another user
// cannot put something else in the files' place.
func newFiles(in body, who user) (f *files, err error) {
	dir, err := os.MkdirTemp("", "ax-shell-")
	if err != nil {
		return nil, sdk.Resource(fmt.Errorf("attempt's folder: %w", err))
	}
	f = &files{dir: dir}
	defer func() {
		if err != nil {
			f.close()
			err = sdk.Resource(fmt.Errorf("attempt's files: %w", err))
		}
	}()
	if who.credential != nil {
		if err := os.Chmod(dir, 0o711); err != nil {
			return nil, err
		}
	}
	if f.output, err = f.create("output", "", who); err != nil {
		return nil, err
	}
	if in.Script != "" {
		script, err := f.create("script", in.Script, who)
		if err != nil {
			return nil, err
		}
		f.script = script.Name()
		_ = script.Close()
	}
	if in.Stdin == "" {
		f.stdin, err = os.Open(os.DevNull)
		return f, err
	}
	f.stdin, err = f.create("stdin", in.Stdin, who)
	return f, err
}

// create makes a file with the text and leaves it at its start.
func (f *files) create(name, text string, who user) (*os.File, error) {
	file, err := os.OpenFile(filepath.Join(f.dir, name), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if who.credential != nil {
		err = file.Chown(int(who.credential.Uid), int(who.credential.Gid))
	}
	if err == nil && text != "" {
		if _, err = file.WriteString(text); err == nil {
			_, err = file.Seek(0, io.SeekStart)
		}
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

var outputName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]*$`)

// outputs reads $AX_OUTPUT: one key=value a line, the last one of a key
// stands. What is no such line, as the second line of a value, is an error.
func (f *files) outputs(job sdk.Job) (sdk.Outputs, error) {
	if _, err := f.output.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("outputs: %w", err)
	}
	b, err := io.ReadAll(io.LimitReader(f.output, plugins.MaxOutputsBytes+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("outputs: %w", err)
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

func (f *files) close() {
	for _, file := range []*os.File{f.output, f.stdin} {
		if file != nil {
			_ = file.Close()
		}
	}
	_ = os.RemoveAll(f.dir)
}
