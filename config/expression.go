package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/axctl/ax"
)

// decoder reads blocks of one file. It keeps where it is, so that what it
// reports says so, and what it has made.
type decoder struct {
	*loader
	context *hcl.EvalContext // nil: constants only
	address string
	blocks  []string // headers of the blocks around, outermost first
	found   ax.Diagnostics

	seen        []seen
	definitions []ax.Definition
}

// seen is a block that defines an object, for finding duplicates.
type seen struct {
	address string
	header  hcl.Range
}

// within calls read with the header of b as the innermost block.
func (d *decoder) within(b *hclsyntax.Block, read func()) {
	header := b.Type
	for _, label := range b.Labels {
		header += fmt.Sprintf(" %q", label)
	}
	d.blocks = append(d.blocks, header)
	read()
	d.blocks = d.blocks[:len(d.blocks)-1]
}

// eval evaluates e. It is false when there is no value: the reason has been
// reported, here or where a value that e reads was made.
func (d *decoder) eval(e hclsyntax.Expression) (cty.Value, bool) {
	if v, ok := literal(e); ok {
		return v, true
	}
	if !d.references(e) {
		d.calls(e) // what evaluation would have found as well
		return cty.DynamicVal, false
	}
	v, found := e.Value(d.context)
	d.hcl(found, e)
	if found.HasErrors() {
		return cty.DynamicVal, false
	}
	if !v.IsWhollyKnown() {
		// What e reads is known, so only a function can have done this.
		d.errorf(e.Range(), "Value not known", "The value of this expression cannot be told in advance.")
		return cty.DynamicVal, false
	}
	return v, true
}

// literal returns the value of an expression that needs no evaluation, which
// most are.
func literal(e hclsyntax.Expression) (cty.Value, bool) {
	switch e := e.(type) {
	case *hclsyntax.LiteralValueExpr:
		return e.Val, true
	case *hclsyntax.TemplateExpr:
		if e.IsStringLiteral() {
			return literal(e.Parts[0])
		}
	}
	return cty.NilVal, false
}

// stored evaluates an expression whose value becomes part of a definition:
// a sensitive one is refused, since definitions are stored and shown in clear.
// Without a value to use it returns DynamicVal and false.
func (d *decoder) stored(e hclsyntax.Expression) (cty.Value, bool) {
	v, ok := d.eval(e)
	if !ok {
		return cty.DynamicVal, false
	}
	if v.ContainsMarked() {
		d.errorf(e.Range(), "Sensitive value would be stored",
			"%s is sensitive, and what a task says is stored and shown in clear. "+
				"secret() is designed, but not built in this version: let the command itself read the secret "+
				"when it runs, from a file that only its user may read.", d.sensitiveNames(e))
		return cty.DynamicVal, false
	}
	return v, true
}

// references checks every name that e refers to. It is false when one has no
// value: then that was reported, unless it was before.
func (d *decoder) references(e hclsyntax.Expression) bool {
	ok := true
	for _, t := range e.Variables() {
		if d.context == nil {
			d.errorf(t.SourceRange(), "Constant expected", "This value is read before variables and locals have theirs, so it cannot refer to anything.")
			ok = false
			continue
		}
		ok = d.reference(e, t) && ok
	}
	return ok
}

func (d *decoder) reference(e hclsyntax.Expression, t hcl.Traversal) bool {
	root := t.RootName()
	name := ""
	if len(t) > 1 {
		if attr, ok := t[1].(hcl.TraverseAttr); ok {
			name = attr.Name
		}
	}
	switch root {
	case "var":
		return d.declared(t, name, "variable", d.vars[name] != nil, slices.Collect(maps.Keys(d.vars)))
	case "local":
		return d.declared(t, name, "local", d.locals[name] != nil, slices.Collect(maps.Keys(d.locals)))
	case "each":
		return d.eachReference(t, name)
	case "instance", "params", "shard", "output":
		d.lateReference(t, root, name)
		return false
	case "task", "dependency", "calendar", "channel":
		d.errorf(t.SourceRange(), "Not built in this version", "References to a %s are designed, but not built in this version.", root)
		return false
	case "count":
		d.errorf(t.SourceRange(), "Unknown name", "There is no count; for_each makes many tasks of one block, and each.key and each.value tell them apart.")
		return false
	}
	// A for expression's own names are not among e.Variables().
	d.unknownRoot(e, t, root)
	return false
}

// declared checks a reference to var.name or local.name.
func (d *decoder) declared(t hcl.Traversal, name, kind string, there bool, names []string) bool {
	root := t.RootName()
	switch {
	case name == "":
		d.errorf(t.SourceRange(), "Incomplete reference", "A reference to a %s names it: %s.NAME.", kind, root)
	case there:
		if root == "local" {
			return d.localKnown(name)
		}
		return d.vars[name].value.IsKnown()
	case d.incomplete: // it may stand in the part that could not be read
	default:
		detail := fmt.Sprintf("There is no %s %q.", kind, name)
		slices.Sort(names)
		if near := nearest(name, names); near != "" {
			detail += fmt.Sprintf(" Did you mean %q?", near)
		} else if kind == "variable" {
			detail += fmt.Sprintf(" Declare it with: variable %q { }", name)
		}
		d.errorf(t.SourceRange(), "Unknown "+kind, "%s", detail)
	}
	return false
}

