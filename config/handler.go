package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/axctl/ax"
	"github.com/axctl/ax/plugins"
)

// maxBodyBytes bounds a handler body as JSON; a batch of jobs must fit into
// one message.
const maxBodyBytes = 256 << 10

// handler reads the handler block of a task, of which there is one.
func (r reader) handler(task *hclsyntax.Block, into *ax.HandlerSpec) {
	b := r.single("handler")
	if b == nil {
		r.errorf(task.DefRange(), "Task without a handler", `A task has a handler block that says what runs, as in handler "NAME" { … }. Handlers are: %s.`, quotedList(r.opts.HandlerNames))
		return
	}
	if !r.labelled(b, "name") {
		return
	}
	name := b.Labels[0]
	schema, ok := plugins.Schema{}, false
	if r.opts.Schemas != nil {
		schema, ok = r.opts.Schemas(name)
	}
	if near := nearest(name, r.opts.HandlerNames); !ok && near != "" {
		r.errorf(b.LabelRanges[0], "Unknown handler", "There is no handler %q. Did you mean %q?", name, near)
		return
	}
	if !ok {
		r.warnf(b.LabelRanges[0], "Handler body unchecked", "Nothing here knows handler %q (known are: %s), so its body is taken as it is. Give -plugins the folder of its plugin, or keep its schema beside the configuration: axctl handlers lock.",
			name, quotedList(r.opts.HandlerNames))
	}
	r.within(b, func() {
		before := len(r.found)
		var body json.RawMessage
		if ok {
			body = r.handlerBody(b, schema)
		} else {
			body = r.uncheckedBody(b, name)
		}
		if !r.found[before:].HasErrors() {
			*into = ax.HandlerSpec{Name: name, Body: body}
		}
	})
}

// handlerBody checks a body against its schema and returns it as JSON.
func (r reader) handlerBody(b *hclsyntax.Block, schema plugins.Schema) json.RawMessage {
	w := words{place: fmt.Sprintf("handler %q", schema.Handler)}
	for _, a := range schema.Attributes {
		w.attributes = append(w.attributes, a.Name)
	}
	in := r.read(b.Body, w)
	set := map[string]any{}
	wrong := map[string]bool{} // set, but of no use
	for _, a := range schema.Attributes {
		value, e, ok := in.value(a.Name)
		if !ok {
			wrong[a.Name] = !value.IsNull()
			continue
		}
		set[a.Name], ok = in.bodyValue(a, value, e)
		wrong[a.Name] = !ok
	}
	in.combinations(b, schema, set, wrong)
	for _, a := range schema.Attributes {
		if _, ok := set[a.Name]; !ok && len(a.Default) > 0 {
			set[a.Name] = decodeDefault(schema.Handler, a)
		}
	}
	return r.encodeBody(b, set)
}

// uncheckedBody takes a body whose schema nobody knows.
func (r reader) uncheckedBody(b *hclsyntax.Block, handler string) json.RawMessage {
	names := slices.Sorted(maps.Keys(b.Body.Attributes))
	in := r.read(b.Body, words{place: fmt.Sprintf("handler %q", handler), attributes: names})
	set := map[string]any{}
	for _, name := range names {
		if value, e, ok := in.value(name); ok {
			a := plugins.Attribute{Name: name, Types: []plugins.Type{plugins.Any}}
			if v, ok := in.bodyValue(a, value, e); ok {
				set[name] = v
			}
		}
	}
	return r.encodeBody(b, set)
}

func (r reader) encodeBody(b *hclsyntax.Block, set map[string]any) json.RawMessage {
	body, err := json.Marshal(set)
	if err != nil {
		panic(fmt.Sprintf("body of %s: %v", b.Labels[0], err)) // set holds JSON values only
	}
	if len(body) > maxBodyBytes {
		r.errorf(b.DefRange(), "Handler body too large", "The body is %d KiB; at most %d KiB are allowed. Keep large scripts in files.", len(body)>>10, maxBodyBytes>>10)
	}
	return body
}

