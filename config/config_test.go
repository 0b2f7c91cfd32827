package config

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/axctl/ax"
	"github.com/axctl/ax/plugins"
)

var update = flag.Bool("update", false, "write the golden files of testdata/valid")

// testSchemas has a handler like shell, one like http, and one with an
// attribute of every type.
func testSchemas() []plugins.Schema {
	types := func(t ...plugins.Type) []plugins.Type { return t }
	low, high := 0.0, 255.0
	return []plugins.Schema{
		{
			Handler: "shell",
			Attributes: []plugins.Attribute{
				{Name: "command", Types: types(plugins.String, plugins.StringList), Optional: true},
				{Name: "script", Types: types(plugins.String), Optional: true},
				{Name: "interpreter", Types: types(plugins.String), Optional: true},
				{Name: "env", Types: types(plugins.StringMap), Optional: true},
				{Name: "ok_codes", Types: types(plugins.NumberList), Optional: true, Default: json.RawMessage(`[ 0 ]`), Format: plugins.Integer, Min: &low, Max: &high},
				{Name: "dir", Types: types(plugins.String), Optional: true, Format: plugins.AbsolutePath},
			},
			OneOf: [][]string{{"command", "script"}},
			Needs: map[string][]string{"interpreter": {"script"}},
		},
		{
			Handler: "http",
			Attributes: []plugins.Attribute{
				{Name: "url", Types: types(plugins.String), Format: plugins.HTTPURL, Doc: "Where to."},
				{Name: "headers", Types: types(plugins.StringMap), Optional: true, Format: plugins.HTTPHeaders},
				{Name: "method", Types: types(plugins.String), Default: json.RawMessage(`"GET"`), Enum: []string{"GET", "POST"}},
				{Name: "json", Types: types(plugins.Any), Optional: true},
				{Name: "body", Types: types(plugins.String), Optional: true},
			},
			Conflicts: [][]string{{"body", "json"}},
		},
		{
			Handler: "types",
			Attributes: []plugins.Attribute{
				{Name: "text", Types: types(plugins.String), Optional: true},
				{Name: "count", Types: types(plugins.Number), Optional: true},
				{Name: "flag", Types: types(plugins.Bool), Optional: true},
				{Name: "wait", Types: types(plugins.Duration), Optional: true},
				{Name: "names", Types: types(plugins.StringList), Optional: true},
				{Name: "codes", Types: types(plugins.NumberList), Optional: true},
				{Name: "headers", Types: types(plugins.StringMap), Optional: true},
				{Name: "tree", Types: types(plugins.Any), Optional: true},
				{Name: "atleast", Types: types(plugins.Number), Optional: true, Min: &low},
				{Name: "atmost", Types: types(plugins.Number, plugins.Bool), Optional: true, Max: &high},
				{Name: "paths", Types: types(plugins.StringList), Optional: true, Format: plugins.AbsolutePath},
				{Name: "later", Types: types(plugins.String), Optional: true, Format: "of a later release"},
			},
		},
	}
}

func testOptions() Options {
	o := Options{}
	for _, s := range testSchemas() {
		o.HandlerNames = append(o.HandlerNames, s.Handler)
	}
	o.Schemas = func(handler string) (plugins.Schema, bool) {
		i := slices.Index(o.HandlerNames, handler)
		if i < 0 {
			return plugins.Schema{}, false
		}
		return testSchemas()[i], true
	}
	return o
}

// folder writes files into a new folder.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// mustLoad loads path and wants no errors.
func mustLoad(t *testing.T, path string, o Options) *ax.Configuration {
	t.Helper()
	c, diags := Load(path, o)
	if diags.HasErrors() {
		t.Fatalf("load: %s", tell(diags))
	}
	return c
}

// loadText loads one file with this text.
func loadText(t *testing.T, text string, o Options) (*ax.Configuration, ax.Diagnostics) {
	t.Helper()
	return Load(folder(t, map[string]string{"main.hcl": text}), o)
}

// wantError wants exactly one error, with all the parts in what it says.
func wantError(t *testing.T, c *ax.Configuration, diags ax.Diagnostics, parts ...string) {
	t.Helper()
	if c != nil || len(diags) != 1 || diags[0].Severity != ax.SeverityError {
		t.Fatalf("want one error, got %v and %s", c, tell(diags))
	}
	for _, part := range parts {
		if !strings.Contains(tell(diags), part) {
			t.Errorf("want %q in %s", part, tell(diags))
		}
	}
}

