package check

import (
	"strings"

	"github.com/axctl/ax"
)

// folded is what a life line adds up to beside the status.
type folded struct {
	retries  int
	asked    bool       // to be cancelled, by a person or the overlap rule
	verdicts int        // that people gave
	verdict  ax.Verdict // the last of them
	skipped  ax.Cause   // why it was skipped, "" it was not
}

// fold adds up a life line, and tells entries of an attempt that did not go on
// when they were written.
func (c *checker) fold(subject string, line []ax.Transition) folded {
	var f folded
	for _, t := range line {
		if t.Attempt != f.retries+1 {
			c.find(8, report, subject, "its life line notes %s of attempt %d while attempt %d went on", t.Cause, t.Attempt, f.retries+1)
		}
		moved := t.From != t.To
		switch {
		case moved && t.From == ax.StatusDispatched && t.To == ax.StatusPending:
			f.retries++
		case moved && t.To == ax.StatusSkipped:
			f.skipped = t.Cause
		case t.Cause == ax.CauseCancel && t.Actor != "dispatch", t.Cause == ax.CauseReplaced:
			f.asked = true
		case t.Cause == ax.CauseMark:
			f.verdicts++
			word, _, _ := strings.Cut(t.Detail, ":")
			f.verdict = ax.Verdict(word)
		}
	}
	return f
}

// folds compares what a life line adds up to with the row.
func (c *checker) folds(subject string, in ax.Instance, f folded) {
	if f.retries != in.Attempt-1 {
		c.find(8, report, subject, "it is in attempt %d, and its life line has %d retries", in.Attempt, f.retries)
	}
	switch {
	case in.CancelBy != "" && !f.asked:
		c.find(8, report, subject, "%s asked to cancel it, and its life line does not say so", in.CancelBy)
	case in.CancelBy == "" && f.asked:
		c.find(8, report, subject, "its life line says that it was asked to cancel it, and it does not have who")
	}
	switch {
	case in.Verdict != f.verdict:
		c.find(8, report, subject, "its verdict is %q, and that of its life line %q", string(in.Verdict), string(f.verdict))
	case f.verdicts > 0 && !in.Status.Final():
		c.find(4, report, subject, "it is %s and has a verdict", in.Status)
	}
	if in.Status == ax.StatusSkipped && f.skipped != "" && f.skipped != skippedBy(in.Reason) {
		c.find(8, report, subject, "it is skipped for %s, and its life line says %s", in.Reason, f.skipped)
	}
}

// skippedBy returns what the life line says of a reason to skip.
func skippedBy(why ax.Reason) ax.Cause {
	switch why {
	case ax.ReasonReplaced:
		return ax.CauseReplaced
	case ax.ReasonDeleted:
		return ax.CauseDeleted
	case ax.ReasonDisabled:
		return ax.CauseDisabled
	}
	return ax.SkipCause(why)
}
