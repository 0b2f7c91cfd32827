package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/axctl/ax"
)

// reader reads the attributes of one body. Its methods leave their target as
// it is when the attribute is absent or null, and report what does not fit.
type reader struct {
	*decoder
	words words
	body  *hclsyntax.Body
}

// read opens a body and reports every name in it that w does not have.
func (d *decoder) read(body *hclsyntax.Body, w words) reader {
	for name, a := range body.Attributes {
		if !slices.Contains(w.attributes, name) {
			summary, detail := w.explain(name, false)
			d.errorf(a.NameRange, summary, "%s", detail)
		}
	}
	for _, b := range body.Blocks {
		if !slices.Contains(w.blocks, b.Type) {
			summary, detail := w.explain(b.Type, true)
			d.errorf(b.TypeRange, summary, "%s", detail)
		}
	}
	return reader{d, w, body}
}

// value evaluates an attribute whose value will be stored. It is false, with
// null, when the attribute is absent or null, and with DynamicVal when its
// value cannot be used, which has been reported.
func (r reader) value(name string) (cty.Value, hclsyntax.Expression, bool) {
	a, ok := r.body.Attributes[name]
	if !ok {
		return cty.NullVal(cty.DynamicPseudoType), nil, false
	}
	v, ok := r.stored(a.Expr)
	return v, a.Expr, ok && !v.IsNull()
}

// mismatch reports that an attribute's value has the wrong type.
func (r reader) mismatch(name string, e hclsyntax.Expression, want string, got cty.Value) {
	r.errorf(e.Range(), "Wrong type", "%q in %s is %s, and this is %s.%s", name, r.words.place, want, foundName(want, got), advice(want, got))
}

func (r reader) text(name string, into *string) {
	if v, e, ok := r.value(name); ok {
		if v.Type() != cty.String {
			r.mismatch(name, e, "a string", v)
			return
		}
		*into = v.AsString()
	}
}

func (r reader) boolean(name string, into *bool) {
	if v, e, ok := r.value(name); ok {
		if v.Type() != cty.Bool {
			r.mismatch(name, e, "a bool", v)
			return
		}
		*into = v.True()
	}
}

func (r reader) integer(name string, into *int, low, high int) {
	v, e, ok := r.value(name)
	if !ok {
		return
	}
	if v.Type() != cty.Number {
		r.mismatch(name, e, "a number", v)
		return
	}
	n, accuracy := v.AsBigFloat().Int64()
	if accuracy != 0 || n < int64(low) || n > int64(high) {
		r.errorf(e.Range(), "Out of bounds", "%q in %s is a whole number from %d to %d.", name, r.words.place, low, high)
		return
	}
	*into = int(n)
}

func (r reader) float(name string, into *float64, low, high float64) {
	v, e, ok := r.value(name)
	if !ok {
		return
	}
	if v.Type() != cty.Number {
		r.mismatch(name, e, "a number", v)
		return
	}
	f, _ := v.AsBigFloat().Float64()
	if f < low || f > high {
		r.errorf(e.Range(), "Out of bounds", "%q in %s is a number from %v to %v.", name, r.words.place, low, high)
		return
	}
	*into = f
}

// duration reads a duration of at least low.
func (r reader) duration(name string, into *ax.Duration, low ax.Duration) {
	v, e, ok := r.value(name)
	if !ok {
		return
	}
	if v.Type() != cty.String {
		r.mismatch(name, e, "a duration", v)
		return
	}
	d, err := ax.ParseDuration(v.AsString())
	switch {
	case err != nil:
		r.errorf(e.Range(), "Invalid duration", "%q in %s: %v.", name, r.words.place, err)
	case d < low:
		r.errorf(e.Range(), "Out of bounds", "%q in %s is at least %q.", name, r.words.place, low)
	default:
		*into = d
	}
}

// choice reads one word of a closed list.
func choice[T ~string](r reader, name string, into *T, allowed []T) {
	v, e, ok := r.value(name)
	if !ok {
		return
	}
	if v.Type() != cty.String {
		r.mismatch(name, e, "a string", v)
		return
	}
	if word := T(v.AsString()); slices.Contains(allowed, word) {
		*into = word
		return
	}
	r.errorf(e.Range(), "Invalid value", "%s", r.notOneOf(name, v.AsString(), asStrings(allowed)))
}

func (r reader) notOneOf(name, got string, allowed []string) string {
	detail := fmt.Sprintf("%q in %s is one of %s; %q is none of them.", name, r.words.place, quotedList(allowed), got)
	if near := nearest(got, allowed); near != "" {
		detail += fmt.Sprintf(" Did you mean %q?", near)
	}
	return detail
}

func asStrings[T ~string](list []T) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = string(s)
	}
	return out
}

// list reads a list of strings; single allows one string alone.
func (r reader) list(name string, single bool) ([]string, bool) {
	v, e, ok := r.value(name)
	if !ok {
		return nil, false
	}
	if single && v.Type() == cty.String {
		return []string{v.AsString()}, true
	}
	items, ok := stringList(v)
	if !ok {
		r.mismatch(name, e, "a list of strings", v)
	}
	return items, ok
}

