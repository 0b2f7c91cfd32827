package cli

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/axctl/ax"
)

func testScreen() (*screen, *bytes.Buffer) {
	var b bytes.Buffer
	return &screen{out: &b, short: func(p string) string { return strings.TrimPrefix(p, "/dir/") }}, &b
}

func TestClean(t *testing.T) {
	t.Parallel()
	tests := []struct{ in, want string }{
		{"plain ü 漢字", "plain ü 漢字"},
		{"a\x1b[31mred", `a\u001b[31mred`},
		{"two\nlines\t.", `two\nlines\t.`},
		{"bad \xff byte", `bad \xff byte`},
		{"bell\x07 del\x7f c1\u009b", `bell\u0007 del\u007f c1\u009b`},
		{"turned \u202e", `turned \u202e`},
	}
	for _, tt := range tests {
		if got := clean(tt.in); got != tt.want {
			t.Errorf("clean(%q) = %q, want %q", tt.in, got, tt.want)
		}
	}
}

func TestCleanNeverMovesTheCursor(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		out := clean(string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")))
		if !utf8.ValidString(out) || strings.IndexFunc(out, unsafeRune) >= 0 {
			t.Fatalf("not clean: %q", out)
		}
	})
}

func TestTable(t *testing.T) {
	t.Parallel()
	s, b := testScreen()
	s.table([]string{"A", "LONGER"}, [][]string{{"x", "y"}, {"größer", ""}})
	if err := s.flush(); err != nil {
		t.Fatal(err)
	}
	want := "A       LONGER\nx       y\ngrößer\n"
	if b.String() != want {
		t.Errorf("table is\n%swant\n%s", b, want)
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

func TestAFullDiskIsAnError(t *testing.T) {
	t.Parallel()
	s := &screen{out: fullDisk{}}
	s.line("result")
	if err := s.flush(); exitCode(err) != ExitError {
		t.Errorf("flush = %v", err)
	}
}

func TestDiagnosticInPlainTextAndInABox(t *testing.T) {
	t.Parallel()
	src := []byte("task \"a\" {\n\tretrys = 3\n}\n")
	r := ax.Range{
		Filename: "/dir/main.hcl",
		Start:    ax.Pos{Line: 2, Column: 2, Byte: 12}, End: ax.Pos{Line: 2, Column: 8, Byte: 18},
	}
	d := ax.Diagnostic{Severity: ax.SeverityError, Summary: "Unsupported argument", Detail: "Did you mean \"retry\"?", Range: &r}
	d.Snippet = r.Snippet(src, `task "a"`)
	plain := `Error: Unsupported argument

  on main.hcl line 2, in task "a":
   2:  retrys = 3
       ^^^^^^

Did you mean "retry"?

`
	s, b := testScreen()
	s.diagnostic(d)
	_ = s.flush()
	if b.String() != plain {
		t.Errorf("plain:\n%s\nwant:\n%s", b, plain)
	}
	s, b = testScreen()
	s.utf8 = true
	s.diagnostic(d)
	_ = s.flush()
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if lines[0] != "╷" || lines[len(lines)-1] != "╵" || lines[1] != "│ Error: Unsupported argument" || lines[2] != "│" {
		t.Errorf("box:\n%s", b)
	}
}

// Whatever place a diagnostic names, it can be shown.
func TestMarkStaysOnItsLine(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		code := rapid.String().Draw(t, "code")
		from, to := rapid.IntRange(-5, 60).Draw(t, "from"), rapid.IntRange(-5, 60).Draw(t, "to")
		if strings.Contains(code, "\n") {
			return
		}
		m := mark(code, from, to)
		if n := utf8.RuneCountInString(m); n > utf8.RuneCountInString(showCode(code))+8 {
			t.Fatalf("mark of %q [%d:%d] is %q", code, from, to, m)
		}
	})
}
