package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/axctl/ax"
)

const oneTask = `task "%s" {
  handler "shell" { command = "true" }
}
`

func task(name string) string { return fmt.Sprintf(oneTask, name) }

func TestFolder(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{
		"a.hcl": task("a"), "b.hcl": task("b"), "empty.hcl": "",
		// What editors, sync tools and systems leave about.
		".a.hcl": task("a"), ".a.hcl.swp": "\x00", "a.hcl~": task("a"), "#a.hcl#": task("a"), "._a.hcl": "\x00\x05",
		"a.hcl.bak": task("a"), "a.hcl.orig": task("a"), "night.axtest.hcl": "test {}", "README.md": "#",
		"sub/c.hcl": task("c"), "folder.hcl/d.hcl": task("d"),
	})
	c := mustLoad(t, dir, testOptions())
	var names []string
	for _, d := range c.Definitions {
		names = append(names, d.Name)
	}
	if got := strings.Join(names, " "); got != "a b" {
		t.Errorf("got tasks %s, want a b", got)
	}
	if c.Origin != dir || c.Stack != "default" {
		t.Errorf("got origin %q, stack %q", c.Origin, c.Stack)
	}
	if alone := mustLoad(t, filepath.Join(dir, "b.hcl"), testOptions()); len(alone.Definitions) != 1 {
		t.Errorf("a file by path: got %d tasks, want its own", len(alone.Definitions))
	}
}

func TestCopiedFileNamesBothPlaces(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"jobs.hcl": task("a"), "jobs 2.hcl": "\n" + task("a")})
	c, diags := Load(dir, testOptions())
	wantError(t, c, diags, "Duplicate task", filepath.Join(dir, "jobs 2.hcl")+":2", "jobs.hcl:1:1")
}

func TestUnreadable(t *testing.T) {
	t.Parallel()
	fifo := folder(t, map[string]string{"a.hcl": task("a")})
	if err := syscall.Mkfifo(filepath.Join(fifo, "pipe.hcl"), 0o600); err != nil {
		t.Fatal(err)
	}
	dangling := folder(t, map[string]string{"a.hcl": task("a")})
	if err := os.Symlink("nowhere", filepath.Join(dangling, "link.hcl")); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, path string
		parts      []string
	}{
		{"no such path", filepath.Join(fifo, "nothing"), []string{"no such file or directory", "nothing"}},
		{"fifo", fifo, []string{"pipe.hcl: it is no regular file"}},
		{"dangling link", dangling, []string{"link.hcl: no such file"}},
		{"empty folder", folder(t, nil), []string{"has no *.hcl file"}},
		{"only droppings", folder(t, map[string]string{".a.hcl": task("a"), "x.axtest.hcl": ""}), []string{"has no *.hcl file"}},
		{"blank files", folder(t, map[string]string{"a.hcl": "", "b.hcl": "\xef\xbb\xbf \r\n"}), []string{"Nothing is written in", "use destroy"}},
		{"utf-16", folder(t, map[string]string{"a.hcl": "\xff\xfet\x00a\x00"}), []string{"UTF-16", "UTF-8"}},
		{"utf-16 without a mark", folder(t, map[string]string{"a.hcl": "#\x00\n\x00a\x00"}), []string{"line 1 has a NUL byte"}},
		{"latin-1", folder(t, map[string]string{"a.hcl": "\n# caf\xe9"}), []string{"line 2 is not UTF-8"}},
		{"too large", sparse(t, maxFileBytes+1), []string{"larger than 64 MiB"}},
		{"nested too deeply", folder(t, map[string]string{"a.hcl": "a = " + strings.Repeat("[", 100_000)}), []string{"more than 500 brackets"}},
		{"signs in a row", folder(t, map[string]string{"a.hcl": "a = " + strings.Repeat("! -\n", 1_000_000) + "1"}), []string{"signs in a row"}},
		{"conditionals in a row", folder(t, map[string]string{"a.hcl": "a = (" + strings.Repeat("true ? 1 :\n", 1_000_000) + "1)"}), []string{"conditionals in one bracket"}},
		{"conditionals at the top", folder(t, map[string]string{"a.hcl": "a = " + strings.Repeat("true ? 1 : ", 1_000_000) + "1"}), []string{"conditionals in one bracket"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, diags := Load(tt.path, testOptions())
			wantError(t, c, diags, tt.parts...)
		})
	}
}

