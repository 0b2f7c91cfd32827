package schedule

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// cronFields is the meaning of a cron text.
type cronFields struct {
	minutes  uint64 // bits 0-59
	hours    uint32 // bits 0-23
	days     uint32 // bits 1-31
	months   uint16 // bits 1-12
	weekdays uint8  // bits 0-6, Sunday is 0
	// either is set when both day fields are restricted: a day that one of
	// them has matches. Otherwise both must have it.
	either bool
	// floating is set by a * or a step in minute or hour: the schedule follows
	// real instants, where a fixed one keeps its wall-clock times.
	floating bool
}

// field describes one of the five fields.
type field struct {
	name     string
	min, max int
	names    []string // of the values from min on
	unit     string   // what follows a number to make a duration of so many values
	perUnit  int      // units a value
	span     string   // what a step starts again with
}

// The order of cronGrammar is that of the fields in the text.
var cronGrammar = [5]field{
	{name: "minute", max: 59, unit: "m", perUnit: 1, span: "hour"},
	{name: "hour", max: 23, unit: "h", perUnit: 1, span: "day"},
	{name: "day of month", min: 1, max: 31, unit: "h", perUnit: 24, span: "month"},
	{
		name: "month", min: 1, max: 12, unit: "h", perUnit: 24 * 30, span: "year",
		names: []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"},
	},
	{
		name: "day of week", max: 6, unit: "h", perUnit: 24, span: "week",
		names: []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"},
	},
}

// cronMacros are the texts that stand for five fields.
var cronMacros = map[string]string{
	"@yearly":   "0 0 1 1 *",
	"@annually": "0 0 1 1 *",
	"@monthly":  "0 0 1 * *",
	"@weekly":   "0 0 * * 0",
	"@daily":    "0 0 * * *",
	"@midnight": "0 0 * * *",
	"@hourly":   "0 * * * *",
}

// token is a piece of a cron text and where it stands.
type token struct {
	text string
	col  int // 1-based byte column
}

func (t token) fault(summary, detail string) *Error {
	return &Error{Attribute: "cron", Summary: summary, Detail: detail, Column: t.col, Len: len(t.text)}
}

// cut returns the piece of t from i to j.
func (t token) cut(i, j int) token { return token{text: t.text[i:j], col: t.col + i} }

// split cuts t at each sep; the pieces may be empty.
func (t token) split(sep byte) []token {
	var pieces []token
	for {
		i := strings.IndexByte(t.text, sep)
		if i < 0 {
			return append(pieces, t)
		}
		pieces = append(pieces, t.cut(0, i))
		t = t.cut(i+1, len(t.text))
	}
}

// parseCron reads five fields or a macro. It returns at most one fault a field.
func parseCron(text string) (cronFields, []*Error) {
	tokens, fault := tokenizeCron(text)
	if fault != nil {
		return cronFields{}, []*Error{fault}
	}
	var faults []*Error
	var sets [5]uint64
	for i, t := range tokens {
		set, fault := parseField(cronGrammar[i], t)
		if fault != nil {
			faults = append(faults, fault)
		}
		sets[i] = set
	}
	if len(faults) > 0 {
		return cronFields{}, faults
	}
	f := cronFields{
		minutes:  sets[0],
		hours:    uint32(sets[1]),
		days:     uint32(sets[2]),
		months:   uint16(sets[3]),
		weekdays: uint8(sets[4]),
		either:   restricted(tokens[2]) && restricted(tokens[4]),
		floating: strings.ContainsAny(tokens[0].text+tokens[1].text, "*/"),
	}
	if fault := f.neverFires(tokens); fault != nil {
		return cronFields{}, []*Error{fault}
	}
	return f, nil
}

// restricted reports whether a day field is one as crontab(5) has it.
func restricted(t token) bool { return t.text[0] != '*' }

// neverFires finds days that no calendar has. Any day there is falls on each
// weekday in some year, so the weekdays need no search.
func (f cronFields) neverFires(tokens [5]token) *Error {
	if f.either {
		return nil
	}
	for month := 1; month <= 12; month++ {
		if f.months&(1<<month) != 0 && f.days&monthDays(4, month) != 0 {
			return nil
		}
	}
	days, months := tokens[2], tokens[3]
	return &Error{
		Attribute: "cron",
		Summary:   "The schedule never fires",
		Detail:    fmt.Sprintf("No month of %.40q has a day of %.40q.", months.text, days.text),
		Column:    days.col,
		Len:       months.col + len(months.text) - days.col,
	}
}

