package config

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

const showVariable = `
task "show" {
  description = jsonencode(var.v)
  handler "shell" { command = "true" }
}
`

// Values beat one another in Terraform's order.
func TestVariablePrecedence(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{
		"main.hcl":      "variable \"v\" {\n type = string\n default = \"default\"\n}\n" + showVariable,
		"a.auto.axvars": "v = \"auto-a\"\n", "b.auto.axvars": "v = \"auto-b\"\n", ".c.auto.axvars": "v = \"hidden\"\n",
		"one.axvars": "v = \"one\"\n", "two.axvars": "v = \"two\"\n",
	})
	file := func(name string) string { return filepath.Join(dir, name) }
	for _, tt := range []struct {
		want, path string
		o          Options
	}{
		{"default", file("main.hcl"), Options{}},
		{"env", file("main.hcl"), Options{Env: []string{"PATH=/", "AX_VAR_v=env", "AX_VAR_other=x", "AX_VAR_="}}},
		{"auto-b", dir, Options{Env: []string{"AX_VAR_v=env"}}},
		{"two", dir, Options{VarFiles: []string{file("one.axvars"), file("two.axvars")}}},
		{"one", dir, Options{VarFiles: []string{file("two.axvars"), file("one.axvars")}}},
		{"var", dir, Options{VarFiles: []string{file("two.axvars")}, Vars: map[string]string{"v": "var"}}},
	} {
		o := testOptions()
		o.Env, o.VarFiles, o.Vars = tt.o.Env, tt.o.VarFiles, tt.o.Vars
		c := mustLoad(t, tt.path, o)
		if got := c.Definitions[0].Task.Description; got != `"`+tt.want+`"` {
			t.Errorf("got %s, want %s", got, tt.want)
		}
	}
}

// What text a value is read from depends on the variable's type.
func TestVariableText(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ declared, text, want string }{
		{`type = string`, `3`, `"3"`},
		{`type = string`, `["a"]`, `"[\"a\"]"`},
		{`type = string`, "a\r\nb", `"a\nb"`},
		{`type = number`, `3`, `3`},
		{`type = bool`, `true`, `true`},
		{`type = any`, `[1]`, `[1]`},
		{`type = list(string)`, `["a", "b"]`, `["a","b"]`},
		{`type = map(number)`, `{ a = 1 }`, `{"a":1}`},
		{`type = object({ a = number, b = optional(string, "x") })`, `{ a = 1 }`, `{"a":1,"b":"x"}`},
		{`default = "x"`, `3`, `"3"`},
		{`default = 1`, `3`, `3`},
		{`default = ["a"]`, `["b", "c"]`, `["b","c"]`},
		{`default = { a = 1 }`, `{ b = [2] }`, `{"b":[2]}`},
		{"type = list(string)\n default = null", `null`, `null`},
		{"type = string\n default = \"d\"\n nullable = false", `x`, `"x"`},
	} {
		o := testOptions()
		o.Vars = map[string]string{"v": tt.text}
		c, diags := loadText(t, "variable \"v\" {\n "+tt.declared+"\n}\n"+showVariable, o)
		if diags != nil {
			t.Errorf("%s, %s: %s", tt.declared, tt.text, tell(diags))
			continue
		}
		if got := c.Definitions[0].Task.Description; got != tt.want {
			t.Errorf("%s, %s: got %s, want %s", tt.declared, tt.text, got, tt.want)
		}
	}
}

func TestVariableRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		declared, text string
		parts          []string
	}{
		{`type = number`, `three`, []string{"The value from -var does not fit the type", "a number is required", "main.hcl:1:1"}},
		{`type = list(string)`, `a, b`, []string{"Not an expression"}},
		{`type = list(string)`, `[upper("x")]`, []string{"Not an expression"}},
		{"type = list(string)\n nullable = false", `null`, []string{"not nullable"}},
		{"type = string\n validation {\n  condition = var.v == \"x\"\n  error_message = \"Not x.\"\n }", `y`, []string{"Not x.", "main.hcl:4"}},
	} {
		o := testOptions()
		o.Vars = map[string]string{"v": tt.text}
		c, diags := loadText(t, "variable \"v\" {\n "+tt.declared+"\n}\n"+showVariable, o)
		wantError(t, c, diags, tt.parts...)
	}
}

func TestVariableFileRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, text string
		parts      []string
	}{
		{"block", "v = 1\nx {}\n", []string{"x.axvars:2:1", "NAME = VALUE"}},
		{"reference", "v = var.w\n", []string{"x.axvars:1:5", "cannot refer to anything"}},
		{"function", "v = upper(\"x\")\n", []string{"x.axvars:1:5", "Functions may not be called here"}},
		{"syntax", "v = \n", []string{"x.axvars:1:5", "Invalid expression"}},
		{"type", "v = [1]\n", []string{"x.axvars:1:5", "does not fit the type"}},
		{"utf-16", "\xff\xfe", []string{"x.axvars", "UTF-16"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := folder(t, map[string]string{"main.hcl": "variable \"v\" {\n type = string\n default = \"\"\n}\n" + showVariable, "x.axvars": tt.text})
			o := testOptions()
			o.VarFiles = []string{filepath.Join(dir, "x.axvars")}
			c, diags := Load(dir, o)
			wantError(t, c, diags, tt.parts...)
		})
	}
}