func stringList(v cty.Value) ([]string, bool) {
	if !isList(v) {
		return nil, false
	}
	items := []string{}
	for _, item := range v.AsValueSlice() {
		if item.Type() != cty.String || item.IsNull() {
			return nil, false
		}
		items = append(items, item.AsString())
	}
	return items, true
}

func (r reader) textMap(name string, into *map[string]string) {
	v, e, ok := r.value(name)
	if !ok {
		return
	}
	m, bad, ok := stringMap(v)
	if !ok {
		if bad == "" {
			r.mismatch(name, e, "a map of strings", v)
		} else {
			r.errorf(e.Range(), "Wrong type", "The values of %q in %s are strings, and that of %q is not. %s", name, r.words.place, bad, `Write it in quotes.`)
		}
		return
	}
	*into = m
}

// stringMap takes a map or object of strings apart; bad is a key whose value
// is none.
func stringMap(v cty.Value) (m map[string]string, bad string, ok bool) {
	if !isMap(v) {
		return nil, "", false
	}
	m = make(map[string]string, v.LengthInt())
	values := v.AsValueMap()
	for _, key := range slices.Sorted(maps.Keys(values)) {
		item := values[key]
		if item.Type() != cty.String || item.IsNull() {
			return nil, key, false
		}
		m[key] = item.AsString()
	}
	return m, "", true
}

func isList(v cty.Value) bool {
	t := v.Type()
	return t.IsTupleType() || t.IsListType() || t.IsSetType()
}

func isMap(v cty.Value) bool {
	t := v.Type()
	return t.IsObjectType() || t.IsMapType()
}

// foundName is the type of a value that is not of the type wanted; of a list it
// tells the item that does not fit.
func foundName(want string, v cty.Value) string {
	item := cty.NilType
	switch {
	case strings.Contains(want, "list of strings"):
		item = cty.String
	case strings.Contains(want, "list of numbers"):
		item = cty.Number
	}
	if item != cty.NilType && isList(v) {
		for _, of := range v.AsValueSlice() {
			if of.IsNull() || of.Type() != item {
				return fmt.Sprintf("a list with %s in it", typeName(of))
			}
		}
	}
	return typeName(v)
}

func typeName(v cty.Value) string {
	switch t := v.Type(); {
	case v.IsNull():
		return "null"
	case t == cty.String:
		return "a string"
	case t == cty.Number:
		return "a number"
	case t == cty.Bool:
		return "a bool"
	case isList(v):
		return "a list"
	case isMap(v):
		return "a map"
	default:
		return t.FriendlyName()
	}
}

// advice says how to write a value of the wrong type when that is plain.
func advice(want string, got cty.Value) string {
	if got.IsNull() || !got.Type().IsPrimitiveType() {
		return ""
	}
	if got.Type() != cty.String {
		text := scalarText(got)
		switch want {
		case "a string":
			return fmt.Sprintf(" Write %q.", text)
		case "a duration":
			return fmt.Sprintf(" Write it with its unit, as in %q.", text+"s")
		case "a list of strings":
			return fmt.Sprintf(" Write [%q].", text)
		}
		return ""
	}
	text := got.AsString()
	_, notNumber := strconv.ParseFloat(text, 64)
	switch {
	case want == "a number" && notNumber == nil,
		want == "a bool" && (text == "true" || text == "false"):
		return fmt.Sprintf(" Write %s without quotes.", text)
	case want == "a list of strings":
		return fmt.Sprintf(" Write [%q].", text)
	}
	return ""
}

func scalarText(v cty.Value) string {
	if v.Type() == cty.Bool {
		return strconv.FormatBool(v.True())
	}
	return v.AsBigFloat().Text('g', 15)
}

func quotedList(list []string) string {
	quoted := make([]string, len(list))
	for i, s := range list {
		quoted[i] = strconv.Quote(s)
	}
	return strings.Join(quoted, ", ")
}

// labelled checks that a block has exactly the labels that names lists.
func (d *decoder) labelled(b *hclsyntax.Block, names ...string) bool {
	if len(b.Labels) == len(names) {
		return true
	}
	rng := b.TypeRange
	if len(b.LabelRanges) > len(names) {
		rng = b.LabelRanges[len(names)]
	}
	want := b.Type + " { … }"
	if len(names) > 0 {
		want = fmt.Sprintf("%s %q { … }", b.Type, strings.ToUpper(names[0]))
	}
	d.errorf(rng, "Wrong number of labels", "Write %s.", want)
	return false
}

// only reports a second block of a kind that may stand once, and returns the
// first one. at keeps where that was.
func (d *decoder) only(b *hclsyntax.Block, at **hcl.Range, first *hclsyntax.Block) *hclsyntax.Block {
	if *at != nil {
		d.errorf(b.TypeRange, "Duplicate block", "A block %q stands already at %s, and there can be only one.", b.Type, place(**at))
		return first
	}
	rng := b.TypeRange
	*at = &rng
	return b
}
