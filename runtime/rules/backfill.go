package rules

import "github.com/axctl/ax"

// SlotState is what became of a slot that has passed, as a backfill sees it.
type SlotState string

// The states of a slot; exactly one holds.
const (
	SlotMissing   SlotState = "missing"   // nothing ran for it: no instance, or only skipped ones
	SlotOpen      SlotState = "open"      // an instance of it waits or runs
	SlotFailed    SlotState = "failed"    // the last one that was not skipped ended without success
	SlotSucceeded SlotState = "succeeded" // it ended in success
	SlotForgotten SlotState = "forgotten" // nothing is kept of it, and retention deleted what is that old
)

// SlotStates lists all states of a slot.
var SlotStates = []SlotState{SlotMissing, SlotFailed, SlotSucceeded, SlotOpen, SlotForgotten}

// StateOf tells what became of a slot by all instances that are due at it, in
// the order in which they were made: of the schedule, of earlier backfills and
// of people. A verdict stands in the place of the status. Forgotten says that
// retention may have deleted instances as old as the slot.
func StateOf(tries []ax.Try, forgotten bool) SlotState {
	state := SlotMissing
	if forgotten && len(tries) == 0 {
		state = SlotForgotten
	}
	for _, t := range tries {
		switch {
		case !t.Status.Final():
			return SlotOpen
		case t.Verdict == ax.VerdictSkipped, t.Verdict == ax.VerdictNone && t.Status == ax.StatusSkipped:
		case t.Verdict == ax.VerdictSuccess || t.Status == ax.StatusSuccess:
			state = SlotSucceeded
		default:
			state = SlotFailed
		}
	}
	return state
}

// Wanted reports whether a backfill makes an instance for a slot in this state.
// Of a slot that is forgotten nobody knows whether it ran, so only the mode that
// runs everything runs it.
func Wanted(mode ax.BackfillMode, s SlotState) bool {
	switch mode {
	case ax.BackfillMissing:
		return s == SlotMissing
	case ax.BackfillFailed:
		return s == SlotFailed
	case ax.BackfillAll:
		return s != SlotOpen
	default:
		panic("unknown backfill mode " + string(mode))
	}
}

// BackfillRoom returns how many instances a backfill may make now, when open of
// its own have not ended.
func BackfillRoom(parallel, maxActive, open int) int {
	return max(0, min(parallel, maxActive)-open)
}

// BackfillEnd returns the end of the range that a backfill may have, the first
// instant that is not its own: slots after now are not past, and what the
// schedule has still to claim, or to decide on when a hold or a disabled stretch
// ends, is left to it, so that no slot is run by both.
func BackfillEnd(tt Timetable, m ax.MisfireSpec, row ax.TaskRow, nowMs int64) int64 {
	end := nowMs + 1
	fires := row.Enabled && row.Hold == nil
	if !fires && m.OnResume == ax.MisfireSkip {
		return end
	}
	if first := FirstUnclaimed(tt, row); first != 0 && (row.NextMs != 0 || row.LastSlotMs != 0) {
		end = min(end, first)
	}
	return end
}
