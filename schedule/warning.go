package schedule

import (
	"fmt"
	"strings"

	"github.com/axctl/ax"
)

// Warnings remarks on a spec that compiles: steps that do not divide their
// field evenly, and two restricted day fields. It knows no clock; a schedule
// that time has exhausted is one whose Next is false.
func Warnings(spec ax.ScheduleSpec) []Warning {
	if spec.Cron == "" {
		return nil
	}
	tokens, fault := tokenizeCron(spec.Cron)
	if fault != nil {
		return nil
	}
	var warnings []Warning
	for i, f := range cronGrammar {
		for _, item := range tokens[i].split(',') {
			if w, uneven := unevenStep(f, item); uneven {
				warnings = append(warnings, w)
			}
		}
	}
	if days, weekdays := tokens[2], tokens[4]; restricted(days) && restricted(weekdays) {
		warnings = append(warnings, Warning{
			Attribute: "cron",
			Summary:   "Either day field may match",
			Detail: fmt.Sprintf("As in crontab, it fires when the day of month is %.40s, and also when the day of week is %.40s, "+
				"not only where both are.", days.text, weekdays.text),
			Column: days.col,
			Len:    weekdays.col + len(weekdays.text) - days.col,
		})
	}
	return warnings
}

// unevenStep finds a step over a whole field that leaves an uneven rest. In a
// range that was written out the rest is taken for meant.
func unevenStep(f field, item token) (Warning, bool) {
	base, stepText, ok := strings.Cut(item.text, "/")
	step, isNumber := number(stepText)
	values := f.max - f.min + 1
	months := f.span == "month" && step < values // of 28 to 31 days: never even
	if !ok || !isNumber || step < 2 || strings.Contains(base, "-") || values%step == 0 && !months {
		return Warning{}, false
	}
	return Warning{
		Attribute: "cron",
		Summary:   fmt.Sprintf("Step %d does not divide the %s field evenly", step, f.name),
		Detail: fmt.Sprintf("%.40q starts again with each %s, so the last interval before that is another one. ",
			item.text, f.span) + everyAdvice(f, step),
		Column: item.col,
		Len:    len(item.text),
	}, true
}
