package config

import (
	"fmt"
	"math/big"
	"regexp"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/axctl/ax"
)

// classSeen is an error_class block that was read.
type classSeen struct {
	ax.ErrorClassSpec
	header hcl.Range
}

// taskClasses returns what a task's failures are classed by: its own blocks, and
// those of the configuration for the classes that it has none of, without the
// codes that it classes itself.
func (r reader) taskClasses() []ax.ErrorClassSpec {
	var blocks []*hclsyntax.Block
	for _, b := range r.body.Blocks {
		if b.Type == "error_class" {
			blocks = append(blocks, b)
		}
	}
	own := r.errorClasses(blocks)
	var list []ax.ErrorClassSpec
	for _, class := range ax.MappedClasses {
		is := func(c classSeen) bool { return c.Class == class }
		if i := slices.IndexFunc(own, is); i >= 0 {
			list = append(list, own[i].ErrorClassSpec)
		} else if i := slices.IndexFunc(r.loader.classes, is); i >= 0 {
			if c := inherited(r.loader.classes[i].ErrorClassSpec, own); !blank(c) {
				list = append(list, c)
			}
		}
	}
	return list
}

// inherited is c without the codes that own has.
func inherited(c ax.ErrorClassSpec, own []classSeen) ax.ErrorClassSpec {
	left := func(codes []int, of func(classSeen) []int) []int {
		var kept []int
		for _, code := range codes {
			if !slices.ContainsFunc(own, func(o classSeen) bool { return slices.Contains(of(o), code) }) {
				kept = append(kept, code)
			}
		}
		return kept
	}
	c.ExitCodes = left(c.ExitCodes, exitCodes)
	c.HTTPStatus = left(c.HTTPStatus, httpStatus)
	return c
}

func exitCodes(c classSeen) []int  { return c.ExitCodes }
func httpStatus(c classSeen) []int { return c.HTTPStatus }

func blank(c ax.ErrorClassSpec) bool {
	return len(c.ExitCodes)+len(c.HTTPStatus) == 0 && c.Match == ""
}

// errorClasses reads the error_class blocks of one place, each class once and
// each code in one class.
func (d *decoder) errorClasses(blocks []*hclsyntax.Block) []classSeen {
	var seen []classSeen
	for _, b := range blocks {
		if !d.labelled(b, "class") || !d.classLabel(b) {
			continue
		}
		c := classSeen{ax.ErrorClassSpec{Class: ax.ErrorClass(b.Labels[0])}, b.DefRange()}
		if i := slices.IndexFunc(seen, func(o classSeen) bool { return o.Class == c.Class }); i >= 0 {
			d.errorf(b.TypeRange, "Duplicate block", "A block error_class %q stands already at %s, and there can be only one a class.", c.Class, place(seen[i].header))
			continue
		}
		before := len(d.found)
		d.within(b, func() {
			in := d.read(b.Body, classWords)
			in.codes("exit_codes", &c.ExitCodes, 1, 255)
			in.codes("http_status", &c.HTTPStatus, 100, 599)
			in.match(&c.Match)
			in.classed("exit_codes", c, seen, exitCodes)
			in.classed("http_status", c, seen, httpStatus)
		})
		if blank(c.ErrorClassSpec) && !d.found[before:].HasErrors() {
			d.errorf(b.DefRange(), "Nothing is classed", "error_class %q says neither exit_codes nor http_status nor match.", c.Class)
		}
		seen = append(seen, c)
	}
	return seen
}

// classLabel checks the class that a block gives.
func (d *decoder) classLabel(b *hclsyntax.Block) bool {
	class := ax.ErrorClass(b.Labels[0])
	at := b.LabelRanges[0]
	classes := quotedList(asStrings(ax.MappedClasses))
	switch {
	case slices.Contains(ax.MappedClasses, class):
		return true
	case class == ax.ClassFailed:
		d.errorf(at, "Invalid class", "What no error_class block classes is of class %q already. There are: %s.", class, classes)
	case class == ax.ClassTimeout || class == ax.ClassLost || class == ax.ClassCancelled:
		d.errorf(at, "Invalid class", "That an attempt ended as %q is found by ax itself, so no failure is classed so. There are: %s.", class, classes)
	default:
		detail := fmt.Sprintf("There is no error class %q to give. There are: %s.", class, classes)
		if near := nearest(string(class), asStrings(ax.MappedClasses)); near != "" {
			detail += fmt.Sprintf(" Did you mean %q?", near)
		}
		d.errorf(at, "Invalid class", "%s", detail)
	}
	return false
}

// codes reads a list of whole numbers, in rising order and each once: the order
// of the text means nothing.
func (r reader) codes(name string, into *[]int, low, high int) {
	v, e, ok := r.value(name)
	if !ok {
		return
	}
	if !isList(v) {
		r.mismatch(name, e, "a list of numbers", v)
		return
	}
	var codes []int
	for _, item := range v.AsValueSlice() {
		if item.IsNull() || item.Type() != cty.Number {
			r.mismatch(name, e, "a list of numbers", v)
			return
		}
		n, accuracy := item.AsBigFloat().Int64()
		if accuracy != big.Exact || n < int64(low) || n > int64(high) {
			r.errorf(e.Range(), "Out of bounds", "%q in %s has whole numbers from %d to %d; %s is none of them.", name, r.words.place, low, high, scalarText(item))
			return
		}
		codes = append(codes, int(n))
	}
	slices.Sort(codes)
	*into = slices.Compact(codes)
}

// match reads a regular expression.
func (r reader) match(into *string) {
	r.text("match", into)
	a := r.body.Attributes["match"]
	if a == nil || *into == "" {
		return
	}
	if n := len(*into); n > ax.MaxMatchBytes {
		r.errorf(a.Expr.Range(), "Out of bounds", "%q in %s has at most %d bytes, and this one has %d.", "match", r.words.place, ax.MaxMatchBytes, n)
		return
	}
	if _, err := regexp.Compile(*into); err != nil {
		r.errorf(a.Expr.Range(), "Invalid regular expression", "%q in %s: %v. The syntax is RE2's (https://github.com/google/re2/wiki/Syntax).", "match", r.words.place, err)
	}
}

// classed refuses a code that another class has.
func (r reader) classed(name string, c classSeen, seen []classSeen, of func(classSeen) []int) {
	for _, other := range seen {
		for _, code := range of(c) {
			if slices.Contains(of(other), code) {
				r.errorf(r.body.Attributes[name].Expr.Range(), "Contradiction", "%d in %s is of class %q already, at %s.", code, name, other.Class, place(other.header))
				return
			}
		}
	}
}
