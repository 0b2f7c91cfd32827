package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/axctl/ax"
)

// faults is an error that is all diagnostics of one input.
type faults ax.Diagnostics

func (f faults) Error() string {
	return fmt.Sprintf("%d faults", len(f))
}

// diagnose turns the error a command ended with into what people are told.
func diagnose(err error) ax.Diagnostics {
	var all faults
	var one ax.Diagnostic
	if errors.As(err, &all) {
		return ax.Diagnostics(all)
	}
	if errors.As(err, &one) {
		return ax.Diagnostics{one}
	}
	d := ax.Diagnostic{Severity: ax.SeverityError, Summary: upper(err.Error())}
	var hint *ax.HintError
	var stale *ax.StaleError
	switch {
	case errors.As(err, &hint):
		d.Detail = hint.Hint
	case errors.As(err, &stale):
		d.Detail = staleDetail(stale)
		if stale.Address == "" {
			d.Summary = fmt.Sprintf("Somebody else has applied: the stack was read at serial %d and is now at %d", stale.Read, stale.Found)
		}
	case errors.Is(err, ax.ErrStale):
		d.Detail = "Nothing was changed. Run axctl plan again and look at what it says."
	case errors.Is(err, ax.ErrBusy):
		d.Detail = "Another program holds the store's writer. Nothing was changed; try again."
	}
	return ax.Diagnostics{d}
}

// staleDetail says who overtook an apply.
func staleDetail(e *ax.StaleError) string {
	who := ""
	if e.Who != "" {
		who = " by " + clean(e.Who)
	}
	if e.AtMs != 0 {
		who += " at " + when(e.AtMs, time.UTC)
	}
	if who != "" {
		who = "It was changed" + who + ". "
	}
	return who + "Nothing was changed now. Run axctl plan again and look at what it says."
}

// sentence ends a text with a full stop.
func sentence(text string) string {
	return strings.TrimRight(upper(text), ".") + "."
}

// upper makes the first letter of a sentence a capital, unless its first word
// is a name of something (a flag, an address, a path).
func upper(text string) string {
	word, _, _ := strings.Cut(text, " ")
	if strings.ContainsAny(word, "./-\"=_") || strings.HasPrefix(word, "axctl") || strings.HasPrefix(word, "axd") {
		return text
	}
	r, size := utf8.DecodeRuneInString(text)
	return strings.ToUpper(string(r)) + text[size:]
}

// maxPlaces is how many more places of one diagnostic are listed.
const maxPlaces = 5

// diagnostics writes them all. What says the same of several places, as of every
// task whose handler is not known, is said once, with the other places.
func (s *screen) diagnostics(ds ax.Diagnostics) {
	type text struct {
		severity        ax.Severity
		summary, detail string
	}
	of := func(d ax.Diagnostic) text { return text{d.Severity, d.Summary, d.Detail} }
	more := map[text][]ax.Diagnostic{} // those with a place, without the first
	var first []ax.Diagnostic
	for _, d := range ds {
		others, said := more[of(d)]
		switch {
		case d.Range == nil:
			first = append(first, d)
		case said:
			more[of(d)] = append(others, d)
		default:
			first, more[of(d)] = append(first, d), nil
		}
	}
	for _, d := range first {
		if others := more[of(d)]; len(others) > 0 && d.Range != nil {
			d.Detail += s.otherPlaces(d, others)
		}
		s.diagnostic(d)
	}
}

// otherPlaces says where else a diagnostic holds. The tasks of one for_each have
// one place.
func (s *screen) otherPlaces(d ax.Diagnostic, others []ax.Diagnostic) string {
	place := func(d ax.Diagnostic) string {
		return fmt.Sprintf("%s line %d", s.short(d.Range.Filename), d.Range.Start.Line)
	}
	var places []string
	for _, o := range others {
		if p := place(o); p != place(d) && !slices.Contains(places, p) {
			places = append(places, p)
		}
	}
	switch n := len(places); {
	case n == 0:
		return ""
	case n > maxPlaces:
		return fmt.Sprintf("\nSo it is in %d other places: %s and %d more.", n, strings.Join(places[:maxPlaces], ", "), n-maxPlaces)
	default:
		return fmt.Sprintf("\nSo it is in %s: %s.", plural(n, "other place"), strings.Join(places, ", "))
	}
}