func sparse(t *testing.T, size int64) string {
	t.Helper()
	dir := folder(t, map[string]string{"a.hcl": ""})
	if err := os.Truncate(filepath.Join(dir, "a.hcl"), size); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Brackets in strings are no nesting.
func TestBracketsInText(t *testing.T) {
	t.Parallel()
	text := strings.Replace(task("a"), `"true"`, `"`+strings.Repeat("(", 2*maxNesting)+`"`, 1)
	if _, diags := loadText(t, text, testOptions()); diags != nil {
		t.Error(tell(diags))
	}
}

// The order and the names of files mean nothing.
func TestHashOfRenamedFiles(t *testing.T) {
	t.Parallel()
	texts := []string{
		"locals { x = var.y }\n" + task("a"), "variable \"y\" { default = \"v\" }\n", task("b") + task("c"),
		"defaults { timeout = local.x == \"v\" ? \"3m\" : \"4m\" }\n", "ax { stack = \"s\" }\n" + task("d"),
	}
	want := ""
	for round := range 20 {
		files := map[string]string{}
		for i, text := range texts {
			files[fmt.Sprintf("%c%d.hcl", 'a'+(i*7+round*3)%26, i)] = text
		}
		c := mustLoad(t, folder(t, files), testOptions())
		if want == "" {
			want = c.Hash
		}
		if c.Hash != want || c.Definitions[3].Task.Timeout.String() != "3m" {
			t.Fatalf("round %d: hash %s, want %s", round, c.Hash, want)
		}
	}
	other := mustLoad(t, folder(t, map[string]string{"a.hcl": task("a")}), testOptions())
	moved := mustLoad(t, folder(t, map[string]string{"a.hcl": "ax { stack = \"s\" }\n" + task("a")}), testOptions())
	if other.Hash == want || moved.Hash == other.Hash {
		t.Error("other definitions or another stack give the same hash")
	}
}

// One text, as different systems and editors write it, is one configuration,
// and no carriage return reaches a handler.
func TestHashOfLineEnds(t *testing.T) {
	t.Parallel()
	text := "task \"a\" {\n  handler \"shell\" {\n    script = <<-EOT2\n\t\techo one\n\t\t  EOT2 is text here\n\t\techo two\n\t\tEOT2\n" +
		"    env = {\n      A = file(\"a.txt\")\n    }\n  }\n}\n\nlocals {\n  last = <<EOT\nx\nEOT\n}\n"
	crlf := strings.ReplaceAll(text, "\n", "\r\n")
	file := "one\ntwo\n"
	want := ""
	for _, tt := range []struct{ name, text, file string }{
		{"lf", text, file},
		{"crlf", crlf, strings.ReplaceAll(file, "\n", "\r\n")},
		{"crlf twice", strings.ReplaceAll(crlf, "\n", "\r\n"), file},
		{"mixed", strings.Replace(text, "\n", "\r\n", 4), file},
		{"byte order mark", "\xef\xbb\xbf" + crlf, "\xef\xbb\xbf" + file},
		{"no line end at the end", strings.TrimSuffix(text, "\n"), file},
	} {
		dir := folder(t, map[string]string{"a.hcl": tt.text, "a.txt": tt.file})
		c := mustLoad(t, dir, testOptions())
		body := string(c.Definitions[0].Task.Handler.Body)
		if strings.Contains(body, `\r`) {
			t.Errorf("%s: a carriage return in %s", tt.name, body)
		}
		if want == "" {
			want = c.Hash
		}
		if c.Hash != want {
			t.Errorf("%s: another hash; the body is %s", tt.name, body)
		}
	}
}

// A file that ends inside a heredoc's marker line is complete.
func TestHeredocAtTheEnd(t *testing.T) {
	t.Parallel()
	_, diags := loadText(t, task("a")+"locals {\n  x = <<EOT\ny\nEOT\n}", testOptions())
	if diags != nil {
		t.Error(tell(diags))
	}
}

// Faults of all files are told in one go, in the order of the files; names
// that may stand in what could not be read are not called unknown.
func TestAllFaultsAtOnce(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{
		"a.hcl": strings.Replace(task("a"), "handler", "timout = 1\n handler", 1),
		"b.hcl": "variable \"v\" {\n  default = \n}\n",
		"c.hcl": strings.Replace(task("c"), `"true"`, `"${var.v} ${var.w}"`, 1),
		"d.hcl": strings.Replace(task("d"), `"true"`, `5`, 1),
	})
	c, diags := Load(dir, testOptions())
	var got []string
	for _, d := range diags {
		got = append(got, fmt.Sprintf("%s %s", filepath.Base(d.Range.Filename), d.Summary))
	}
	want := "a.hcl Unknown attribute, b.hcl Invalid expression, d.hcl Wrong type"
	if c != nil || strings.Join(got, ", ") != want {
		t.Errorf("got %s, want %s", strings.Join(got, ", "), want)
	}
}