func (d *decoder) eachReference(t hcl.Traversal, name string) bool {
	if _, ok := d.lookup("each"); !ok {
		d.errorf(t.SourceRange(), "Unknown name", "each.key and each.value are there only in a task that has for_each.")
		return false
	}
	if name != "key" && name != "value" {
		d.errorf(t.SourceRange(), "Unknown name", "each has key and value: each.key, each.value.")
		return false
	}
	return true
}

// lookup finds a root name in the contexts, innermost first.
func (d *decoder) lookup(root string) (cty.Value, bool) {
	for c := d.context; c != nil; c = c.Parent() {
		if v, ok := c.Variables[root]; ok {
			return v, true
		}
	}
	return cty.NilVal, false
}

// environment maps a run-time value to the variable that a shell command finds
// it in.
var environment = map[string]string{
	"instance.id":        "AX_INSTANCE",
	"instance.task":      "AX_TASK",
	"instance.attempt":   "AX_ATTEMPT",
	"instance.due":       "AX_DUE",
	"instance.date":      "AX_DATE",
	"instance.prev_date": "AX_PREV_DATE",
}

// lateReference refuses a value that is known only when the task runs.
func (d *decoder) lateReference(t hcl.Traversal, root, name string) {
	detail := fmt.Sprintf("%s is known only when the task runs; such values are designed, but not built in this version.", dotted(root, name))
	if env, ok := environment[root+"."+name]; ok {
		detail += fmt.Sprintf(" In a shell command or script write $%s: it is in the environment.", env)
	} else if root == "instance" {
		detail += " In a shell command or script these are in the environment: $AX_DUE, $AX_DATE, $AX_PREV_DATE, $AX_TASK, $AX_INSTANCE, $AX_ATTEMPT."
	}
	d.errorf(t.SourceRange(), "Not built in this version", "%s", detail)
}

func dotted(root, name string) string {
	if name == "" {
		return root
	}
	return root + "." + name
}

// unknownRoot explains a name that is none of the language's. Most often it is
// a word without quotes, or a shell's ${NAME} inside a string.
func (d *decoder) unknownRoot(e hclsyntax.Expression, t hcl.Traversal, root string) {
	detail := fmt.Sprintf("There is no %q here.", root)
	_, inTemplate := e.(*hclsyntax.TemplateExpr)
	if _, wrapped := e.(*hclsyntax.TemplateWrapExpr); wrapped {
		inTemplate = true
	}
	switch near := nearest(root, []string{"var", "local", "each"}); {
	case inTemplate && len(t) == 1:
		detail += fmt.Sprintf(" To hand ${%s} on as it is, to a shell for instance, write $${%s} or $%s.", root, root, root)
	case len(t) == 1 && e.Range() == t.SourceRange():
		detail += fmt.Sprintf(" A text stands in quotes: %q.", root)
	case near != "":
		detail += fmt.Sprintf(" Did you mean %q?", near)
	default:
		detail += " Values are var.NAME, local.NAME and, with for_each, each.key and each.value."
	}
	d.errorf(t.SourceRange(), "Unknown name", "%s", detail)
}

// calls reports the calls in e of functions that are not there.
func (d *decoder) calls(e hclsyntax.Expression) {
	if d.context == nil {
		return
	}
	_ = hclsyntax.VisitAll(e, func(n hclsyntax.Node) hcl.Diagnostics {
		if call, ok := n.(*hclsyntax.FunctionCallExpr); ok {
			if _, known := d.loader.context.Functions[call.Name]; !known {
				d.unknownFunction(call.NameRange, call.Name)
			}
		}
		return nil
	})
}

// unknownFunction explains a call of a function that is not there.
func (d *decoder) unknownFunction(rng hcl.Range, name string) {
	switch name {
	case "secret":
		d.errorf(rng, "Not built in this version", "secret() is designed, but not built in this version: let the command itself read the secret when it runs, from a file that only its user may read.")
		return
	case "timestamp", "plantimestamp", "uuid", "uuidv4", "bcrypt":
		d.errorf(rng, "Unknown function", "There is no %s(): a plan must be the same twice.", name)
		return
	case "nonsensitive":
		d.errorf(rng, "Unknown function", "There is no nonsensitive(): what a task says is stored and shown in clear.")
		return
	}
	detail := fmt.Sprintf("There is no function %q.", name)
	names := slices.Sorted(maps.Keys(d.loader.context.Functions))
	if near := nearest(name, names); near != "" {
		detail += fmt.Sprintf(" Did you mean %q?", near)
	}
	d.errorf(rng, "Unknown function", "%s", detail)
}

// readsSensitive reports whether a value that e refers to is sensitive.
func (d *decoder) readsSensitive(e hclsyntax.Expression) bool { return d.sensitiveRoots(e) != nil }

func (d *decoder) sensitiveNames(e hclsyntax.Expression) string {
	names := d.sensitiveRoots(e)
	if names == nil {
		return "This value"
	}
	return strings.Join(names, " and ")
}

func (d *decoder) sensitiveRoots(e hclsyntax.Expression) []string {
	if d.context == nil {
		return nil
	}
	var names []string
	for _, t := range e.Variables() {
		v, ok := d.lookup(t.RootName())
		name := t.RootName()
		if ok && len(t) > 1 {
			if attr, isAttr := t[1].(hcl.TraverseAttr); isAttr && v.Type().IsObjectType() && v.Type().HasAttribute(attr.Name) {
				v, name = v.GetAttr(attr.Name), name+"."+attr.Name
			}
		}
		if ok && v.ContainsMarked() && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}
