package config

import (
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/axctl/ax"
)

const (
	defaultStack = "default"
	// maxNameLength bounds names, in characters; maxKeyLength a for_each key.
	maxNameLength = 100
	maxKeyLength  = 200
	nameRule      = "a letter, then letters, digits, _ and -, at most 100 of them"
	// minEvery is the shortest interval; due slots are looked for once a second.
	minEvery ax.Duration = 1000
)

// draft is a task in the making: built-in defaults, then the defaults block,
// then the task's own words are written over one another.
type draft struct {
	spec     ax.TaskSpec
	timezone string // of schedules that do not say
	// retryBlock says that a retry block was seen, which widens retry.on.
	retryBlock bool
}

// common reads what a task and the defaults block share. What a body says of
// labels replaces all labels of defaults; a retry or misfire block replaces
// only the attributes that it sets.
func (r reader) common(t *draft) {
	r.duration("timeout", &t.spec.Timeout, 0)
	r.duration("kill_after", &t.spec.KillAfter, 0)
	r.duration("start_within", &t.spec.StartWithin, 0)
	r.heartbeat(&t.spec.Heartbeat)
	r.integer("concurrency", &t.spec.Concurrency, 1, 10_000)
	choice(r, "overlap", &t.spec.Overlap, ax.Overlaps)
	r.pool(&t.spec.Pool)
	r.boolean("idempotent", &t.spec.Idempotent)
	r.integer("freeze_after", &t.spec.FreezeAfter, 0, 10_000)
	r.labels(&t.spec.Labels)
	r.text("owner", &t.spec.Owner)
	r.text("timezone", &t.timezone)
	if b := r.single("retry"); b != nil {
		r.within(b, func() { r.retry(b, t) })
	}
	if b := r.single("misfire"); b != nil {
		r.within(b, func() { r.misfire(b, &t.spec.Misfire) })
	}
}

// defaults reads the defaults block into the base of all tasks.
func (d *decoder) defaults(b *hclsyntax.Block) {
	if !d.labelled(b) {
		return
	}
	d.within(b, func() {
		r := d.read(b.Body, defaultsWords)
		r.common(&d.base)
		r.defaultZone(&d.base)
	})
}

// file decodes the tasks of one file and refuses what is no known block.
func (d *decoder) file(s *source) {
	d.context = d.loader.context
	for _, b := range s.blocks() {
		switch {
		case b.Type == "task":
			d.task(b)
		case !slices.Contains(topWords.blocks, b.Type):
			summary, detail := topWords.explain(b.Type, true)
			d.errorf(b.TypeRange, summary, "%s", detail)
		}
	}
	for name, a := range s.body.Attributes {
		if s.brokenAt >= 0 && a.SrcRange.End.Byte > s.brokenAt {
			continue
		}
		d.errorf(a.NameRange, "Unexpected attribute", "%q stands outside of any block. Values of variables stand in *.auto.axvars files, named values in a locals block.", name)
	}
}

// task decodes a task block into one definition, or one a key of for_each.
func (d *decoder) task(b *hclsyntax.Block) {
	if !d.labelled(b, "name") || !d.named(b) {
		return
	}
	name := cty.NormalizeString(b.Labels[0])
	d.address = ax.Address(ax.KindTask, name)
	d.seen = append(d.seen, seen{d.address, b.DefRange()})
	d.within(b, func() {
		r := d.read(b.Body, taskWords)
		each, ok := b.Body.Attributes["for_each"]
		if !ok {
			d.definition(r, b, name)
			return
		}
		outer := d.context
		for _, item := range d.forEach(each.Expr) {
			d.context = outer.NewChild()
			d.context.Variables = map[string]cty.Value{"each": cty.ObjectVal(map[string]cty.Value{"key": cty.StringVal(item.key), "value": item.value})}
			instance := fmt.Sprintf("%s[%s]", name, quoteKey(item.key))
			d.address = ax.Address(ax.KindTask, instance)
			d.definition(r, b, instance)
		}
		d.context = outer
	})
	d.address = ""
}

// definition decodes one task. It is kept only when nothing was wrong.
func (d *decoder) definition(r reader, b *hclsyntax.Block, name string) {
	before := len(d.found)
	t := d.base
	r.common(&t)
	r.integer("priority", &t.spec.Priority, -ax.MaxPriority, ax.MaxPriority)
	r.boolean("enabled", &t.spec.Enabled)
	r.text("description", &t.spec.Description)
	r.schedules(&t)
	r.handler(b, &t.spec.Handler)
	t.spec.ErrorClasses = r.taskClasses()
	if d.found[before:].HasErrors() {
		return
	}
	spec := t.spec
	d.definitions = append(d.definitions, ax.Definition{Kind: ax.KindTask, Name: name, Task: &spec, Source: sourceOf(b)})
}

// sourceOf is where a block begins.
func sourceOf(b *hclsyntax.Block) ax.Range {
	header := b.DefRange()
	return ax.Range{Filename: header.Filename, Start: ax.Pos(header.Start), End: ax.Pos(header.End)}
}

