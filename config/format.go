package config

import (
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/axctl/ax/plugins"
)

// wellFormed reports what of a value, or of a list's items, is not written in
// the attribute's format or is out of its bounds.
func (r reader) wellFormed(a plugins.Attribute, value any, e hclsyntax.Expression) bool {
	before := len(r.found)
	check := func(item any, e hclsyntax.Expression) {
		if wrong := a.Malformed(item); wrong != "" {
			r.errorf(e.Range(), "Invalid value", "%q in %s is %s.", a.Name, r.words.place, wrong)
		}
	}
	switch value := value.(type) {
	case []string:
		for i, item := range value {
			check(item, itemOf(e, i))
		}
	case []any:
		for i, item := range value {
			check(item, itemOf(e, i))
		}
	default:
		check(value, e)
	}
	return len(r.found) == before
}

// itemOf returns the text of a list's item, where the list is written out.
func itemOf(e hclsyntax.Expression, i int) hclsyntax.Expression {
	if list, ok := e.(*hclsyntax.TupleConsExpr); ok && i < len(list.Exprs) {
		return list.Exprs[i]
	}
	return e
}
