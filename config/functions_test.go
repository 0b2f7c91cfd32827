package config

import (
	"os"
	"path/filepath"
	"testing"
)

// Expressions and their values as JSON.
func TestFunctions(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{
		"note.txt": "one\r\ntwo\r\n", "greet.tmpl": "hello %{ for n in names }${upper(n)} %{ endfor }", "sub/x.txt": "x",
	})
	for _, tt := range []struct{ expression, want string }{
		{`length("häuser")`, `6`},
		{`length(["a", "b"])`, `2`},
		{`length({ a = 1 })`, `1`},
		{`replace("a.b", ".", "-")`, `"a-b"`},
		{`replace("a12b", "/[0-9]+/", "-")`, `"a-b"`},
		{`startswith("abc", "ab")`, `true`},
		{`endswith("abc", "ab")`, `false`},
		{`strcontains("abc", "b")`, `true`},
		{`alltrue([])`, `true`},
		{`alltrue([true, false])`, `false`},
		{`anytrue([])`, `false`},
		{`anytrue([false, true])`, `true`},
		{`sum([1, 2.5])`, `3.5`},
		{`try(tonumber("x"), "none")`, `"none"`},
		{`can(tonumber("x"))`, `false`},
		{`merge({ a = 1 }, { b = 2 })`, `{"a":1,"b":2}`},
		{`lookup({ a = "1" }, "b", "none")`, `"none"`},
		{`join(",", sort(toset(["b", "a"])))`, `"a,b"`},
		{`[for s in split(",", "a,b") : format("%s-%03d", s, 7)]`, `["a-007","b-007"]`},
		{`coalesce(null, "x")`, `"x"`},
		{`regex("[a-z]+", "123abc")`, `"abc"`},
		{`jsondecode("{\"a\":[1,null]}")`, `{"a":[1,null]}`},
		{`timeadd("2026-01-01T00:00:00Z", "1h")`, `"2026-01-01T01:00:00Z"`},
		{`file("note.txt")`, `"one\ntwo\n"`},
		{`file("sub/x.txt")`, `"x"`},
		{`fileexists("note.txt")`, `true`},
		{`fileexists("none.txt")`, `false`},
		{`fileexists("sub")`, `false`},
		{`templatefile("greet.tmpl", { names = ["a", "b"] })`, `"hello A B "`},
	} {
		file := filepath.Join(dir, "main.hcl")
		if err := os.WriteFile(file, []byte("variable \"v\" { default = null }\ntask \"a\" {\n description = jsonencode("+tt.expression+")\n handler \"shell\" { command = \"true\" }\n}\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		c, diags := Load(file, testOptions())
		if diags != nil {
			t.Errorf("%s: %s", tt.expression, tell(diags))
			continue
		}
		if got := c.Definitions[0].Task.Description; got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.expression, got, tt.want)
		}
	}
}

// File functions stay inside the configuration's folder.
func TestFilesStayInside(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{
		"secret.txt": "secret", "conf/ok.txt": "ok", "conf/bad.tmpl": "${nothing}", "conf/open.tmpl": "%{ if true }", "conf/one.tmpl": "${n}",
		"conf/latin.txt": "\xe9", "conf/self.tmpl": "${templatefile(\"self.tmpl\", {})}",
	})
	conf := filepath.Join(dir, "conf")
	for name, target := range map[string]string{"link.txt": "../secret.txt", "absolute.txt": filepath.Join(dir, "secret.txt"), "up": ".."} {
		if err := os.Symlink(target, filepath.Join(conf, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct{ expression, want string }{
		{`file("../secret.txt")`, "../secret.txt is not inside the configuration's folder"},
		{`file("` + dir + `/secret.txt")`, "not inside"},
		{`file("x/../../secret.txt")`, "not inside"},
		{`file("link.txt")`, "escapes"},
		{`file("absolute.txt")`, "escapes"},
		{`file("up/secret.txt")`, "escapes"},
		{`file("none.txt")`, "none.txt: no such file or directory"},
		{`file(".")`, "no regular file"},
		{`file("")`, "not inside"},
		{`file("latin.txt")`, "not UTF-8"},
		{`fileexists("../secret.txt")`, "not inside"},
		{`templatefile("../secret.txt", {})`, "not inside"},
		{`templatefile("bad.tmpl", {})`, "nothing"},
		{`templatefile("open.tmpl", {})`, "open.tmpl"},
		{`templatefile("ok.txt", ["a"])`, "a map of names"},
		{`templatefile("one.tmpl", { n = [1] })`, "a single value"},
		{`templatefile("self.tmpl", {})`, "templatefile"},
	} {
		file := filepath.Join(conf, "main.hcl")
		if err := os.WriteFile(file, []byte("task \"a\" {\n description = tostring("+tt.expression+")\n handler \"shell\" { command = \"true\" }\n}\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		c, diags := Load(file, testOptions())
		if c != nil {
			t.Errorf("%s: not refused", tt.expression)
			continue
		}
		wantError(t, c, diags, tt.want, "main.hcl:2")
	}
}