func TestUndeclaredVariables(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"main.hcl": "variable \"version\" { default = \"\" }\n" + task("a"), "x.axvars": "verson = 1\n"})
	o := testOptions()
	o.Vars = map[string]string{"vresion": "1"}
	c, diags := Load(dir, o)
	wantError(t, c, diags, `"vresion", which is not declared. Did you mean "version"?`)

	// A file may serve several configurations, so there it is a warning.
	o = testOptions()
	o.VarFiles = []string{filepath.Join(dir, "x.axvars")}
	c, diags = Load(dir, o)
	if c == nil || len(diags) != 1 || diags.HasErrors() || !strings.Contains(tell(diags), `x.axvars:1:1`) {
		t.Errorf("want a warning, got %s", tell(diags))
	}

	o.VarFiles = []string{filepath.Join(dir, "none.axvars")}
	c, diags = Load(dir, o)
	wantError(t, c, diags, "none.axvars: no such file or directory")
}

// A sensitive value stands in nothing that Load returns, however it came in
// and whatever is wrong.
func TestSensitiveValuesAreNotShown(t *testing.T) {
	t.Parallel()
	const secret = "hunter2-is-secret"
	uses := []string{
		`description = var.v`, `description = "${var.v}"`, `owner = upper(local.v)`, `labels = { (var.v) = "x" }`,
		`timeout = var.v`, `overlap = var.v`, `for_each = toset([var.v])`, `for_each = { (var.v) = 1 }`,
		`concurrency = var.v`, `description = jsondecode(var.v)`, `description = regex(var.v, "(")`, `owner = file(var.v)`,
		`owner = lookup({}, var.v)`, `owner = {}[var.v]`, `owner = tonumber(var.v)`, `owner = var.v + 1`, `owner = local.v.x`,
		`enabled = var.v == "x"`, `concurrency = length(var.v)`,
		`schedule { cron = var.v }`, "schedule {\n every = \"1m\"\n timezone = var.v\n}",
	}
	for _, use := range uses {
		text := "locals { v = \"-${var.v}\" }\ntask \"a\" {\n " + use + "\n handler \"shell\" { command = \"true\" }\n}\n"
		for _, from := range []string{"default", "var", "file", "env"} {
			o := testOptions()
			declared := "variable \"v\" {\n type = string\n sensitive = true\n"
			if from == "default" {
				declared += " default = \"" + secret + "\"\n"
			}
			dir := folder(t, map[string]string{"main.hcl": declared + "}\n" + text, "x.axvars": "v = \"" + secret + "\"\n"})
			switch from {
			case "var":
				o.Vars = map[string]string{"v": secret}
			case "file":
				o.VarFiles = []string{filepath.Join(dir, "x.axvars")}
			case "env":
				o.Env = []string{"AX_VAR_v=" + secret}
			}
			c, diags := Load(dir, o)
			if c != nil || !diags.HasErrors() {
				t.Errorf("%s: not refused", use)
			}
			noSecret(t, use, secret, diags)
		}
	}
}

func noSecret(t *testing.T, what, secret string, v any) {
	t.Helper()
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(strings.ToLower(string(out)), secret) {
		t.Errorf("%s: shown in %s", what, out)
	}
}

// Faults of the variable itself do not show its value either.
func TestSensitiveVariableFaults(t *testing.T) {
	t.Parallel()
	const secret = "hunter2-is-secret"
	for _, declared := range []string{
		"type = number\n default = \"hunter2-is-secret\"",
		"type = string\n default = \"hunter2-is-secret\"\n validation {\n condition = var.v == \"x\"\n error_message = \"not ${var.v}\"\n }",
		"type = string\n default = \"hunter2-is-secret\"\n validation {\n condition = file(var.v) == \"x\"\n error_message = \"x\"\n }",
		"type = object({ a = number })\n default = { a = \"hunter2-is-secret\" }",
	} {
		for _, vars := range []map[string]string{nil, {"v": secret}} {
			o := testOptions()
			o.Vars = vars
			c, diags := loadText(t, "variable \"v\" {\n sensitive = true\n "+declared+"\n}\n"+task("a"), o)
			if c != nil {
				t.Errorf("%s: not refused", declared)
			}
			noSecret(t, declared, secret, diags)
		}
	}
}

// Nor does what could not even be read as a value.
func TestSensitiveValueUnread(t *testing.T) {
	t.Parallel()
	const declared = "variable \"v\" {\n sensitive = true\n type = string\n default = %s\n}\n"
	for _, text := range []string{"hunter2-is-secret", "lower(\"hunter2-is-secret\")", "\"hunter2-is-secret"} {
		dir := folder(t, map[string]string{"main.hcl": strings.ReplaceAll(declared, "%s", `""`) + task("a"), "x.axvars": "v = " + text + "\n"})
		o := testOptions()
		o.VarFiles = []string{filepath.Join(dir, "x.axvars")}
		c, diags := Load(dir, o)
		if c != nil || !strings.Contains(tell(diags), "x.axvars:1") {
			t.Errorf("%s: got %s", text, tell(diags))
		}
		noSecret(t, text, "hunter2-is-secret", diags)
	}
	for _, text := range []string{"hunter2-is-secret", "lower(\"hunter2-is-secret\")"} {
		c, diags := loadText(t, strings.ReplaceAll(declared, "%s", text)+task("a"), testOptions())
		wantError(t, c, diags, "main.hcl:1:1", "main.hcl:4")
		noSecret(t, text, "hunter2-is-secret", diags)
	}
}
