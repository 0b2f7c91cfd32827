package rules

import (
	"regexp"
	"slices"

	"github.com/axctl/ax"
)

// Outcome is what a handler said of an attempt that did not succeed.
type Outcome struct {
	Class      ax.ErrorClass
	ExitCode   int // 0 none
	HTTPStatus int // 0 none
	Error      string
}

// Classify returns the class of an outcome by a task's error_class blocks. Only
// what is of class failed is looked at: what ax found itself (timeout, lost,
// cancelled), and what a handler classed, stays. A code decides before a text,
// and texts are tried in the order of the list. A pattern that does not compile,
// as only a definition that was edited by hand has, matches nothing.
//
// The patterns are compiled here: a failure is rare, and some microseconds are
// nothing beside what it writes.
func Classify(list []ax.ErrorClassSpec, o Outcome) ax.ErrorClass {
	if o.Class != ax.ClassFailed {
		return o.Class
	}
	for _, c := range list {
		if o.ExitCode != 0 && slices.Contains(c.ExitCodes, o.ExitCode) || o.HTTPStatus != 0 && slices.Contains(c.HTTPStatus, o.HTTPStatus) {
			return c.Class
		}
	}
	for _, c := range list {
		if c.Match == "" || len(c.Match) > ax.MaxMatchBytes {
			continue
		}
		if re, err := regexp.Compile(c.Match); err == nil && re.MatchString(o.Error) {
			return c.Class
		}
	}
	return o.Class
}
