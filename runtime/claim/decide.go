package claim

import (
	"errors"
	"fmt"

	"github.com/axctl/ax"
	"github.com/axctl/ax/runtime/rules"
)

// maxSlots is the most slots one transaction accounts for row by row, and the
// most rows of backlog a wake writes.
const maxSlots = 500

// errStuck says that a schedule does not move forward.
var errStuck = errors.New("the schedule's next instant is not after its last one")

// decide accounts for the due slots of a task, at most budget of them row by
// row: what starts, what is skipped, and where next_fire_time goes. It is pure.
// Backlog reports whether the slots were a misfire, decided on as a whole.
func decide(t ax.DueTask, spec *ax.TaskSpec, tt rules.Timetable, budget int, nowMs int64) (f ax.Firing, backlog bool, err error) {
	f = ax.Firing{
		TaskID: t.TaskID, Version: t.Version,
		ExpectNextMs: t.NextMs, ExpectLockVersion: t.LockVersion,
		NowMs: nowMs, Overlap: spec.Overlap,
	}
	if t.NextMs <= t.LastSlotMs {
		return f, false, fmt.Errorf("next_fire_time %d, last slot %d: %w", t.NextMs, t.LastSlotMs, errStuck)
	}
	backlog = rules.Misfired(spec.Misfire, t.NextMs, nowMs)
	if backlog {
		settle(&f, t, spec, tt, budget)
	} else {
		each(&f, t, tt, budget)
	}
	for i := range f.Starts {
		st := &f.Starts[i]
		if by := rules.StartBy(spec.StartWithin, ax.InstanceSchedule, 1, st.DueMs, st.DueMs); by != 0 && nowMs >= by {
			st.Skip = ax.ReasonStartWithin
		}
	}
	if f.NextMs != 0 && f.NextMs <= f.LastSlotMs {
		return f, backlog, fmt.Errorf("next instant %d, slot %d: %w", f.NextMs, f.LastSlotMs, errStuck)
	}
	return f, backlog, nil
}

// each starts every due slot by itself.
func each(f *ax.Firing, t ax.DueTask, tt rules.Timetable, budget int) {
	slot, ok := t.NextMs, true
	for ok && slot <= f.NowMs && len(f.Starts) < budget {
		f.Starts = append(f.Starts, ax.FiringStart{DueMs: slot})
		f.LastSlotMs = slot
		if slot, ok = tt.Next(slot); ok && slot <= f.LastSlotMs {
			break
		}
	}
	if ok {
		f.NextMs = slot
	}
}

// settle decides on all slots up to now as one backlog. Where that starts more
// than budget, the rest stays unclaimed and is a backlog again.
func settle(f *ax.Firing, t ax.DueTask, spec *ax.TaskSpec, tt rules.Timetable, budget int) {
	m := spec.Misfire
	s := rules.Settle(tt, m.Policy, m.Max, t.NextMs, f.NowMs)
	if s.LastMs == 0 {
		// The row's slot is none of the schedule any more (new zone data). It
		// was promised, so it is not lost.
		s.Starts, s.LastMs = []int64{t.NextMs}, t.NextMs
	}
	f.NextMs, f.LastSlotMs = s.NextMs, s.LastMs
	if len(s.Starts) > budget {
		f.NextMs, f.LastSlotMs = s.Starts[budget], s.Starts[budget-1]
		s.Starts = s.Starts[:budget]
	}
	for _, due := range s.Starts {
		f.Starts = append(f.Starts, ax.FiringStart{DueMs: due, CatchUp: true})
	}
	if s.Skipped != nil {
		f.Skipped = []ax.SkippedStretch{{
			TaskID: t.TaskID, FromMs: s.Skipped.FromMs, ToMs: s.Skipped.ToMs,
			Slots: s.Skipped.Slots, Reason: ax.ReasonMisfire, Version: t.Version,
		}}
	}
}