func TestDiagnosticCarriesItsPlace(t *testing.T) {
	t.Parallel()
	text := "task \"a\" {\n  for_each = toset([\"x\"])\n  handler \"shell\" {\n    command = 5\n  }\n}\n"
	_, diags := loadText(t, text, testOptions())
	if len(diags) != 1 {
		t.Fatal(tell(diags))
	}
	d := diags[0]
	if d.Address != `task.a["x"]` || d.Range.Start.Line != 4 || d.Range.Start.Column != 15 || d.Range.End.Column != 16 {
		t.Errorf("got %+v at %+v", d, d.Range)
	}
	s := d.Snippet
	if s.Context != `task "a", handler "shell"` || s.Code != "    command = 5" || s.StartLine != 4 || s.Code[s.HighlightStartOffset:s.HighlightEndOffset] != "5" {
		t.Errorf("got %+v", s)
	}
}

// The characters a schedule's fault is about, also after wide ones.
func TestScheduleFaultColumns(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ line, marked string }{
		{`schedule { cron = "0 25 * * *" }`, "25"},
		{`schedule { cron = "  0   25 * * *" }`, "25"},
		{`schedule { cron = "0 4 * ${"*"} 9" }`, `"0 4 * ${"*"} 9"`},
		{`schedule { cron = "0\t25 * * *" }`, `"0\t25 * * *"`},
		{`schedule { at = ["2030-01-01T00:00", "2030-13-01T00:00"] }`, `2030-13-01T00:00`},
	} {
		_, diags := loadText(t, "task \"a\" {\n"+tt.line+"\nhandler \"shell\" { command = \"true\" }\n}\n", testOptions())
		if len(diags) != 1 {
			t.Fatalf("%s: %s", tt.line, tell(diags))
		}
		s := diags[0].Snippet
		if got := s.Code[s.HighlightStartOffset:s.HighlightEndOffset]; !strings.Contains(got, tt.marked) || len(got) > len(tt.marked)+2 {
			t.Errorf("%s: marked %q, want %q", tt.line, got, tt.marked)
		}
	}
}

func TestStrict(t *testing.T) {
	t.Parallel()
	text := "task \"a\" {\nschedule { cron = \"*/7 * * * *\" }\nhandler \"shell\" { command = \"true\" }\n}\n"
	c, diags := loadText(t, text, testOptions())
	if c == nil || len(diags) != 1 || diags.HasErrors() {
		t.Fatalf("want a warning, got %s", tell(diags))
	}
	o := testOptions()
	o.Strict = true
	c, diags = loadText(t, text, o)
	wantError(t, c, diags, "Step 7")
}

func TestNoSchemas(t *testing.T) {
	t.Parallel()
	c, diags := loadText(t, task("a"), Options{})
	if c == nil || len(diags) != 1 || diags[0].Range.Start.Line != 2 || !strings.Contains(tell(diags), `warning: Handler body unchecked: Nothing here knows handler "shell"`) {
		t.Fatalf("want a warning, got %s", tell(diags))
	}
	c, diags = loadText(t, task("a"), Options{Strict: true})
	wantError(t, c, diags, "Handler body unchecked")
}

