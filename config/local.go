package config

import (
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// local is a named expression of a locals block.
type local struct {
	attribute *hclsyntax.Attribute
	state     localState
	value     cty.Value // DynamicVal when a mistake was reported about it
}

// localState says how far the evaluation of a local has come.
type localState int

const (
	localFresh localState = iota
	localOpen             // one that it reads is being evaluated
	localDone
)

// localsBlock reads a locals block. Blocks of all files are one.
func (d *decoder) localsBlock(b *hclsyntax.Block) {
	if !d.labelled(b) {
		return
	}
	d.within(b, func() {
		for _, inner := range b.Body.Blocks {
			d.errorf(inner.TypeRange, "Unexpected block", "A locals block has lines NAME = VALUE only.")
		}
		for name, a := range b.Body.Attributes {
			if first, ok := d.locals[name]; ok {
				d.errorf(a.NameRange, "Duplicate local", "A local %q is declared already, at %s.", name, place(first.attribute.NameRange))
				continue
			}
			d.locals[name] = &local{attribute: a, value: cty.DynamicVal}
		}
	})
}

// evaluateLocals gives variables and locals to the context that tasks see.
func (d *decoder) evaluateLocals() {
	values := make(map[string]cty.Value, len(d.vars))
	for name, v := range d.vars {
		values[name] = v.value
	}
	vars := cty.ObjectVal(values)
	d.context.Variables = map[string]cty.Value{"var": vars, "local": cty.EmptyObjectVal}
	for _, name := range slices.Sorted(maps.Keys(d.locals)) {
		d.evaluateLocal(name, vars, nil)
	}
	all := make(map[string]cty.Value, len(d.locals))
	for name, l := range d.locals {
		all[name] = l.value
	}
	d.context.Variables["local"] = cty.ObjectVal(all)
}

// evaluateLocal evaluates a local after those that it reads. path are the
// locals that led here, for telling a cycle.
func (d *decoder) evaluateLocal(name string, vars cty.Value, path []string) {
	l := d.locals[name]
	switch l.state {
	case localDone:
		return
	case localOpen:
		d.cycle(append(path[slices.Index(path, name):], name))
		return
	}
	l.state = localOpen
	path = append(path, name)
	read := map[string]cty.Value{}
	for _, t := range l.attribute.Expr.Variables() {
		other := attributeOf(t)
		if t.RootName() != "local" || d.locals[other] == nil {
			continue
		}
		d.evaluateLocal(other, vars, path)
		read[other] = d.locals[other].value
	}
	l.state = localDone
	outer := d.context
	d.context = outer.NewChild()
	d.context.Variables = map[string]cty.Value{"var": vars, "local": cty.ObjectVal(read)}
	d.blocks = []string{"locals"}
	if v, ok := d.eval(l.attribute.Expr); ok {
		l.value = v
	}
	d.blocks = nil
	d.context = outer
}

// localKnown reports whether a local has a value to read.
func (d *decoder) localKnown(name string) bool {
	l := d.locals[name]
	return l.state == localDone && l.value.IsWhollyKnown()
}

func (d *decoder) cycle(names []string) {
	steps := make([]string, len(names))
	var at hcl.Range
	for i, name := range names {
		a := d.locals[name].attribute
		steps[i] = "local." + name + " at " + place(a.NameRange)
		if i == 0 {
			at = a.NameRange
		}
	}
	d.errorf(at, "Locals in a circle", "Each of these reads the next: %s.", strings.Join(steps, ", "))
}