// tokenizeCron cuts a text into its fields and refuses what is none.
func tokenizeCron(text string) (fields [5]token, fault *Error) {
	all := token{text: text, col: 1}
	trimmed := strings.TrimLeft(text, " \t\r\n")
	all = all.cut(len(text)-len(trimmed), len(text)-len(trimmed)+len(strings.TrimRight(trimmed, " \t\r\n")))
	for i, r := range all.text {
		if r != '\t' && (r < ' ' || r > '~') {
			_, size := utf8.DecodeRuneInString(all.text[i:])
			return fields, all.cut(i, i+size).fault(
				fmt.Sprintf("Character %U is not allowed in cron", r),
				"A cron text is made of printable ASCII characters and blanks.")
		}
	}
	if all.text == "" {
		return fields, all.fault("Empty cron", "cron takes five fields: minute, hour, day of month, month, day of week.")
	}
	words := cutWords(all)
	if fault := refuseWord(all, words[0]); fault != nil {
		return fields, fault
	}
	if macro := words[0]; macro.text[0] == '@' {
		for i, text := range strings.Fields(cronMacros[macro.text]) {
			fields[i] = token{text: text, col: macro.col}
		}
		return fields, nil
	}
	if len(words) != len(fields) {
		return fields, all.fault(fmt.Sprintf("cron takes 5 fields, this has %d", len(words)), fieldCountAdvice(words))
	}
	copy(fields[:], words)
	return fields, nil
}

func cutWords(t token) []token {
	var words []token
	for i := 0; i < len(t.text); {
		if t.text[i] == ' ' || t.text[i] == '\t' {
			i++
			continue
		}
		j := i
		for j < len(t.text) && t.text[j] != ' ' && t.text[j] != '\t' {
			j++
		}
		words = append(words, t.cut(i, j))
		i = j
	}
	return words
}

// refuseWord tells what a first word cannot be: a zone, or a macro that is none.
func refuseWord(all, word token) *Error {
	if name, zone, ok := strings.Cut(word.text, "="); ok && (name == "TZ" || name == "CRON_TZ") {
		if zone == "" {
			zone = "UTC"
		}
		return word.fault("A zone does not belong in cron", fmt.Sprintf("Write timezone = %.60q beside cron.", zone))
	}
	_, known := cronMacros[word.text]
	switch {
	case word.text[0] != '@':
		return nil
	case known && word.text == all.text:
		return nil
	case known:
		return all.fault(fmt.Sprintf("Nothing may follow %s", word.text), "A macro stands for all five fields.")
	case word.text == "@every":
		interval := strings.TrimSpace(all.text[len(word.text):])
		if interval == "" {
			interval = "5m"
		}
		return all.fault("An interval does not belong in cron", fmt.Sprintf("Write every = %.60q in place of cron.", interval))
	case word.text == "@reboot":
		return word.fault("@reboot is no time", "A schedule names instants; the start of a machine is none. What the machine starts with, such as a systemd unit, can run it.")
	default:
		return word.fault(fmt.Sprintf("Unknown macro %.40q", word.text),
			"The macros are @yearly, @annually, @monthly, @weekly, @daily, @midnight and @hourly.")
	}
}

func fieldCountAdvice(words []token) string {
	const five = "The five are minute, hour, day of month, month, day of week."
	for _, w := range words[1:] {
		if strings.HasPrefix(w.text, "#") {
			return five + " A comment does not belong in the text."
		}
	}
	for _, w := range words {
		if strings.ContainsAny(w.text, "?#") || w.text == "L" {
			return five + " Quartz texts belong in the attribute quartz, which is designed but not built in this version."
		}
	}
	if len(words) == 6 {
		return five + " A text that begins with seconds belongs in the attribute cron6, which is designed but not built in this version."
	}
	return five
}

// parseField reads a comma list of values, ranges and steps into a bit set.
func parseField(f field, t token) (uint64, *Error) {
	var set uint64
	for _, item := range t.split(',') {
		if item.text == "" {
			return 0, t.fault(fmt.Sprintf("Empty item in the %s field", f.name),
				fmt.Sprintf("%.40q has a comma without a value.", t.text))
		}
		bits, fault := parseItem(f, item)
		if fault != nil {
			return 0, fault
		}
		set |= bits
	}
	return set, nil
}

// parseItem reads *, N, N-M, and each with /S; N/S is N-max/S.
func parseItem(f field, item token) (uint64, *Error) {
	base, step := item, 1
	if i := strings.IndexByte(item.text, '/'); i >= 0 {
		var fault *Error
		base = item.cut(0, i)
		if step, fault = parseStep(f, item, item.cut(i+1, len(item.text))); fault != nil {
			return 0, fault
		}
	}
	lo, hi, fault := parseRange(f, base, base.text != item.text)
	if fault != nil {
		return 0, fault
	}
	var bits uint64
	for v := lo; v <= hi; v += step {
		if v == 7 && f.max == 6 {
			bits |= 1 // 7 is Sunday too
			continue
		}
		bits |= 1 << v
	}
	return bits, nil
}

