package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/axctl/ax"
)

// A life with a retry and a cancel is told in the order of time, and at one
// instant causes come before what they cause.
func TestHappenings(t *testing.T) {
	t.Parallel()
	l := ax.Life{
		InstanceRow: ax.InstanceRow{Instance: ax.Instance{
			Ref: ax.Ref{ID: 7, DueMs: 1000}, Status: ax.StatusCancelled, Attempt: 2, Host: "h", ErrorClass: ax.ClassCancelled,
			ClaimedMs: 1010, HandedMs: 3000, StartedMs: 3005, EndedMs: 4000, StoppedMs: 4000,
		}},
		Attempts: []ax.Attempt{{
			InstanceID: 7, Attempt: 1, Host: "h", Executor: "shell", Status: ax.StatusFailed, ErrorClass: ax.ClassFailed,
			Error: "exit 1\nmore", HandedMs: 1010, StartedMs: 1012, EndedMs: 2000, StoppedMs: 2001,
		}},
		Transitions: []ax.Transition{
			{AtMs: 2001, Attempt: 1, From: ax.StatusDispatched, To: ax.StatusPending, Actor: "dispatch", Cause: ax.CauseRetry},
			{AtMs: 4000, Attempt: 2, From: ax.StatusDispatched, To: ax.StatusDispatched, Actor: "ada", Cause: ax.CauseCancel, Detail: "a\x1bb"},
			{AtMs: 5000, Attempt: 2, From: ax.StatusCancelled, To: ax.StatusCancelled, Actor: "dispatch", Cause: ax.CauseLateResult},
		},
	}
	var got []string
	for _, h := range happenings(l) {
		got = append(got, strings.TrimSpace(fmt.Sprintf("%d %d %s %s", h.atMs, h.attempt, h.what, h.detail)))
	}
	want := `1000 0 due
1010 0 claimed
1010 1 handed to h, executor shell
1012 1 started
2000 1 ended failed: exit 1 ...
2001 1 stopped its processes are gone
2001 1 retry dispatched -> pending, by dispatch
3000 2 handed to h
3005 2 started
4000 2 cancel by ada, a\u001bb
4000 2 ended cancelled
4000 2 stopped its processes are gone
5000 2 late_result by dispatch`
	if strings.Join(got, "\n") != want {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
}

// How late an instance began is told of its first attempt: a retry begins when
// its back-off is over.
func TestLatenessOfTheFirstAttempt(t *testing.T) {
	t.Parallel()
	row := func(id int64, attempt int) ax.InstanceRow {
		var in ax.InstanceRow
		in.ID, in.Kind, in.Attempt, in.Status = id, ax.InstanceSchedule, attempt, ax.StatusSuccess
		in.DueMs, in.StartedMs, in.EndedMs = 1_000, 4_000, 4_500
		return in
	}
	s, out := testScreen()
	waits := row(3, 2)
	waits.Status, waits.StartedMs, waits.EndedMs, waits.LastError = ax.StatusPending, 0, 0, "exit code 7"
	instancesResult{rows: []ax.InstanceRow{row(1, 1), row(2, 2), waits}}.human(s)
	if err := s.flush(); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(out.String(), "3 s"); got != 1 {
		t.Errorf("lateness is told %d times:\n%s", got, out)
	}
	if !strings.Contains(out.String(), "exit code 7") {
		t.Errorf("what a retry waits for is not told:\n%s", out)
	}
}