// diagnostic writes one diagnostic in Terraform's form: in a box on a UTF-8
// terminal, plain elsewhere.
func (s *screen) diagnostic(d ax.Diagnostic) {
	st, title := red, "Error: "
	if d.Severity == ax.SeverityWarning {
		st, title = yellow, "Warning: "
	}
	lines := []string{s.paint(st, title) + s.paint(bold, clean(d.Summary))}
	if where := s.where(d); len(where) > 0 {
		lines = append(lines, "")
		lines = append(lines, where...)
	}
	if d.Detail != "" {
		lines = append(lines, "")
		for _, l := range strings.Split(s.shortPlaces(d), "\n") {
			lines = append(lines, clean(l))
		}
	}
	if !s.utf8 {
		for _, l := range lines {
			s.line("%s", l)
		}
		s.line("")
		return
	}
	s.line("%s", s.paint(st, "╷"))
	for _, l := range lines {
		s.line("%s %s", s.paint(st, "│"), l)
	}
	s.line("%s", s.paint(st, "╵"))
}

// shortPlaces is the detail of a diagnostic with other files of its folder
// named as short as its own.
func (s *screen) shortPlaces(d ax.Diagnostic) string {
	if d.Range == nil {
		return d.Detail
	}
	folder, name := filepath.Split(d.Range.Filename)
	if len(folder) < 2 {
		return d.Detail // it would be every slash
	}
	return strings.ReplaceAll(d.Detail, folder, strings.TrimSuffix(s.short(d.Range.Filename), name))
}

// where says what place a diagnostic is about, with the source and a mark
// under the words meant.
func (s *screen) where(d ax.Diagnostic) []string {
	if d.Range == nil || d.Range.Filename == "" {
		return nil
	}
	head := fmt.Sprintf("  on %s line %d", clean(s.short(d.Range.Filename)), d.Range.Start.Line)
	if d.Snippet == nil {
		return []string{head + ", column " + fmt.Sprint(d.Range.Start.Column)}
	}
	if d.Snippet.Context != "" {
		head += ", in " + clean(d.Snippet.Context)
	}
	lines := []string{head + ":"}
	start := d.Snippet.StartLine
	offset := 0
	for i, code := range strings.Split(strings.TrimRight(d.Snippet.Code, "\n"), "\n") {
		number := fmt.Sprintf("%4d: ", start+i)
		lines = append(lines, number+showCode(code))
		if m := mark(code, d.Snippet.HighlightStartOffset-offset, d.Snippet.HighlightEndOffset-offset); m != "" {
			lines = append(lines, strings.Repeat(" ", len(number))+m)
		}
		offset += len(code) + 1
	}
	return lines
}

// showCode shows a line of source: tabs as one blank, so that marks line up.
func showCode(code string) string {
	return clean(strings.TrimRight(strings.ReplaceAll(code, "\t", " "), "\r"))
}

// mark underlines code[from:to] on the line below it; "" when the line holds
// none of it.
func mark(code string, from, to int) string {
	from, to = max(from, 0), min(to, len(code))
	if from > to || from > len(code) || from == to && from != 0 && from != len(code) {
		return ""
	}
	for from > 0 && from < len(code) && !utf8.RuneStart(code[from]) {
		from--
	}
	for to < len(code) && !utf8.RuneStart(code[to]) {
		to++
	}
	before := utf8.RuneCountInString(showCode(code[:from]))
	under := max(utf8.RuneCountInString(showCode(code[from:to])), 1)
	return strings.Repeat(" ", before) + strings.Repeat("^", under)
}