func tell(diags ax.Diagnostics) string {
	var b strings.Builder
	for _, d := range diags {
		at := ""
		if d.Range != nil {
			at = fmt.Sprintf("%s:%d:%d ", filepath.Base(d.Range.Filename), d.Range.Start.Line, d.Range.Start.Column)
		}
		fmt.Fprintf(&b, "\n%s%s: %s: %s", at, d.Severity, d.Summary, d.Detail)
	}
	return b.String()
}

// Each file of testdata/valid loads, and means what its golden file says.
func TestValid(t *testing.T) {
	t.Parallel()
	for _, file := range testFiles(t, "valid") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			c, diags := Load(file, testOptions())
			if len(diags) > 0 {
				t.Fatalf("load: %s", tell(diags))
			}
			var b strings.Builder
			fmt.Fprintf(&b, "stack %s\n", c.Stack)
			for _, d := range c.Definitions {
				body, _ := d.Canonical()
				fmt.Fprintf(&b, "\n%s line %d\n%s\n", d.Address(), d.Source.Start.Line, indented(t, body))
			}
			golden := strings.TrimSuffix(file, ".hcl") + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatalf("%v; go test -update writes it", err)
			}
			if b.String() != string(want) {
				t.Errorf("got\n%s\nwant\n%s", b.String(), want)
			}
		})
	}
}

func indented(t *testing.T, body []byte) string {
	t.Helper()
	var b bytes.Buffer
	if err := json.Indent(&b, body, "", "  "); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func testFiles(t *testing.T, kind string) []string {
	t.Helper()
	files := testFilesOf(kind)
	if len(files) == 0 {
		t.Fatalf("no files in testdata/%s", kind)
	}
	return files
}

func testFilesOf(kind string) []string {
	files, _ := filepath.Glob("testdata/" + kind + "/*.hcl") // the pattern is good
	return files
}

// expectation is "# ERROR: text" at the end of a line: a diagnostic that
// starts on that line says text in its summary or detail. Several are split
// by "|". With +1 it is about the line below, for lines that take no comment.
var expectation = regexp.MustCompile(`# (ERROR|WARNING)(\+1)?: (.*)$`)

// Each file of testdata/invalid gives exactly the diagnostics that its lines
// expect, all at once.
func TestInvalid(t *testing.T) {
	t.Parallel()
	for _, file := range testFiles(t, "invalid") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			want := map[int][]string{}
			for i, line := range strings.Split(string(text), "\n") {
				if m := expectation.FindStringSubmatch(line); m != nil {
					line := i + 1 + len(m[2])/2
					for _, part := range strings.Split(m[3], "|") {
						want[line] = append(want[line], strings.ToLower(m[1])+": "+strings.TrimSpace(part))
					}
				}
			}
			_, diags := Load(file, testOptions())
			checkExpected(t, want, diags)
		})
	}
}

func checkExpected(t *testing.T, want map[int][]string, diags ax.Diagnostics) {
	t.Helper()
	for _, d := range diags {
		if d.Range == nil {
			t.Errorf("no place: %s", tell(ax.Diagnostics{d}))
			continue
		}
		if d.Snippet == nil || d.Snippet.HighlightEndOffset > len(d.Snippet.Code) || d.Snippet.HighlightStartOffset > d.Snippet.HighlightEndOffset {
			t.Errorf("no good snippet: %+v of %s", d.Snippet, tell(ax.Diagnostics{d}))
		}
		line := d.Range.Start.Line
		i := slices.IndexFunc(want[line], func(w string) bool {
			severity, text, _ := strings.Cut(w, ": ")
			return severity == string(d.Severity) && strings.Contains(d.Summary+": "+d.Detail, text)
		})
		if i < 0 {
			t.Errorf("not expected: %s", tell(ax.Diagnostics{d}))
			continue
		}
		want[line] = slices.Delete(want[line], i, i+1)
	}
	for _, line := range slices.Sorted(maps.Keys(want)) {
		for _, w := range want[line] {
			t.Errorf("line %d: missing %s", line, w)
		}
	}
}
