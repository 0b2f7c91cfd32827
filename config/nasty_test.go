package config

import (
	"fmt"
	"testing"
)

// Values that typed code is easily wrong about: null, typed null, sensitive,
// empty, nested.
var nasty = []string{
	`null`, `sensitive(null)`, `sensitive("x")`, `sensitive(1)`, `[]`, `{}`, `[null]`, `{ a = null }`, `""`, `" "`, `0`, `-1`,
	`1e308`, `1e-320`, `1e999`, `true`, `tolist([])`, `toset([])`, `tomap({})`, `[sensitive("x")]`, `{ a = sensitive(1) }`,
	`toset([sensitive("x")])`, `sensitive([])`, `sensitive({ a = 1 })`, `jsondecode("null")`, `tostring(null)`, `tonumber(null)`,
	`tolist([null, "x"])`, `tomap({ a = null, b = "x" })`, `[[[]]]`, `"a\u0000b"`, `"\r"`, `[for x in [] : x]`, `{ for k in ["a"] : k => [k] }`,
	`var.none`, `var.untyped_none`, `var.sensitive_none`, `[var.sensitive_none]`, `local.deep`, `"${null}"`, `"${"x"}"`, `"${1}"`, `["a"]...`,
	`null.x`, `[1][5]`, `{ (sensitive("k")) = 1 }`, `tolist([sensitive("x")])[0]`, `!0`, `-"x"`, `1 / 0`, `x => y`, `var`, `local`, `each`, `instance`,
	`params["x"]`, `output[0]`, `"${instance[each.key]}"`, `try(var.gone, 1)`, `provider::x::y()`, `secret()`, `file()`, `file(null)`, `file(sensitive("x"))`,
}

const nastyPrelude = `
variable "none" {
  type    = string
  default = null
}
variable "untyped_none" {
  type    = any
  default = null
}
variable "sensitive_none" {
  type      = string
  default   = null
  sensitive = true
}
locals {
  deep = { a = [{ b = sensitive("x") }, null] }
}
`

// No value of any attribute makes Load panic, and each load ends in a
// configuration or in errors.
func TestNastyValues(t *testing.T) {
	t.Parallel()
	texts := map[string][]string{
		"task \"t\" {\n handler \"shell\" {\n%s\n}\n}\n": {"command", "script", "env", "ok_codes"},
		"task \"t\" {\n handler \"types\" {\n%s\n}\n}\n": {"text", "count", "flag", "wait", "names", "codes", "headers", "tree"},
		"task \"t\" {\n for_each = { a = sensitive(1), b = null, c = [] }\n description = each.value\n handler \"types\" {\n%s\n}\n}\n": {"text", "tree"},
		"locals {\n%s\n}\ntask \"t\" {\n handler \"types\" { tree = local.x }\n}\n":                                                     {"x"},
		"variable \"x\" {\n%s\n}\ntask \"t\" {\n handler \"types\" { tree = var.x }\n}\n":                                               {"default", "type"},
		"variable \"x\" {\n type = number\n%s\n}\n":                                                                                     {"default"},
		"variable \"x\" {\n type = object({ a = optional(list(string), []) })\n sensitive = true\n%s\n}\n":                              {"default"},
		"variable \"x\" {\n default = 1\n validation {\n error_message = \"x\"\n%s\n}\n}\n":                                             {"condition"},
		"variable \"x\" {\n default = 1\n validation {\n condition = false\n%s\n}\n}\n":                                                 {"error_message"},
	}
	for _, body := range bodies {
		texts[body.text] = append(texts[body.text], body.words.attributes...)
	}
	for text, attributes := range texts {
		for _, name := range attributes {
			for _, value := range nasty {
				load(t, nastyPrelude+fmt.Sprintf(text, name+" = "+value))
			}
		}
	}
}

func load(t *testing.T, text string) {
	t.Helper()
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("panic: %v in\n%s", p, text)
		}
	}()
	loadBytes([]byte(text))
}