// A body that nothing here knows the schema of is taken as it is written: values
// of any type, and no blocks.
func TestUncheckedBody(t *testing.T) {
	t.Parallel()
	c, diags := loadText(t, `task "a" {
  handler "daily" {
    day  = "2026-11-30"
    tree = { list = [1, null, true], text = "x" }
    none = null
  }
}`, testOptions())
	if c == nil || len(diags) != 1 {
		t.Fatalf("want a warning, got %s", tell(diags))
	}
	if got := string(c.Definitions[0].Task.Handler.Body); got != `{"day":"2026-11-30","tree":{"list":[1,null,true],"text":"x"}}` {
		t.Errorf("body %s", got)
	}
	c, diags = loadText(t, "task \"a\" {\n  handler \"daily\" {\n    inner {}\n  }\n}", testOptions())
	if c != nil || len(diags) != 2 || !strings.Contains(tell(diags), `no block "inner"`) {
		t.Errorf("a block in it: %s", tell(diags))
	}
	// What is declared may bring schemas of its own.
	o := testOptions()
	o.Declared = func(declared []ax.Definition) ([]string, ax.Diagnostics) {
		if len(declared) != 1 || declared[0].Name != "report" {
			t.Errorf("declared %v", declared)
		}
		return []string{"daily"}, ax.Diagnostics{{Severity: ax.SeverityWarning, Summary: "S", Range: &declared[0].Source}}
	}
	c, diags = loadText(t, "plugin \"report\" {}\ntask \"a\" {\n  handler \"dayly\" {}\n}\n", o)
	if c != nil || len(diags) != 2 || !strings.Contains(tell(diags), `Did you mean "daily"?`) || diags[0].Snippet == nil {
		t.Errorf("got %s", tell(diags))
	}
}

// Many files on several workers are one configuration.
func TestManyFiles(t *testing.T) {
	t.Parallel()
	files := map[string]string{"v.hcl": "variable \"v\" { default = \"x\" }\n"}
	for i := range 50 {
		files[fmt.Sprintf("f%02d.hcl", i)] = strings.ReplaceAll(task(fmt.Sprintf("t%02d", i)), `"true"`, `var.v`)
	}
	c := mustLoad(t, folder(t, files), testOptions())
	for i, d := range c.Definitions {
		if want := fmt.Sprintf("t%02d", i); d.Name != want {
			t.Fatalf("definition %d is %s, want %s", i, d.Name, want)
		}
	}
	if len(c.Definitions) != 50 {
		t.Errorf("got %d definitions", len(c.Definitions))
	}
}

// Inserting a key before others touches no other task.
func TestForEachIdentity(t *testing.T) {
	t.Parallel()
	load := func(keys string) map[string]string {
		text := "task \"t\" {\n for_each = toset(" + keys + ")\n handler \"shell\" { command = each.key }\n}\n"
		c, diags := loadText(t, text, testOptions())
		if diags != nil {
			t.Fatal(tell(diags))
		}
		hashes := map[string]string{}
		for _, d := range c.Definitions {
			_, hashes[d.Address()] = d.Canonical()
		}
		return hashes
	}
	before, after := load(`["c", "a"]`), load(`["a", "b", "c"]`)
	for address, hash := range before {
		if after[address] != hash {
			t.Errorf("%s changed", address)
		}
	}
	if len(after) != 3 || after[`task.t["b"]`] == "" {
		t.Errorf("got %v", after)
	}
}

// The largest for_each that is allowed, and one more.
func TestForEachLimit(t *testing.T) {
	t.Parallel()
	text := "task \"t\" {\n for_each = toset(split(\",\", file(\"keys\")))\n handler \"shell\" { command = each.key }\n}\n"
	keys := make([]string, maxKeys+1)
	for i := range keys {
		keys[i] = fmt.Sprint(i)
	}
	c, diags := Load(folder(t, map[string]string{"a.hcl": text, "keys": strings.Join(keys, ",")}), testOptions())
	wantError(t, c, diags, "for_each makes 10001 tasks; at most 10000 are allowed")
	c = mustLoad(t, folder(t, map[string]string{"a.hcl": text, "keys": strings.Join(keys[1:], ",")}), testOptions())
	if len(c.Definitions) != maxKeys {
		t.Errorf("got %d definitions", len(c.Definitions))
	}
}
