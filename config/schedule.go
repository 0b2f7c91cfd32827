package config

import (
	"errors"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/axctl/ax"
	"github.com/axctl/ax/schedule"
)

// scheduleKinds are the attributes of which a schedule block has exactly one.
var scheduleKinds = []string{"cron", "every", "at"}

// schedules reads the schedule blocks and compiles them, which finds what is
// wrong inside their texts.
func (r reader) schedules(t *draft) {
	t.spec.Schedules = nil
	var blocks []*hclsyntax.Block
	for _, b := range r.body.Blocks {
		if b.Type != "schedule" {
			continue
		}
		r.within(b, func() {
			spec := ax.ScheduleSpec{Timezone: t.timezone}
			in := r.read(b.Body, scheduleWords)
			if in.schedule(b, &spec) {
				t.spec.Schedules = append(t.spec.Schedules, spec)
				blocks = append(blocks, b)
			}
		})
	}
	if len(blocks) > 0 {
		r.compile(t.spec.Schedules, blocks)
	}
}

// defaultZone checks the time zone of a defaults block, once for all tasks.
func (r reader) defaultZone(t *draft) {
	a := r.body.Attributes["timezone"]
	if a == nil {
		return
	}
	if t.timezone == "" {
		r.errorf(a.Expr.Range(), "Empty timezone", `A timezone is an IANA name, as in "Europe/Berlin".`)
		t.timezone = "UTC"
		return
	}
	_, err := schedule.Compile([]ax.ScheduleSpec{{Every: minEvery, Timezone: t.timezone}})
	for _, fault := range scheduleErrors(err) {
		r.errorf(a.Expr.Range(), fault.Summary, "%s", fault.Detail)
		t.timezone = "UTC"
	}
}

// schedule reads one block; false when it cannot be compiled.
func (r reader) schedule(b *hclsyntax.Block, spec *ax.ScheduleSpec) bool {
	if !r.labelled(b) {
		return false
	}
	before := len(r.found)
	var kinds []string
	usable := true
	for _, kind := range scheduleKinds {
		if v, _, ok := r.value(kind); !v.IsNull() {
			kinds = append(kinds, kind)
			usable = usable && ok
		}
	}
	switch {
	case len(kinds) == 0:
		for name := range b.Body.Attributes {
			if !slices.Contains(scheduleWords.attributes, name) {
				return false // one that was meant to be a kind is told already
			}
		}
		r.errorf(b.TypeRange, "Empty schedule", "A schedule block has one of cron, every and at.")
		return false
	case len(kinds) > 1:
		r.errorf(b.Body.Attributes[kinds[1]].NameRange, "Contradiction", "A schedule block has only one of cron, every and at. For both, write two blocks: a task may have several.")
		return false
	}
	r.text("cron", &spec.Cron)
	r.duration("every", &spec.Every, minEvery)
	if at, ok := r.list("at", true); ok {
		spec.At = at
	}
	r.text("from", &spec.From)
	r.text("timezone", &spec.Timezone)
	if spec.Timezone == "" {
		r.errorf(b.Body.Attributes["timezone"].Expr.Range(), "Empty timezone", `A timezone is an IANA name, as in "Europe/Berlin". Without one it is that of defaults, else "UTC".`)
	}
	if !usable || r.found[before:].HasErrors() {
		return false
	}
	if spec.Cron == "" && spec.Every == 0 && len(spec.At) == 0 {
		r.errorf(b.Body.Attributes[kinds[0]].Expr.Range(), "Empty schedule", "%q says no time.", kinds[0])
		return false
	}
	return true
}

// compile reports what the schedule package finds, at the characters it means.
func (r reader) compile(specs []ax.ScheduleSpec, blocks []*hclsyntax.Block) {
	_, err := schedule.Compile(specs)
	for _, fault := range scheduleErrors(err) {
		b := blocks[fault.Index]
		r.within(b, func() {
			r.errorf(r.spot(b, fault), fault.Summary, "%s", fault.Detail)
		})
	}
	if err != nil {
		return
	}
	for i, spec := range specs {
		for _, w := range schedule.Warnings(spec) {
			at := schedule.Error{Attribute: w.Attribute, Column: w.Column, Len: w.Len}
			r.within(blocks[i], func() {
				r.warnf(r.spot(blocks[i], &at), w.Summary, "%s", w.Detail)
			})
		}
	}
}

func scheduleErrors(err error) []*schedule.Error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []*schedule.Error
		for _, e := range joined.Unwrap() {
			all = append(all, scheduleErrors(e)...)
		}
		return all
	}
	var one *schedule.Error
	if errors.As(err, &one) {
		return []*schedule.Error{one}
	}
	return nil
}

// spot returns where a fault is: the characters themselves when the attribute
// is written as plain text, else its whole expression.
func (r reader) spot(b *hclsyntax.Block, fault *schedule.Error) hcl.Range {
	a := b.Body.Attributes[fault.Attribute]
	if a == nil {
		return b.TypeRange
	}
	e := a.Expr
	if list, ok := e.(*hclsyntax.TupleConsExpr); ok && fault.Attribute == "at" && fault.Item < len(list.Exprs) {
		e = list.Exprs[fault.Item]
	}
	rng := e.Range()
	text, ok := literal(e)
	template, isText := e.(*hclsyntax.TemplateExpr)
	if !ok || !isText || fault.Column == 0 || fault.Len == 0 {
		return rng
	}
	inner := template.Parts[0].Range()
	if text.Type() != cty.String || inner.End.Byte-inner.Start.Byte != len(text.AsString()) {
		return rng // an escape moves what stands after it
	}
	return stretch(inner, fault.Column-1, fault.Len)
}

// stretch returns n bytes of a one-line range of ASCII from byte skip on.
func stretch(rng hcl.Range, skip, n int) hcl.Range {
	if rng.Start.Line != rng.End.Line || skip+n > rng.End.Byte-rng.Start.Byte {
		return rng
	}
	rng.Start.Byte += skip
	rng.Start.Column += skip
	rng.End = rng.Start
	rng.End.Byte += n
	rng.End.Column += n
	return rng
}
