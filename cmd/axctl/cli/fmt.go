package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"

	"github.com/axctl/ax"
	"github.com/axctl/ax/config/write"
)

type fmtArgs struct {
	path      string
	check     bool
	diff      bool
	recursive bool
}

func fmtCommand(c *call) *cobra.Command {
	a := fmtArgs{path: "."}
	cmd := &cobra.Command{
		Use:   "fmt [PATH|-]",
		Short: "Rewrite configuration files in canonical layout",
		Long: "fmt rewrites the .hcl files of a folder (or one file, or stdin to stdout for -)\n" +
			"in canonical layout, and prints the names of those it changed. It ends with 2 when\n" +
			"a file cannot be parsed, and with -check with 3 when a file would change.",
		Args: argumentCount(0, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 {
				a.path = args[0]
			}
			return c.format(a)
		},
	}
	cmd.Flags().BoolVar(&a.check, "check", false, "write nothing; end with 3 when a file would change")
	cmd.Flags().BoolVar(&a.diff, "diff", false, "print what changes")
	cmd.Flags().BoolVar(&a.recursive, "recursive", false, "sub-folders too")
	return cmd
}

func (c *call) format(a fmtArgs) error {
	if a.path == "-" {
		return c.formatStdin(a)
	}
	files, err := hclFiles(c.path(a.path), a.recursive)
	if err != nil {
		return err
	}
	var r fmtResult
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("read file: %w", err)
		}
		out, ds := write.Format(src, file)
		r.faults = append(r.faults, ds...)
		if ds.HasErrors() || bytes.Equal(src, out) {
			continue
		}
		r.changed = append(r.changed, c.short(file))
		if a.diff {
			r.diffs = append(r.diffs, diff.Diff("old/"+c.short(file), src, "new/"+c.short(file), out))
		}
		if !a.check {
			if err := replaceFile(file, out); err != nil {
				return err
			}
		}
	}
	return c.formatEnd(a, r)
}

// formatStdin lays out stdin to stdout.
func (c *call) formatStdin(a fmtArgs) error {
	src, err := io.ReadAll(c.env.Stdin)
	if err != nil {
		return fmt.Errorf("read stdin: %w", err)
	}
	out, ds := write.Format(src, "<stdin>")
	if ds.HasErrors() {
		return withCode(ExitUnparsed, faults(ds))
	}
	switch same := bytes.Equal(src, out); {
	case a.diff && !same:
		_, err = c.env.Stdout.Write(diff.Diff("old/<stdin>", src, "new/<stdin>", out))
	case !a.check && !a.diff:
		_, err = c.env.Stdout.Write(out)
	}
	if err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	if a.check && !bytes.Equal(src, out) {
		return exit(ExitFindings)
	}
	return nil
}

// formatEnd prints what was done and chooses the exit code.
func (c *call) formatEnd(a fmtArgs, r fmtResult) error {
	if err := c.print(r); err != nil {
		return err
	}
	switch {
	case r.faults.HasErrors() && c.globals.json:
		return exit(ExitUnparsed)
	case r.faults.HasErrors():
		return withCode(ExitUnparsed, faults(r.faults))
	case a.check && len(r.changed) > 0:
		return exit(ExitFindings)
	default:
		return nil
	}
}

// hclFiles lists the configuration files of a folder, or the one file given.
// Names that begin with a dot or end in ~ are not read.
func hclFiles(path string, recursive bool) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read path: %w", err)
	}
	switch {
	case info.Mode().IsRegular():
		return []string{path}, nil
	case !info.IsDir():
		return nil, fmt.Errorf("read path: %s is neither a file nor a folder", path)
	}
	var files []string
	err = filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case p == path:
			return nil
		case d.IsDir() && (!recursive || strings.HasPrefix(d.Name(), ".")):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(d.Name(), ".hcl") || strings.HasPrefix(d.Name(), "."):
			return nil
		}
		if info, err := os.Stat(p); err == nil && info.Mode().IsRegular() {
			files = append(files, p)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read folder: %w", err)
	}
	return files, nil
}

// replaceFile writes a file whole or not at all, keeping its mode; a link's
// target is written, not the link.
func replaceFile(path string, text []byte) error {
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return fmt.Errorf("write file: %w", err)
	}
	info, err := os.Stat(target)
	if err != nil {
		return fmt.Errorf("write file: %w", err)
	}
	return writeFile(target, text, info.Mode().Perm())
}

// writeFile writes a file whole or not at all.
func writeFile(path string, text []byte, mode fs.FileMode) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".ax-*")
	if err != nil {
		var at *fs.PathError
		if errors.As(err, &at) {
			err = at.Err // without the name of the temporary file, which is nobody's
		}
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer os.Remove(tmp.Name()) // gone already when all went well
	_, err = tmp.Write(text)
	if err == nil {
		err = tmp.Chmod(mode)
	}
	if err == nil {
		err = tmp.Sync()
	}
	if cerr := tmp.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write file: %w", err)
	}
	return nil
}

type fmtResult struct {
	changed []string
	diffs   [][]byte
	faults  ax.Diagnostics
}

func (r fmtResult) human(s *screen) {
	for i, name := range r.changed {
		s.line("%s", clean(name))
		if r.diffs != nil {
			s.buf.Write(r.diffs[i])
		}
	}
}

func (r fmtResult) json() document {
	return document{"changed": list(r.changed), "diagnostics": list(r.faults)}
}

// list makes an empty list be written as [] and not as null.
func list[T any](items []T) []T {
	if items == nil {
		return []T{}
	}
	return items
}
