package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/axctl/ax"
)

// sensitive marks values that may not be stored or shown.
type mark string

const sensitive mark = "sensitive"

// variable is a declared variable and, once assigned, its value.
type variable struct {
	name        string
	block       *hclsyntax.Block
	constraint  cty.Type
	optional    *typeexpr.Defaults // of optional() attributes
	fallback    cty.Value          // default; NilVal without one
	sensitive   bool
	nullable    bool
	validations []*hclsyntax.Block
	// value is DynamicVal when a mistake was reported about it.
	value cty.Value
}

// settings reads the ax block.
func (d *decoder) settings(b *hclsyntax.Block) {
	first := d.stackAt == nil
	d.only(b, &d.stackAt, nil)
	if !first || !d.labelled(b) {
		return
	}
	d.within(b, func() {
		r := d.read(b.Body, settingsWords)
		name := d.stack
		r.text("stack", &name)
		if !validName(name) {
			d.errorf(b.Body.Attributes["stack"].Expr.Range(), "Invalid name", "A stack is called like a task: %s.", nameRule)
			return
		}
		d.stack = name
	})
}

// variable reads a variable block.
func (d *decoder) variable(b *hclsyntax.Block) {
	if !d.labelled(b, "name") || !d.named(b) {
		return
	}
	name := b.Labels[0]
	if first, ok := d.vars[name]; ok {
		d.errorf(b.DefRange(), "Duplicate variable", "A variable %q is declared already, at %s.", name, place(first.block.DefRange()))
		return
	}
	v := &variable{name: name, block: b, constraint: cty.DynamicPseudoType, nullable: true, value: cty.DynamicVal}
	d.vars[name] = v
	d.within(b, func() {
		r := d.read(b.Body, variableWords)
		var description string
		r.text("description", &description)
		r.boolean("sensitive", &v.sensitive)
		r.boolean("nullable", &v.nullable)
		d.variableType(v)
		for _, check := range b.Body.Blocks {
			if check.Type == "validation" && d.labelled(check) {
				v.validations = append(v.validations, check)
			}
		}
	})
}

// variableType reads type and default, of which there is at least one.
func (d *decoder) variableType(v *variable) {
	typeAttr, def := v.block.Body.Attributes["type"], v.block.Body.Attributes["default"]
	if typeAttr == nil && def == nil {
		d.errorf(v.block.DefRange(), "Variable without a type", `A variable has a type, as in type = string, or a default that shows it.`)
		return
	}
	if typeAttr != nil {
		constraint, optional, found := typeexpr.TypeConstraintWithDefaults(typeAttr.Expr)
		d.hcl(found, nil)
		if found.HasErrors() {
			return
		}
		v.constraint, v.optional = constraint, optional
	}
	if def == nil {
		return
	}
	value, ok := d.constant(v, def.Expr, v.block.DefRange())
	if !ok {
		return
	}
	if typeAttr == nil {
		v.constraint = generalType(value.Type())
	}
	v.fallback = value
}

// constant evaluates an expression for v that refers to nothing. A fault in it
// is shown with its text, unless v is sensitive: then it is told at header.
func (d *decoder) constant(v *variable, e hclsyntax.Expression, header hcl.Range) (cty.Value, bool) {
	constants := &decoder{loader: d.loader, blocks: d.blocks}
	value, ok := constants.eval(e)
	switch {
	case !v.sensitive:
		d.found = append(d.found, constants.found...)
	case !ok:
		d.errorf(header, "Invalid value", "The value at %s of the variable %q is no constant, such as a text in quotes. It is sensitive, so it is not shown.", place(e.Range()), v.name)
	}
	return value, ok
}

// generalType is the type that a default without a type stands for: a list
// literal is any list of its elements' type, if they have one.
func generalType(t cty.Type) cty.Type {
	if t.IsTupleType() && t.Length() > 0 {
		if unified, _ := convert.Unify(t.TupleElementTypes()); unified != cty.NilType && unified != cty.DynamicPseudoType {
			return cty.List(unified)
		}
	}
	if t.IsTupleType() || t.IsObjectType() {
		return cty.DynamicPseudoType
	}
	return t
}

// given is a value that was given for a variable from outside.
type given struct {
	text  string    // raw text, when value is NilVal
	value cty.Value // from a file
	from  string    // as in: -var
	at    hcl.Range // in a file; else empty
}

