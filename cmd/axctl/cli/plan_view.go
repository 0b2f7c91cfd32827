package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/axctl/ax"
	"github.com/axctl/ax/planner"
	"github.com/axctl/ax/plugins/builtin/schemas"
	"github.com/axctl/ax/plugins/folder"
)

// human shows a plan so that it fits a review: changed objects only, of them
// changed attributes only, then what the change does to time.
func (r planResult) human(s *screen) {
	p := r.plan
	if p.Empty() {
		s.line("No changes. Stack %s is as configured (serial %d).", p.Stack, p.BaseSerial)
	} else {
		in := ""
		if r.store != "" {
			in = " in " + r.store
		}
		s.line("Stack %s%s (serial %d)", p.Stack, in, p.BaseSerial)
		s.line("")
		wide := 0
		for _, ch := range p.Changes {
			wide = min(max(wide, utf8.RuneCountInString(ch.Address)), 56)
		}
		for _, ch := range p.Changes {
			s.change(ch, wide, r.known)
			s.line("")
		}
	}
	for _, rename := range p.Renames {
		s.line("%s has the definition of %s, which is deleted. If it is the same task under a new name,", clean(rename.To), clean(rename.From))
		s.line("know that its history stays with the old name.")
		s.line("")
	}
	if len(p.Held) > 0 {
		if p.Empty() {
			s.line("")
		}
		s.line("Held, left as they are:")
		for _, h := range p.Held {
			hold := ax.Hold{Kind: h.Kind, Who: h.Who, SinceMs: h.SinceMs, UntilMs: h.UntilMs, Reason: h.Reason}
			s.line("  %-30s %s", clean(h.Address), s.hold(hold, offsetZone(h.Since)))
		}
		s.line("")
	}
	if p.Counts.Deleted > 0 && p.BaseOrigin != "" && p.BaseOrigin != p.Origin {
		s.line("%s The last apply of stack %s was from %s; what only that declares is deleted.", s.paint(yellow, "!"), p.Stack, clean(p.BaseOrigin))
	}
	for _, note := range r.notes {
		s.line("%s", note)
	}
	if !p.Empty() {
		s.line("%s", s.paint(bold, fmt.Sprintf("Plan: %d to add, %d to change, %d to delete.", p.Counts.Added, p.Counts.Changed, p.Counts.Deleted)))
	}
}

// change shows one object's change; known finds schemas of handlers.
func (s *screen) change(ch planner.PlannedChange, wide int, known *catalog) {
	st, symbol, versions := actionWords(ch)
	head := fmt.Sprintf("  %s %-*s", s.paint(st, symbol), wide, clean(ch.Address))
	if ch.Source != "" {
		head += "   " + s.source(ch.Source)
	}
	s.line("%s   %s", head, versions)
	names := 0
	shown := shownAttributes(ch, known)
	for _, a := range shown {
		names = min(max(names, utf8.RuneCountInString(a.Path)), maxName)
	}
	for _, a := range shown {
		if before, after, ok := manyLines(a); ok {
			s.lineDiff(a.Path, before, after)
		} else {
			s.line("      %s", s.attribute(a, ch.Action, names))
		}
	}
	e := ch.Effects
	if ch.Kind == ax.KindTask {
		s.line("      next fire   %s", s.nextFire(ch))
	}
	if len(e.Then) > 0 {
		s.line("      then        %s", s.then(e))
	}
	if e.Backlog != nil {
		s.line("      backlog     %s", s.backlog(*e.Backlog))
	}
	for _, f := range e.InFlight {
		s.line("      in flight   %s", inFlight(f))
	}
	for _, note := range e.Notes {
		s.line("      note        %s", clean(note))
	}
	for _, w := range e.Warnings {
		s.line("      %s %s", s.paint(yellow, "!"), clean(w))
	}
}

// shownAttributes leaves out what nobody wrote: of a new object the defaults of
// its handler's body, and the path of a plugin that is called by its name.
func shownAttributes(ch planner.PlannedChange, known *catalog) []planner.AttributeDiff {
	if ch.Action != ax.ActionCreate {
		return ch.Attributes
	}
	defaults := handlerDefaults(ch, known)
	ownPath, _ := json.Marshal(folder.Prefix + ch.Name)
	var shown []planner.AttributeDiff
	for _, a := range ch.Attributes {
		key, inBody := strings.CutPrefix(a.Path, "handler.")
		if inBody && bytes.Equal(defaults[key], a.After) || ch.Kind == ax.KindPlugin && a.Path == "path" && bytes.Equal(ownPath, a.After) {
			continue
		}
		shown = append(shown, a)
	}
	return shown
}

