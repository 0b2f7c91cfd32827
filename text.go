package ax

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// cutMark ends a text that was cut.
const cutMark = "… (cut)"

// CleanText returns s as every store can keep it: valid UTF-8 without NUL (each
// NUL and each run of bad bytes becomes U+FFFD) and at most max bytes long, cut
// on a rune's border with a mark. max must be at least the mark's length.
func CleanText(s string, max int) string {
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 && len(s) <= max {
		return s
	}
	cut := len(s) > 2*max // no more of it is looked at
	if cut {
		s = s[:2*max]
	}
	s = strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", "\uFFFD"), "\uFFFD")
	if !cut && len(s) <= max {
		return s
	}
	end := min(len(s), max-len(cutMark))
	for end > 0 && end < len(s) && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + cutMark
}

// CancelDetail says in a transition or an order who asked for a cancel: a
// person, or CancelByOverlap.
func CancelDetail(by string) string {
	if by == CancelByOverlap {
		return "a newer firing takes its place"
	}
	return "asked for by " + by
}

// SkipCause returns the cause that the life line of an instance tells that was
// born skipped for a reason.
func SkipCause(why Reason) Cause {
	if why == ReasonStartWithin {
		return CauseStartWithin
	}
	return CauseOverlap
}

// Freezing returns the hold that freeze_after puts on a task, and what the life
// line of the instance says that was the last one to fail.
func Freezing(e Ending, streak int) (h Hold, detail string) {
	said := e.Error
	if said == "" {
		said = "it gave no error"
	}
	detail = fmt.Sprintf("%d instances in a row failed", streak)
	if streak == 1 {
		detail = "it failed"
	}
	return Hold{
		Kind: HoldFrozen, Who: FrozenBy, SinceMs: e.NowMs,
		Reason: CleanText(fmt.Sprintf("%s, the last one is instance %d: %s", detail, e.ID, said), MaxErrorBytes),
	}, detail
}

// RetryDetail says in a retry's transition how the attempt ended and what comes
// next.
func RetryDetail(e Ending) string {
	if e.Detail == "" || e.Next == "" {
		return e.Detail + e.Next
	}
	return e.Detail + "; " + e.Next
}

// LateDetail says in a late_result transition what the late report said.
func LateDetail(e Ending) string {
	said := e.Status
	if said == StatusPending {
		said = e.RetryStatus
	}
	detail := fmt.Sprintf("attempt %d reported %s", e.Attempt, said)
	if e.Error != "" {
		detail += ": " + e.Error
	}
	return detail
}
