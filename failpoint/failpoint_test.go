package failpoint_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/axctl/ax/failpoint"
)

// build builds a program of the module and returns its path.
func build(t *testing.T, pkg, tags string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), filepath.Base(pkg))
	cmd := exec.CommandContext(t.Context(), "go", "build", "-tags", tags, "-o", out, pkg)
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", pkg, err, text)
	}
	return out
}

// What users get has neither the variable nor the name of any point in it; the
// build of the drills has all of both.
func TestReleaseBuildsHaveNone(t *testing.T) {
	t.Parallel()
	words := []string{failpoint.Env, "axctl/ax/failpoint.Hit"}
	for _, p := range failpoint.Points() {
		words = append(words, string(p))
	}
	for _, tt := range []struct {
		pkg  string
		tags string
		has  bool
	}{
		{"../cmd/axd", "", false},
		{"../cmd/axctl", "", false},
		{"../cmd/axd", "failpoint", true},
	} {
		program, err := os.ReadFile(build(t, tt.pkg, tt.tags))
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range words {
			if has := bytes.Contains(program, []byte(w)); has != tt.has {
				t.Errorf("%s, tags %q, has %q in it: %v", tt.pkg, tt.tags, w, has)
			}
		}
	}
}

// Each point is listed, and is at one place of the program.
func TestEachPointIsSomewhere(t *testing.T) {
	t.Parallel()
	names, hits := constants(t), map[string]int{}
	if len(names) != len(failpoint.Points()) {
		t.Errorf("%d constants, %d points", len(names), len(failpoint.Points()))
	}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && (d.Name() == "testdata" || d.Name() == ".git") {
			return cmpOr(err, fs.SkipDir)
		}
		if filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) != 1 || !isSelector(call.Fun, "Hit") {
				return true
			}
			if s, ok := call.Args[0].(*ast.SelectorExpr); ok && isSelector(s, s.Sel.Name) {
				hits[s.Sel.Name]++
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if hits[name] != 1 {
			t.Errorf("%s is hit at %d places of the program, want 1", name, hits[name])
		}
	}
}

func cmpOr(err, other error) error {
	if err != nil {
		return err
	}
	return other
}

// isSelector reports whether e is failpoint.name.
func isSelector(e ast.Expr, name string) bool {
	s, ok := e.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != name {
		return false
	}
	x, ok := s.X.(*ast.Ident)
	return ok && x.Name == "failpoint"
}

// constants returns the names of the constants that are points.
func constants(t *testing.T) (names []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "failpoint.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok {
			if typ, ok := v.Type.(*ast.Ident); ok && typ.Name == "Point" {
				names = append(names, v.Names[0].Name)
			}
		}
		return true
	})
	return names
}

func TestHit(t *testing.T) {
	t.Parallel()
	program := build(t, "./testdata/hit", "failpoint")
	run := func(value string) (*exec.Cmd, *bytes.Buffer, *bytes.Buffer) {
		cmd := exec.CommandContext(t.Context(), program)
		cmd.Env = append(os.Environ(), failpoint.Env+"="+value)
		var out, complaint bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &complaint
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd, &out, &complaint
	}
	for value, printed := range map[string]string{"job.send": "", "job.send=3": "1\n2\n"} {
		cmd, out, complaint := run(value)
		_ = cmd.Wait()
		if s := cmd.ProcessState.Sys().(syscall.WaitStatus); !s.Signaled() || s.Signal() != syscall.SIGKILL || out.String() != printed {
			t.Errorf("%s: %v, printed %q, %s", value, cmd.ProcessState, out, complaint)
		}
	}
	for _, value := range []string{"", "job.send=4", "claim.begin"} {
		if cmd, out, complaint := run(value); cmd.Wait() != nil || out.String() != "1\n2\n3\n" {
			t.Errorf("%q: %v, printed %q, %s", value, cmd.ProcessState, out, complaint)
		}
	}
	for _, value := range []string{"job.sand", "job.send=0", "job.send=x", "job.send,wait"} {
		if cmd, _, complaint := run(value); cmd.Wait() == nil || !strings.Contains(complaint.String(), failpoint.Env) {
			t.Errorf("%q is accepted: %s", value, complaint)
		}
	}
	cmd, out, _ := run("job.send=2,stop")
	var s syscall.WaitStatus
	if _, err := syscall.Wait4(cmd.Process.Pid, &s, syscall.WUNTRACED, nil); err != nil || !s.Stopped() {
		t.Fatalf("it does not stop: %v, %v", s, err)
	}
	if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	if err := cmd.Wait(); err != nil || out.String() != "1\n2\n3\n" {
		t.Errorf("after it was stopped: %v, printed %q", err, out)
	}
}