// handlerDefaults returns the defaults of the body of the object's handler.
func handlerDefaults(ch planner.PlannedChange, known *catalog) map[string]json.RawMessage {
	defaults := map[string]json.RawMessage{}
	var spec ax.TaskSpec
	if json.Unmarshal(ch.Definition, &spec) != nil {
		return defaults
	}
	s, ok := schemas.Find(spec.Handler.Name)
	if !ok && known != nil {
		s, _ = known.find(spec.Handler.Name)
	}
	for _, a := range s.Attributes {
		defaults[a.Name] = a.Default
	}
	return defaults
}

func actionWords(ch planner.PlannedChange) (st style, symbol, versions string) {
	switch ch.Action {
	case ax.ActionCreate:
		if ch.ToVersion > 1 {
			return green, "+", fmt.Sprintf("v%d, made again", ch.ToVersion)
		}
		return green, "+", fmt.Sprintf("v%d", ch.ToVersion)
	case ax.ActionUpdate:
		return yellow, "~", fmt.Sprintf("v%d -> v%d", ch.FromVersion, ch.ToVersion)
	case ax.ActionDelete:
		return red, "-", fmt.Sprintf("v%d -> deleted", ch.FromVersion)
	default:
		panic("unknown action " + string(ch.Action))
	}
}

// source writes file:line with a short path.
func (s *screen) source(text string) string {
	i := strings.LastIndexByte(text, ':')
	if i < 0 {
		return clean(s.short(text))
	}
	return clean(s.short(text[:i]) + text[i:])
}

// manyLines reports whether an attribute is a text that has changed and has
// more than one line, such as a script.
func manyLines(a planner.AttributeDiff) (before, after string, ok bool) {
	if json.Unmarshal(a.Before, &before) != nil || json.Unmarshal(a.After, &after) != nil {
		return "", "", false
	}
	return before, after, strings.Contains(strings.TrimRight(before, "\n"), "\n") || strings.Contains(strings.TrimRight(after, "\n"), "\n")
}

// maxDiffLines bounds the lines shown of one text.
const maxDiffLines = 16

// lineDiff shows the lines of a text that differ.
func (s *screen) lineDiff(path, before, after string) {
	s.line("      %s %s", s.paint(yellow, "~"), clean(path))
	changed := slices.DeleteFunc(strings.Split(string(diff.Diff("", []byte(before), "", []byte(after))), "\n"), func(l string) bool {
		return l == "" || strings.HasPrefix(l, "---") || strings.HasPrefix(l, "+++") || l[0] != '+' && l[0] != '-'
	})
	for i, l := range changed {
		if i == maxDiffLines {
			s.line("          ... and %d lines more", len(changed)-i)
			break
		}
		st := green
		if l[0] == '-' {
			st = red
		}
		s.line("          %s %s", s.paint(st, l[:1]), cut(clean(l[1:]), 0))
	}
}

// attribute shows one attribute: its value where the object is new, else
// before and after.
func (s *screen) attribute(a planner.AttributeDiff, action ax.Action, wide int) string {
	name := fmt.Sprintf("%-*s", wide, clean(a.Path))
	switch {
	case action == ax.ActionCreate || a.Before == nil:
		return fmt.Sprintf("%s %s   %s", s.paint(green, "+"), name, cut(value(a.After), 0))
	case a.After == nil:
		return fmt.Sprintf("%s %s   %s", s.paint(red, "-"), name, cut(value(a.Before), 0))
	default:
		before, after := apart(value(a.Before), value(a.After))
		return fmt.Sprintf("%s %s   %s -> %s", s.paint(yellow, "~"), name, before, after)
	}
}

const (
	// maxName is how wide the column of attributes gets: as the longest name of
	// the language, error_class.permanent.http_status.
	maxName = 33
	// maxValue bounds a value on the screen.
	maxValue = 72
)

// value shows a JSON value on one line.
func value(v json.RawMessage) string {
	if len(v) == 0 {
		return "none"
	}
	return clean(string(v))
}

// apart cuts two long values around where they begin to differ.
func apart(before, after string) (string, string) {
	common := 0
	for common < len(before) && common < len(after) && before[common] == after[common] {
		common++
	}
	from := max(0, common-maxValue/2)
	return cut(before, from), cut(after, from)
}

// cut shows a text from an offset on, within maxValue.
func cut(text string, from int) string {
	if len(text) <= maxValue {
		return text
	}
	for from > 0 && !utf8.RuneStart(text[from]) {
		from--
	}
	text = text[from:]
	if from > 0 {
		text = "..." + text
	}
	if len(text) > maxValue {
		end := maxValue
		for !utf8.RuneStart(text[end]) {
			end--
		}
		text = text[:end] + "..."
	}
	return text
}