func parseRange(f field, base token, stepped bool) (lo, hi int, fault *Error) {
	if base.text == "*" {
		return f.min, f.max, nil
	}
	ends := base.split('-')
	if len(ends) > 2 {
		return 0, 0, base.fault(fmt.Sprintf("Bad range %.40q in the %s field", base.text, f.name), "A range is two values with one dash between.")
	}
	if lo, fault = parseValue(f, ends[0]); fault != nil {
		return 0, 0, fault
	}
	if len(ends) == 1 {
		switch {
		case !stepped:
			return lo, lo, nil
		case lo > f.max: // Sunday as 7
			return f.min, f.max, nil
		default:
			return lo, f.max, nil
		}
	}
	if hi, fault = parseValue(f, ends[1]); fault != nil {
		return 0, 0, fault
	}
	if f.max == 6 && hi == 0 && lo > 0 && strings.EqualFold(ends[1].text, "sun") {
		hi = 7
	}
	if lo > hi {
		return 0, 0, base.fault(fmt.Sprintf("Range %.40q in the %s field is reversed", base.text, f.name), rangeAdvice(f, ends))
	}
	return lo, hi, nil
}

// rangeAdvice says how to write a range that wraps around.
func rangeAdvice(f field, ends []token) string {
	if f.max == 6 {
		return "Only a range that ends in Sunday may go round: write Sunday as 7 or sun, or write a list."
	}
	return fmt.Sprintf("Write it as two ranges: %.10s-%d,%d-%.10s.", ends[0].text, f.max, f.min, ends[1].text)
}

func parseValue(f field, t token) (int, *Error) {
	for i, name := range f.names {
		if strings.EqualFold(t.text, name) {
			return f.min + i, nil
		}
	}
	v, ok := number(t.text)
	if !ok {
		return 0, badValue(f, t)
	}
	top := f.max
	if top == 6 {
		top = 7
	}
	if v < f.min || v > top {
		return 0, t.fault(fmt.Sprintf("%.40s is out of range in the %s field", t.text, f.name),
			fmt.Sprintf("The %s is %d to %d.", f.name, f.min, top))
	}
	return v, nil
}

func badValue(f field, t token) *Error {
	detail := fmt.Sprintf("The %s is %d to %d", f.name, f.min, f.max)
	if f.names != nil {
		detail += fmt.Sprintf(", or %s to %s", f.names[0], f.names[len(f.names)-1])
	}
	detail += "."
	if strings.ContainsAny(t.text, "?LW#") {
		detail += " Quartz texts belong in the attribute quartz, which is designed but not built in this version."
	}
	if t.text == "" {
		return t.fault(fmt.Sprintf("A value is missing in the %s field", f.name), detail)
	}
	return t.fault(fmt.Sprintf("Bad value %.40q in the %s field", t.text, f.name), detail)
}

func parseStep(f field, item, t token) (int, *Error) {
	values := f.max - f.min + 1
	step, ok := number(t.text)
	switch {
	case !ok:
		return 0, item.fault(fmt.Sprintf("Bad step in %.40q of the %s field", item.text, f.name), "A step is one whole number after one slash.")
	case step == 0:
		return 0, item.fault(fmt.Sprintf("Step 0 in the %s field", f.name), "It never moves on. "+everyAdvice(f, 5))
	case step > values:
		return 0, item.fault(
			fmt.Sprintf("Step %.40s is longer than the %s field", t.text, f.name),
			fmt.Sprintf("The field has %d values and a step starts again with each %s. ", values, f.span)+everyAdvice(f, step))
	}
	return step, nil
}

// everyAdvice tells how to write an interval of so many values.
func everyAdvice(f field, values int) string {
	if values == tooLarge {
		values = f.max
	}
	return fmt.Sprintf("For a fixed interval write every = \"%d%s\" in place of cron.", values*f.perUnit, f.unit)
}

// number reads decimal digits and nothing else; what is too large for any use
// comes back as some large number.
func number(s string) (v int, ok bool) {
	if s == "" {
		return 0, false
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
	}
	if s = strings.TrimLeft(s, "0"); len(s) > 6 {
		return tooLarge, true
	}
	for i := range len(s) {
		v = 10*v + int(s[i]-'0')
	}
	return v, true
}

// tooLarge stands for all numbers of more than six digits.
const tooLarge = 1_000_000