// assignVariables gives every variable its value: given, or its default.
func (d *decoder) assignVariables() {
	values := d.givenValues()
	for _, name := range slices.Sorted(maps.Keys(d.vars)) {
		v := d.vars[name]
		d.within(v.block, func() {
			v.value = d.assign(v, values[name])
			if v.value.IsKnown() {
				d.validate(v)
			}
		})
	}
}

// givenValues collects the values from outside; the last one of a name counts.
func (d *decoder) givenValues() map[string]*given {
	values := map[string]*given{}
	for _, entry := range d.opts.Env {
		if name, text, ok := strings.Cut(entry, "="); ok && strings.HasPrefix(name, "AX_VAR_") {
			values[strings.TrimPrefix(name, "AX_VAR_")] = &given{text: text, from: name + " in the environment"}
		}
	}
	for _, file := range append(d.autoFiles(), d.opts.VarFiles...) {
		d.variableFile(file, values)
	}
	names := slices.Sorted(maps.Keys(d.vars))
	for _, name := range slices.Sorted(maps.Keys(d.opts.Vars)) {
		if d.vars[name] == nil && !d.incomplete {
			d.undeclared(ax.SeverityError, hcl.Range{}, name, "-var gives", names)
		}
		values[name] = &given{text: d.opts.Vars[name], from: "-var"}
	}
	return values
}

// undeclared reports a value for a variable that is not there.
func (d *decoder) undeclared(severity ax.Severity, at hcl.Range, name, who string, names []string) {
	detail := fmt.Sprintf("%s a value for the variable %q, which is not declared.", who, name)
	if near := nearest(name, names); near != "" {
		detail += fmt.Sprintf(" Did you mean %q?", near)
	}
	d.report(severity, at, "Unknown variable", detail)
}

// autoFiles are the variable files that are read without being named. A
// configuration that is one file has none.
func (d *decoder) autoFiles() []string {
	if !d.isFolder {
		return nil
	}
	files, err := filesOf(d.folder, func(name string) bool { return strings.HasSuffix(name, ".auto.axvars") })
	if err != nil {
		d.errorf(hcl.Range{}, "Cannot read variable files", "%s", reason(d.folder, err))
	}
	return files
}

// variableFile reads name = value lines.
func (d *decoder) variableFile(file string, values map[string]*given) {
	text, err := readText(file)
	if err != nil {
		d.errorf(hcl.Range{}, "Cannot read a variable file", "%s", reason(file, err))
		return
	}
	s := &source{name: file, text: text, brokenAt: -1}
	s.parse(d)
	if secret := slices.ContainsFunc(slices.Collect(maps.Values(d.vars)), func(v *variable) bool { return v.sensitive }); !secret || s.brokenAt < 0 {
		d.texts[file] = text // else a snippet might show what could not be read
	}
	for _, b := range s.body.Blocks {
		d.errorf(b.TypeRange, "Unexpected block", "A variable file has lines NAME = VALUE only.")
	}
	names := slices.Sorted(maps.Keys(d.vars))
	for name, a := range s.body.Attributes {
		if d.vars[name] == nil {
			if !d.incomplete {
				d.undeclared(ax.SeverityWarning, a.NameRange, name, "The file gives", names)
			}
			continue
		}
		value, ok := d.constant(d.vars[name], a.Expr, hcl.Range{})
		if !ok {
			value = cty.DynamicVal
		}
		values[name] = &given{value: value, from: file, at: a.Expr.Range()}
	}
}

// assign returns v's value, DynamicVal when there is none to be had. Nothing
// it reports quotes the value: it may be sensitive.
func (d *decoder) assign(v *variable, g *given) cty.Value {
	value, at, what := v.fallback, v.block.DefRange(), "The default"
	switch {
	case g != nil && g.value != cty.NilVal:
		value, what = g.value, "The value in "+g.from
		if !v.sensitive {
			at = g.at
		}
	case g != nil:
		what = "The value from " + g.from
		var ok bool
		if value, ok = d.fromText(v, g, what); !ok {
			return cty.DynamicVal
		}
	case v.fallback != cty.NilVal:
		if !v.sensitive {
			at = v.block.Body.Attributes["default"].Expr.Range()
		}
	default:
		if v.block.Body.Attributes["default"] == nil && v.block.Body.Attributes["type"] != nil {
			d.errorf(at, "No value for a variable", "The variable %q has no default. Give it a value: -var %s=…, -var-file, a file NAME.auto.axvars, or AX_VAR_%s in the environment.", v.name, v.name, v.name)
		}
		return cty.DynamicVal
	}
	if !value.IsKnown() {
		return cty.DynamicVal
	}
	if v.optional != nil && !value.IsNull() {
		value = v.optional.Apply(value)
	}
	converted, err := convert.Convert(value, v.constraint)
	if err != nil {
		detail := fmt.Sprintf("%s does not fit the type of variable %q: %s.", what, v.name, describe(err))
		if v.sensitive {
			detail = fmt.Sprintf("%s does not fit the type of variable %q.", what, v.name)
		}
		d.errorf(at, "Wrong type", "%s", detail)
		return cty.DynamicVal
	}
	if converted.IsNull() && !v.nullable {
		if g != nil && v.fallback != cty.NilVal && !v.fallback.IsNull() {
			return d.assign(v, nil) // as Terraform: null given means the default
		}
		d.errorf(at, "Null value", "The variable %q is not nullable.", v.name)
		return cty.DynamicVal
	}
	if v.sensitive {
		converted = converted.Mark(sensitive)
	}
	return converted
}

