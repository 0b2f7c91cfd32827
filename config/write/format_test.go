package write

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

func TestFormat(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, in, want string }{
		{"empty", "", ""},
		{"blank", "\n\n  \n", ""},
		{"indent and align", "task \"a\" {\ntimeout=\"1s\"\n    kill_after   = \"2s\"\n}", "task \"a\" {\n  timeout    = \"1s\"\n  kill_after = \"2s\"\n}\n"},
		{"line ends", "a = 1\r\nb = 2\r\n", "a = 1\nb = 2\n"},
		{"byte order mark", "\xef\xbb\xbfa=1\n", "a = 1\n"},
		{"empty lines", "\n\na = 1\n\n\n\nb = 2\n\n\n", "a = 1\n\nb = 2\n"},
		{"empty lines about comments", "# one\n\n\n# two\na = 1 # three\n\n\n\nb = 2\n", "# one\n\n# two\na = 1 # three\n\nb = 2\n"},
		{"comment without line end", "# one", "# one\n"},
		{"heredoc stays", "a = <<EOT\n  x  =  1\n\n\n\n  y\nEOT\n", "a = <<EOT\n  x  =  1\n\n\n\n  y\nEOT\n"},
		{"heredoc with line ends of both kinds", "a = <<-EOT\r\n    x\n    y\r\n  EOT\r\n", "a = <<-EOT\n    x\n    y\n  EOT\n"},
		{"heredoc at the end", "a = <<EOT\nx\nEOT", "a = <<EOT\nx\nEOT\n"},
		{"one-line block", "task \"a\" {\nschedule {cron=\"* * * * *\"}\n}\n", "task \"a\" {\n  schedule { cron = \"* * * * *\" }\n}\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, diags := Format([]byte(tt.in), "x.hcl")
			if diags != nil {
				t.Fatal(diags)
			}
			if string(got) != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
			again, _ := Format(got, "x.hcl")
			if !bytes.Equal(again, got) {
				t.Errorf("formatted again it is\n%s", again)
			}
		})
	}
}

func TestFormatRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, in, detail string }{
		{"unclosed block", "task \"a\" {\n", ""},
		{"utf-16", "\xff\xfet\x00a\x00", "UTF-8"},
		{"latin-1", "# caf\xe9\n", "UTF-8"},
		{"nul", "a = \x00\n", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, diags := Format([]byte(tt.in), "x.hcl")
			if got != nil || !diags.HasErrors() {
				t.Fatalf("got %q, %v", got, diags)
			}
			if d := diags[0]; d.Range == nil || d.Range.Filename != "x.hcl" || !strings.Contains(d.Detail, tt.detail) {
				t.Errorf("got %+v", d)
			}
		})
	}
}

// The examples are what people copy, so they stand in canonical layout.
func TestExamplesAreFormatted(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../examples/*.hcl")
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got, diags := Format(text, file); diags != nil || !bytes.Equal(got, text) {
			t.Errorf("%s is not formatted: %v\n%s", file, diags, got)
		}
	}
}

func FuzzFormat(f *testing.F) {
	f.Add([]byte("task \"a\" {\nx=1 # c\n\n\n y = [1,\n2]\n}"))
	f.Add([]byte("a = <<-EOT\n  ${x}\n  EOT\n/* c */ b = \"${\"${1}\"}\"\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		once, diags := Format(text, "x.hcl")
		if diags != nil {
			return
		}
		twice, diags := Format(once, "x.hcl")
		if diags != nil {
			t.Fatalf("%q was formatted to %q, which does not parse: %v", text, once, diags)
		}
		if !bytes.Equal(once, twice) {
			t.Fatalf("not idempotent:\n%q\n%q\n%q", text, once, twice)
		}
		if before, after := words(text), words(once); !slices.Equal(before, after) {
			t.Fatalf("%q means %q, and formatted %q", text, before, after)
		}
	})
}

// words are the tokens of a text without line ends: what layout may not touch.
func words(text []byte) []string {
	text = lineEnds.ReplaceAll(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")), []byte("\n"))
	tokens, _ := hclsyntax.LexConfig(text, "", hcl.InitialPos)
	var out []string
	for _, t := range tokens {
		if word := strings.TrimRight(string(t.Bytes), "\n"); word != "" || t.Type == hclsyntax.TokenStringLit {
			out = append(out, string(t.Bytes[:len(word)]))
		}
	}
	return out
}