// minHeartbeat is the shortest heartbeat: progress is told once a second.
const minHeartbeat ax.Duration = 1000

// heartbeat reads how long an attempt may be silent; "0s" is for ever.
func (r reader) heartbeat(into *ax.Duration) {
	before := *into
	r.duration("heartbeat", into, 0)
	if *into > 0 && *into < minHeartbeat {
		r.errorf(r.body.Attributes["heartbeat"].Expr.Range(), "Out of bounds", "%q in %s is at least %q, or \"0s\" for none.", "heartbeat", r.words.place, minHeartbeat)
		*into = before
	}
}

// pool reads the name of a pool, which axd's -pools can spell.
func (r reader) pool(into *string) {
	v, e, ok := r.value("pool")
	switch {
	case !ok:
	case v.Type() != cty.String:
		r.mismatch("pool", e, "a string", v)
	case !validName(v.AsString()):
		r.errorf(e.Range(), "Invalid name", "%q is no name of a pool: %s.", v.AsString(), nameRule)
	default:
		*into = v.AsString()
	}
}

// retry reads a retry block.
func (r reader) retry(b *hclsyntax.Block, t *draft) {
	spec := &t.spec.Retry
	if !t.retryBlock {
		t.retryBlock, spec.On = true, ax.RetryBlockOn
	}
	if !r.labelled(b) {
		return
	}
	in := r.read(b.Body, retryWords)
	in.integer("max", &spec.Max, 0, 1000)
	in.duration("initial", &spec.Initial, 0)
	in.float("factor", &spec.Factor, 1, 100)
	in.duration("max_interval", &spec.MaxInterval, 0)
	in.float("jitter", &spec.Jitter, 0, 1)
	in.duration("within", &spec.Within, 1)
	in.retryOn(&spec.On)
	if a := b.Body.Attributes["initial"]; a != nil && spec.Initial > spec.MaxInterval {
		r.errorf(a.Expr.Range(), "Contradiction", "The first wait, initial = %q, is longer than the longest, max_interval = %q. Set max_interval as well.", spec.Initial, spec.MaxInterval)
	}
}

// retryOn reads the error classes, in the order root lists them: the order of
// the text means nothing.
func (r reader) retryOn(into *[]ax.ErrorClass) {
	list, ok := r.list("on", false)
	if !ok {
		return
	}
	at := r.body.Attributes["on"].Expr.Range()
	on := []ax.ErrorClass{}
	for _, class := range ax.RetryClasses {
		if slices.Contains(list, string(class)) {
			on = append(on, class)
		}
	}
	for _, word := range list {
		switch class := ax.ErrorClass(word); {
		case slices.Contains(ax.RetryClasses, class):
		case class == ax.ClassPermanent:
			r.errorf(at, "Invalid value", "A permanent failure is one that no retry can mend, so %q cannot be retried.", word)
		case class == ax.ClassCancelled:
			r.errorf(at, "Invalid value", "What somebody cancelled is not started again, so %q cannot be retried.", word)
		default:
			r.errorf(at, "Invalid value", "%s", r.notOneOf("on", word, asStrings(ax.RetryClasses)))
		}
	}
	*into = on
}

// misfire reads a misfire block.
func (r reader) misfire(b *hclsyntax.Block, spec *ax.MisfireSpec) {
	if !r.labelled(b) {
		return
	}
	in := r.read(b.Body, misfireWords)
	choice(in, "policy", &spec.Policy, ax.MisfirePolicies)
	in.duration("grace", &spec.Grace, 0)
	in.integer("max", &spec.Max, 1, 10_000)
	choice(in, "on_resume", &spec.OnResume, ax.MisfirePolicies)
}

// labels reads labels, which are selected by, so their names are plain.
func (r reader) labels(into *map[string]string) {
	r.textMap("labels", into)
	a := r.body.Attributes["labels"]
	if a == nil {
		return
	}
	for name := range *into {
		if !plainLabel(name) {
			r.errorf(a.Expr.Range(), "Invalid label", "The label name %q is not of letters, digits, and . _ - /.", name)
		}
	}
	if len(*into) == 0 {
		*into = nil
	}
}

func plainLabel(name string) bool {
	for _, b := range []byte(name) {
		if !wordByte(b) && b != '.' && b != '/' || b >= utf8.RuneSelf {
			return false
		}
	}
	return name != ""
}

// single returns the block of a kind that may stand once, nil without one.
func (r reader) single(kind string) *hclsyntax.Block {
	var first *hclsyntax.Block
	var at *hcl.Range
	for _, b := range r.body.Blocks {
		if b.Type == kind {
			first = r.only(b, &at, first)
		}
	}
	return first
}

// named checks the first label of a block, a name.
func (d *decoder) named(b *hclsyntax.Block) bool {
	if validName(b.Labels[0]) {
		return true
	}
	d.errorf(b.LabelRanges[0], "Invalid name", "%q is no name: %s.", b.Labels[0], nameRule)
	return false
}

func validName(name string) bool {
	return hclsyntax.ValidIdentifier(name) && utf8.RuneCountInString(name) <= maxNameLength
}