// combinations checks which attributes must, may and must not stand together.
func (r reader) combinations(b *hclsyntax.Block, schema plugins.Schema, set map[string]any, wrong map[string]bool) {
	there := func(name string) bool { _, ok := set[name]; return ok || wrong[name] }
	grouped := map[string]bool{}
	for _, group := range schema.OneOf {
		var found []string
		for _, name := range group {
			grouped[name] = true
			if there(name) {
				found = append(found, name)
			}
		}
		switch {
		case len(found) == 0:
			r.errorf(b.DefRange(), "Missing attribute", "Handler %q has one of: %s.", schema.Handler, strings.Join(group, ", "))
		case len(found) > 1:
			r.errorf(b.Body.Attributes[found[1]].NameRange, "Contradiction", "Handler %q has only one of: %s.", schema.Handler, strings.Join(group, ", "))
		case isEmpty(set[found[0]]):
			r.errorf(b.Body.Attributes[found[0]].Expr.Range(), "Empty value", "%q in handler %q is empty, so there is nothing to do.", found[0], schema.Handler)
		}
	}
	for _, group := range schema.Conflicts {
		found := slices.DeleteFunc(slices.Clone(group), func(name string) bool { return !there(name) })
		if len(found) > 1 {
			r.errorf(b.Body.Attributes[found[1]].NameRange, "Contradiction", "Handler %q has only one of: %s.", schema.Handler, strings.Join(group, ", "))
		}
	}
	for _, a := range schema.Attributes {
		if !a.Optional && len(a.Default) == 0 && !grouped[a.Name] && !there(a.Name) {
			r.errorf(b.DefRange(), "Missing attribute", "Handler %q needs %q%s.", schema.Handler, a.Name, docOf(a))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(schema.Needs)) {
		for _, other := range schema.Needs[name] {
			if there(name) && !there(other) {
				r.errorf(b.Body.Attributes[name].NameRange, "Missing attribute", "%q in handler %q needs %q beside it.", name, schema.Handler, other)
			}
		}
	}
}

// isEmpty reports a text or a list that holds nothing.
func isEmpty(v any) bool {
	switch v := v.(type) {
	case string:
		return strings.TrimSpace(v) == ""
	case []string:
		return len(v) == 0
	default:
		return false
	}
}

func docOf(a plugins.Attribute) string {
	if a.Doc == "" {
		return ""
	}
	return ": " + strings.TrimSuffix(a.Doc, ".")
}

// bodyValue turns a value into what JSON has for it, by the first of the
// attribute's types that it fits.
func (r reader) bodyValue(a plugins.Attribute, v cty.Value, e hclsyntax.Expression) (any, bool) {
	for _, t := range a.Types {
		out, ok := convertTo(t, v)
		if !ok {
			continue
		}
		if text, isText := out.(string); isText && a.Enum != nil && !slices.Contains(a.Enum, text) {
			r.errorf(e.Range(), "Invalid value", "%s", r.notOneOf(a.Name, text, a.Enum))
			return nil, false
		}
		if hasNUL(out) {
			r.errorf(e.Range(), "Invalid character", "%q has a NUL character in it, which no program can be given.", a.Name)
			return nil, false
		}
		return out, r.wellFormed(a, out, e)
	}
	r.bodyMismatch(a, v, e)
	return nil, false
}

// typeWords are the types as messages say them.
var typeWords = map[plugins.Type]string{
	plugins.String: "a string", plugins.Number: "a number", plugins.Bool: "a bool", plugins.Duration: "a duration",
	plugins.StringList: "a list of strings", plugins.NumberList: "a list of numbers", plugins.StringMap: "a map of strings", plugins.Any: "any value",
}

func (r reader) bodyMismatch(a plugins.Attribute, v cty.Value, e hclsyntax.Expression) {
	if slices.Contains(a.Types, plugins.Duration) && v.Type() == cty.String {
		if _, err := ax.ParseDuration(v.AsString()); err != nil {
			r.errorf(e.Range(), "Invalid duration", "%q in %s: %v.", a.Name, r.words.place, err)
			return
		}
	}
	if slices.Contains(a.Types, plugins.StringMap) && isMap(v) {
		if _, bad, _ := stringMap(v); bad != "" {
			item := v.AsValueMap()[bad]
			at := e.Range()
			if object, ok := e.(*hclsyntax.ObjectConsExpr); ok {
				at = itemRange(object, bad, at)
			}
			r.errorf(at, "Wrong type", "The values of %q in %s are strings, and that of %q is %s.%s", a.Name, r.words.place, bad, typeName(item), advice("a string", item))
			return
		}
	}
	if hugeNumber(v) {
		r.errorf(e.Range(), "Number too large", "%q in %s has a number that is too large: integers have 64 bits, others are floats.", a.Name, r.words.place)
		return
	}
	wanted := make([]string, len(a.Types))
	for i, t := range a.Types {
		wanted[i] = typeWords[t]
	}
	want := strings.Join(wanted, " or ")
	hint := advice(want, v)
	if hint == "" && len(wanted) > 1 {
		hint = advice(wanted[0], v)
	}
	r.errorf(e.Range(), "Wrong type", "%q in %s is %s, and this is %s.%s", a.Name, r.words.place, want, foundName(want, v), hint)
}

// itemRange returns where the value of a key stands in a map's text.
func itemRange(object *hclsyntax.ObjectConsExpr, key string, fallback hcl.Range) hcl.Range {
	for _, item := range object.Items {
		if name := hcl.ExprAsKeyword(item.KeyExpr); name == key {
			return item.ValueExpr.Range()
		}
		if v, found := item.KeyExpr.Value(nil); !found.HasErrors() && v.IsKnown() && !v.IsNull() && v.Type() == cty.String && v.AsString() == key {
			return item.ValueExpr.Range()
		}
	}
	return fallback
}

// convertTo returns v as JSON has it, when it is of type t.
func convertTo(t plugins.Type, v cty.Value) (any, bool) {
	switch t {
	case plugins.String:
		if v.Type() == cty.String {
			return v.AsString(), true
		}
	case plugins.Number:
		if v.Type() == cty.Number {
			return number(v)
		}
	case plugins.Bool:
		if v.Type() == cty.Bool {
			return v.True(), true
		}
	case plugins.Duration:
		if v.Type() == cty.String {
			d, err := ax.ParseDuration(v.AsString())
			return d.String(), err == nil
		}
	case plugins.StringList:
		return stringList(v)
	case plugins.NumberList:
		return numberList(v)
	case plugins.StringMap:
		m, _, ok := stringMap(v)
		return m, ok
	case plugins.Any:
		return anyValue(v)
	default:
		panic(fmt.Sprintf("unknown type %q in a schema", t))
	}
	return nil, false
}

// number returns a number as JSON text that every reader takes for the same
// number: an integer of 64 bits, or else the nearest float.
func number(v cty.Value) (any, bool) {
	big := v.AsBigFloat()
	if n, accuracy := big.Int64(); accuracy == 0 {
		return n, true
	}
	f, _ := big.Float64()
	if big.IsInt() || f-f != 0 { // too large for either
		return nil, false
	}
	return f, true
}

// hugeNumber reports whether v is, or has in it, what number refuses.
func hugeNumber(v cty.Value) bool {
	huge := false
	_ = cty.Walk(v, func(_ cty.Path, leaf cty.Value) (bool, error) {
		if leaf.Type() == cty.Number && !leaf.IsNull() {
			_, ok := number(leaf)
			huge = huge || !ok
		}
		return true, nil
	})
	return huge
}

func numberList(v cty.Value) (any, bool) {
	if !isList(v) {
		return nil, false
	}
	out := []any{}
	for _, item := range v.AsValueSlice() {
		if item.IsNull() || item.Type() != cty.Number {
			return nil, false
		}
		n, ok := number(item)
		if !ok {
			return nil, false
		}
		out = append(out, n)
	}
	return out, true
}

func anyValue(v cty.Value) (any, bool) {
	switch t := v.Type(); {
	case v.IsNull():
		return nil, true
	case t == cty.String:
		return v.AsString(), true
	case t == cty.Number:
		return number(v)
	case t == cty.Bool:
		return v.True(), true
	case isList(v):
		out := []any{}
		for _, item := range v.AsValueSlice() {
			element, ok := anyValue(item)
			if !ok {
				return nil, false
			}
			out = append(out, element)
		}
		return out, true
	case isMap(v):
		out := map[string]any{}
		for key, item := range v.AsValueMap() {
			element, ok := anyValue(item)
			if !ok {
				return nil, false
			}
			out[key] = element
		}
		return out, true
	}
	return nil, false
}

func hasNUL(v any) bool {
	switch v := v.(type) {
	case string:
		return strings.ContainsRune(v, 0)
	case []string:
		return slices.ContainsFunc(v, func(s string) bool { return hasNUL(s) })
	case map[string]string:
		for key, s := range v {
			if hasNUL(key) || hasNUL(s) {
				return true
			}
		}
	}
	return false
}

// decodeDefault reads a default of a schema. Schemas are checked where they
// are made, so one that is no JSON is a programmer's error.
func decodeDefault(handler string, a plugins.Attribute) any {
	decoder := json.NewDecoder(bytes.NewReader(a.Default))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		panic(fmt.Sprintf("default of %s.%s: %v", handler, a.Name, err))
	}
	return v
}
