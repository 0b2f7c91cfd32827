package rules

import "github.com/axctl/ax"

// Streak says how many instances of a task in a row have finally failed when
// one more ends with this status and class, and whether that freezes it.
//
// A success ends the streak. What says nothing of the task itself leaves it as
// it is: a cancel, a skip, and a failure for want of a resource, since freezing
// the task would mend nothing. So does each end of a backfill: that old data
// cannot be worked on says nothing of the slots that come, nor does it that they
// fail. freezeAfter 0 never freezes, and counts all the same.
func Streak(streak, freezeAfter int, of ax.Ref, status ax.Status, class ax.ErrorClass) (now int, freeze bool) {
	if of.BackfillID() != 0 {
		return streak, false
	}
	switch status {
	case ax.StatusSuccess:
		return 0, false
	case ax.StatusFailed, ax.StatusTimeout:
		if class == ax.ClassResource {
			return streak, false
		}
		return streak + 1, freezeAfter > 0 && streak+1 >= freezeAfter
	default:
		return streak, false
	}
}