// fromText turns the text of -var or of the environment into a value. For a
// primitive type it is the value, for others an expression without names.
func (d *decoder) fromText(v *variable, g *given, what string) (cty.Value, bool) {
	if v.constraint.IsPrimitiveType() {
		return cty.StringVal(lineEnds.ReplaceAllString(g.text, "\n")), true
	}
	e, found := hclsyntax.ParseExpression([]byte(g.text), "", hcl.InitialPos)
	if !found.HasErrors() {
		var value cty.Value
		if value, found = e.Value(nil); !found.HasErrors() {
			return value, true
		}
	}
	d.errorf(v.block.DefRange(), "Not an expression", "%s for variable %q is read as an HCL expression, because the variable is no string, number or bool; it is none. A list is written [\"a\", \"b\"], a map { a = 1 }.", what, v.name)
	return cty.NilVal, false
}

func describe(err error) string {
	if path, ok := err.(cty.PathError); ok && len(path.Path) > 0 {
		var where strings.Builder
		for _, step := range path.Path {
			switch s := step.(type) {
			case cty.GetAttrStep:
				where.WriteString("." + s.Name)
			case cty.IndexStep:
				if s.Key.Type() == cty.String {
					fmt.Fprintf(&where, "[%q]", s.Key.AsString())
				} else {
					fmt.Fprintf(&where, "[%s]", s.Key.AsBigFloat().Text('f', -1))
				}
			}
		}
		return "at " + where.String() + " " + path.Error()
	}
	return err.Error()
}

// validate runs the validation blocks of v, which may refer to v alone.
func (d *decoder) validate(v *variable) {
	for _, b := range v.validations {
		d.within(b, func() { d.validation(v, b) })
	}
}

func (d *decoder) validation(v *variable, b *hclsyntax.Block) {
	own := &decoder{loader: d.loader, blocks: d.blocks, context: &hcl.EvalContext{
		Functions: d.loader.context.Functions,
		Variables: map[string]cty.Value{"var": cty.ObjectVal(map[string]cty.Value{v.name: v.value})},
	}}
	defer func() { d.found = append(d.found, own.found...) }()
	r := own.read(b.Body, validationWords)
	condition, message := b.Body.Attributes["condition"], b.Body.Attributes["error_message"]
	if condition == nil || message == nil {
		own.errorf(b.TypeRange, "Incomplete validation", "A validation block has a condition and an error_message.")
		return
	}
	for _, e := range []hclsyntax.Expression{condition.Expr, message.Expr} {
		for _, t := range e.Variables() {
			if name := attributeOf(t); t.RootName() != "var" || name != v.name {
				own.errorf(t.SourceRange(), "Invalid reference", "A validation refers to its own variable only: var.%s.", v.name)
				return
			}
		}
	}
	holds, ok := own.eval(condition.Expr)
	if !ok {
		return
	}
	if holds, _ = holds.Unmark(); holds.Type() != cty.Bool || holds.IsNull() {
		r.mismatch("condition", condition.Expr, "true or false", holds)
		return
	}
	if holds.True() {
		return
	}
	text, ok := own.eval(message.Expr)
	if !ok {
		return
	}
	detail := "The error message of this validation reads a sensitive value, so it is not shown."
	if !text.IsMarked() && text.Type() == cty.String && !text.IsNull() {
		detail = text.AsString()
	}
	own.errorf(condition.Expr.Range(), "Invalid value for variable "+v.name, "%s", detail)
}

// attributeOf returns b of a reference a.b.
func attributeOf(t hcl.Traversal) string {
	if len(t) > 1 {
		if attr, ok := t[1].(hcl.TraverseAttr); ok {
			return attr.Name
		}
	}
	return ""
}
