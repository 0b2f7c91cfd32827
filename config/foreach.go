package config

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// maxKeys bounds the tasks that one block makes.
const maxKeys = 10_000

// item is one key of a for_each and its value.
type item struct {
	key   string
	value cty.Value
}

// forEach evaluates for_each. The keys are what tells the tasks apart for
// ever, so only sets and maps will do: a list has positions, not keys.
func (d *decoder) forEach(e hclsyntax.Expression) []item {
	value, ok := d.keySet(e)
	if !ok {
		return nil
	}
	if value.IsMarked() || value.Type().IsSetType() && value.ContainsMarked() {
		d.errorf(e.Range(), "Sensitive for_each", "%s is sensitive, and keys of for_each become names, which are stored and shown. Put the keys apart from the secret values.", d.sensitiveNames(e))
		return nil
	}
	if value.IsNull() {
		d.errorf(e.Range(), "Null for_each", "for_each is null; for no tasks at all write an empty map, { }.")
		return nil
	}
	var items []item
	switch t := value.Type(); {
	case t.IsSetType() && (t.ElementType() == cty.String || value.LengthInt() == 0):
		for _, element := range value.AsValueSlice() {
			if element.IsNull() {
				d.errorf(e.Range(), "Null in for_each", "The set has a null in it, which is no key.")
				return nil
			}
			items = append(items, item{element.AsString(), element})
		}
	case isMap(value):
		for it := value.ElementIterator(); it.Next(); {
			key, element := it.Element()
			items = append(items, item{key.AsString(), element})
		}
	default:
		d.errorf(e.Range(), "Wrong type", "for_each takes a set of strings or a map, and this is %s.%s", forEachName(value), forEachAdvice(value))
		return nil
	}
	return d.checkKeys(e, items)
}

// keySet evaluates e. It refuses toset() of a list that has a value twice: the
// set would hide it, and one of the two was meant to be another.
func (d *decoder) keySet(e hclsyntax.Expression) (cty.Value, bool) {
	call, ok := e.(*hclsyntax.FunctionCallExpr)
	if !ok || call.Name != "toset" || len(call.Args) != 1 || call.ExpandFinal {
		return d.eval(e)
	}
	list, ok := d.eval(call.Args[0])
	if !ok {
		return list, false
	}
	set, err := d.loader.context.Functions["toset"].Call([]cty.Value{list})
	if err != nil || !isList(list) || list.IsNull() || list.ContainsMarked() {
		return d.eval(e)
	}
	if twice, ok := firstTwice(list); ok {
		d.errorf(e.Range(), "Duplicate key", "The key %q stands in for_each twice.", twice)
		return list, false
	}
	return set, true
}

func firstTwice(list cty.Value) (string, bool) {
	seen := map[string]bool{}
	for _, v := range list.AsValueSlice() {
		if v.IsNull() || v.Type() != cty.String {
			continue
		}
		if seen[v.AsString()] {
			return v.AsString(), true
		}
		seen[v.AsString()] = true
	}
	return "", false
}

func forEachName(v cty.Value) string {
	if t := v.Type(); t.IsSetType() {
		return "a set of " + t.ElementType().FriendlyName()
	}
	return typeName(v)
}

func forEachAdvice(v cty.Value) string {
	if !isList(v) || v.Type().IsSetType() || v.ContainsMarked() {
		return ""
	}
	if twice, ok := firstTwice(v); ok {
		return fmt.Sprintf(" As keys its values must differ, too: %q stands in it twice.", twice)
	}
	return " Write toset(…) around it."
}

// checkKeys bounds number and form of the keys and sorts them.
func (d *decoder) checkKeys(e hclsyntax.Expression, items []item) []item {
	if len(items) > maxKeys {
		d.errorf(e.Range(), "Too many keys", "for_each makes %d tasks; at most %d are allowed.", len(items), maxKeys)
		return nil
	}
	for _, it := range items {
		if utf8.RuneCountInString(it.key) > maxKeyLength {
			d.errorf(e.Range(), "Key too long", "The key %.40q… has more than %d characters.", it.key, maxKeyLength)
			return nil
		}
	}
	slices.SortFunc(items, func(a, b item) int { return strings.Compare(a.key, b.key) })
	return items
}

// quoteKey writes a key as a quoted HCL string, so that an address can be
// read back.
func quoteKey(key string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i, r := range key {
		switch {
		case r == '"' || r == '\\':
			b.WriteRune('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case (r == '$' || r == '%') && strings.HasPrefix(key[i+1:], "{"):
			b.WriteRune(r)
			b.WriteRune(r)
		case !unicode.IsPrint(r) && r > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, r)
		case !unicode.IsPrint(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