// nextFire shows what becomes of the next firing.
func (s *screen) nextFire(ch planner.PlannedChange) string {
	e := ch.Effects
	before := s.instant(e.NextFireBefore, e.NextFireBeforeMs)
	after := s.instant(e.NextFireAfter, e.NextFireAfterMs)
	if e.NextFireAfterMs == 0 {
		after += neverFires(ch)
	}
	switch {
	case ch.Action == ax.ActionCreate:
		return after
	case e.NextFireBeforeMs == e.NextFireAfterMs:
		return after + unmoved(e)
	case e.Difference != "":
		return fmt.Sprintf("%s -> %s    %s", before, after, e.Difference)
	default:
		return fmt.Sprintf("%s -> %s", before, after)
	}
}

// neverFires says why an object has no next firing, where its definition tells.
func neverFires(ch planner.PlannedChange) string {
	var spec ax.TaskSpec
	switch {
	case ch.Action == ax.ActionDelete || json.Unmarshal(ch.Definition, &spec) != nil:
		return ""
	case len(spec.Schedules) == 0:
		return ": it has no schedule"
	case !spec.Enabled:
		return ": it is disabled"
	default:
		return ""
	}
}

func unmoved(e planner.Effects) string {
	if e.NextFireAfterMs == 0 {
		return ""
	}
	return " (not moved)"
}

// instant shows an instant of a plan, which carries its zone's offset.
func (s *screen) instant(text string, ms int64) string {
	if ms == 0 {
		return "none"
	}
	return s.at(ms, offsetZone(text))
}

// offsetZone is the zone of an RFC 3339 text, as far as the text tells.
func offsetZone(text string) *time.Location {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.UTC
	}
	return t.Location()
}

// then lists firings after the next one, with offset only where it differs
// from the next one's.
func (s *screen) then(e planner.Effects) string {
	at := func(text string, ms int64) time.Time { return time.UnixMilli(ms).In(s.place(offsetZone(text))) }
	next := at(e.NextFireAfter, e.NextFireAfterMs)
	_, offset := next.Zone()
	var parts []string
	for _, f := range e.Then {
		t := at(f.Due, f.DueMs)
		layout := "01-02 15:04"
		if t.Second() != 0 || next.Second() != 0 {
			layout = "01-02 15:04:05"
		}
		if t.Year() != next.Year() {
			layout = "2006-" + layout
		}
		if _, own := t.Zone(); own != offset {
			layout += " -07:00"
		}
		parts = append(parts, t.Format(layout))
	}
	return strings.Join(parts, ", ")
}

// backlog tells what becomes of slots that were due and not claimed.
func (s *screen) backlog(b planner.Backlog) string {
	stretch := fmt.Sprintf("slots of v%d from %s to %s", b.Version, s.instant(b.First, b.FirstMs), s.instant(b.Last, b.LastMs))
	if b.Left {
		return stretch + " are left to axd, under the new version"
	}
	var parts []string
	if b.Starts > 0 {
		parts = append(parts, fmt.Sprintf("%d to start late", b.Starts))
	}
	if b.Skipped != 0 {
		n := fmt.Sprint(b.Skipped)
		if b.Skipped < 0 {
			n = fmt.Sprintf("over %d", ax.MaxCountedSlots)
		}
		parts = append(parts, fmt.Sprintf("%s skipped (%s)", n, b.Reason))
	}
	return fmt.Sprintf("%s: %s", stretch, strings.Join(parts, ", "))
}

// inFlight tells what becomes of open instances.
func inFlight(f planner.InFlight) string {
	var ids []string
	var versions []string
	for _, in := range f.Instances {
		ids = append(ids, fmt.Sprint(in.ID))
		if v := fmt.Sprintf("v%d", in.Version); !slices.Contains(versions, v) {
			versions = append(versions, v)
		}
	}
	who, ends := "instance "+strings.Join(ids, ", "), "ends on"
	if f.Count > 1 {
		who, ends = fmt.Sprintf("%d instances (%s)", f.Count, strings.Join(ids, ", ")), "end on"
		if f.Count > len(ids) {
			who = fmt.Sprintf("%d instances (%s, ...)", f.Count, strings.Join(ids, ", "))
		}
	}
	switch f.Outcome {
	case planner.OutcomeEnds:
		return fmt.Sprintf("%s %s %s", who, ends, strings.Join(versions, ", "))
	case planner.OutcomeSkip:
		return who + " waiting, will be skipped"
	default:
		panic("unknown outcome " + string(f.Outcome))
	}
}
