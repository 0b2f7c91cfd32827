package dispatch

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/axctl/ax"
	"pgregory.net/rapid"
)

func spec(edit ...func(*ax.TaskSpec)) *ax.TaskSpec {
	s := &ax.TaskSpec{
		Idempotent: true,
		Retry:      ax.RetrySpec{Max: 3, Initial: 10_000, Factor: 2, MaxInterval: 300_000, On: ax.RetryBlockOn},
	}
	for _, e := range edit {
		e(s)
	}
	return s
}

func TestConclude(t *testing.T) {
	t.Parallel()
	const now = 1_000_000
	once := spec(func(s *ax.TaskSpec) { s.Retry.Max = 0 })
	classes := func(s *ax.TaskSpec) {
		s.ErrorClasses = []ax.ErrorClassSpec{{Class: ax.ClassPermanent, ExitCodes: []int{2}}, {Class: ax.ClassResource, Match: "disk full"}}
	}
	for _, c := range []struct {
		name    string
		subject subject
		report  ax.Report
		want    ax.Ending // Ref, NowMs and Detail aside
		ready   bool
	}{
		{
			"success",
			subject{attempt: 1, spec: spec(), startedMs: 5},
			ax.Report{Kind: ax.ReportEnded, Status: ax.StatusSuccess, EndedMs: 9, StoppedMs: 9},
			ax.Ending{Attempt: 1, Status: ax.StatusSuccess, StartedMs: 5, EndedMs: 9, StoppedMs: 9},
			true,
		},
		{
			"failed, tried again",
			subject{attempt: 1, spec: spec()},
			ax.Report{Kind: ax.ReportEnded, Status: ax.StatusFailed, EndedMs: 9, StoppedMs: 9},
			ax.Ending{Attempt: 1, Status: ax.StatusPending, RetryStatus: ax.StatusFailed, NotBeforeMs: now + 10_000, EndedMs: 9, StoppedMs: 9, ErrorClass: ax.ClassFailed, Cause: ax.CauseRetry},
			true,
		},
		{
			"failed, tried again when it is gone",
			subject{attempt: 2, spec: spec()},
			ax.Report{Kind: ax.ReportEnded, Status: ax.StatusFailed, EndedMs: 9},
			ax.Ending{Attempt: 2, Status: ax.StatusPending, RetryStatus: ax.StatusFailed, NotBeforeMs: now + 20_000, EndedMs: 9, ErrorClass: ax.ClassFailed, Cause: ax.CauseRetry},
			false,
		},
		{
			"failed, and permanent by its exit code",
			subject{attempt: 1, spec: spec(classes)},
			ax.Report{Kind: ax.ReportEnded, Status: ax.StatusFailed, ExitCode: 2, EndedMs: 9, StoppedMs: 9},
			ax.Ending{Attempt: 1, Status: ax.StatusFailed, EndedMs: 9, StoppedMs: 9, ErrorClass: ax.ClassPermanent},
			true,
		},
		{
			"failed, and for want of a resource by its text",
			subject{attempt: 1, spec: spec(classes)},
			ax.Report{Kind: ax.ReportEnded, Status: ax.StatusFailed, Error: "disk full", EndedMs: 9, StoppedMs: 9},
			ax.Ending{
				Attempt: 1, Status: ax.StatusPending, RetryStatus: ax.StatusFailed, NotBeforeMs: now + int64(spec().Retry.MaxInterval),
				EndedMs: 9, StoppedMs: 9, ErrorClass: ax.ClassResource, Error: "disk full", Cause: ax.CauseRetry,
			},
			true,
		},
		{
			"lost is lost, whatever its text",
			subject{attempt: 1, spec: spec(classes, func(s *ax.TaskSpec) { s.Retry.Max = 0 })},
			ax.Report{Kind: ax.ReportLost, Error: "disk full", EndedMs: 9},
			ax.Ending{Attempt: 1, Status: ax.StatusFailed, EndedMs: 9, StoppedMs: 9, ErrorClass: ax.ClassLost, Error: "disk full", Cause: ax.CauseLost},
			true,
		},
		{
			"failed for good, not gone",
			subject{attempt: 1, spec: once},
			ax.Report{Kind: ax.ReportEnded, Status: ax.StatusFailed, EndedMs: 9},
			ax.Ending{Attempt: 1, Status: ax.StatusFailed, EndedMs: 9, ErrorClass: ax.ClassFailed},
			true,
		},
		{
			"timeout",
			subject{attempt: 1, spec: once},
			ax.Report{Kind: ax.ReportEnded, Status: ax.StatusTimeout, EndedMs: 9, StoppedMs: 9},
			ax.Ending{Attempt: 1, Status: ax.StatusTimeout, EndedMs: 9, StoppedMs: 9, ErrorClass: ax.ClassTimeout, Cause: ax.CauseTimeout},
			true,
		},
		{
			"lost, tried again",
			subject{attempt: 1, spec: spec()},
			ax.Report{Kind: ax.ReportLost, StoppedMs: 8},
			ax.Ending{Attempt: 1, Status: ax.StatusPending, RetryStatus: ax.StatusFailed, NotBeforeMs: now + 10_000, EndedMs: now, StoppedMs: 8, ErrorClass: ax.ClassLost, Cause: ax.CauseLost},
			true,
		},
		{
			"lost, not idempotent",
			subject{attempt: 1, spec: spec(func(s *ax.TaskSpec) { s.Idempotent = false })},
			ax.Report{Kind: ax.ReportLost, StoppedMs: 8},
			ax.Ending{Attempt: 1, Status: ax.StatusFailed, EndedMs: now, StoppedMs: 8, ErrorClass: ax.ClassLost, Cause: ax.CauseLost},
			true,
		},
		{
			"refused",
			subject{attempt: 1, spec: spec()},
			ax.Report{Kind: ax.ReportRefused, Error: "no"},
			ax.Ending{Attempt: 1, Status: ax.StatusFailed, EndedMs: now, StoppedMs: now, ErrorClass: ax.ClassPermanent, Error: "no", Cause: ax.CauseNotAccepted},
			true,
		},
		{
			"cancelled",
			subject{attempt: 1, spec: spec(), cancelBy: "ann"},
			ax.Report{Kind: ax.ReportEnded, Status: ax.StatusCancelled, EndedMs: 9},
			ax.Ending{Attempt: 1, Status: ax.StatusCancelled, EndedMs: 9, ErrorClass: ax.ClassCancelled, Cause: ax.CauseCancel},
			true,
		},
		{
			"its version is gone",
			subject{attempt: 1},
			ax.Report{Kind: ax.ReportEnded, Status: ax.StatusFailed, EndedMs: 9, StoppedMs: 9},
			ax.Ending{Attempt: 1, Status: ax.StatusFailed, EndedMs: 9, StoppedMs: 9, ErrorClass: ax.ClassFailed},
			true,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, ready := conclude(c.subject, clean(c.report, now), now)
			if ready != c.ready {
				t.Errorf("ready %v", ready)
			}
			if next := fmt.Sprintf("attempt %d not before 1970-01-01T0", c.subject.attempt+1); strings.HasPrefix(got.Next, next) != (got.Status == ax.StatusPending) {
				t.Errorf("what comes next: %q", got.Next)
			}
			got.Detail, got.NowMs = "", 0
			if !sameEnding(got, c.want) {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
}

// The next attempt's instant is written in the task's zone.
func TestRetryInTheTasksZone(t *testing.T) {
	t.Parallel()
	s := subject{attempt: 1, spec: spec(func(s *ax.TaskSpec) { s.Schedules = []ax.ScheduleSpec{{Timezone: "Asia/Tokyo"}} })}
	e, _ := conclude(s, ax.Report{Kind: ax.ReportLost, Status: ax.StatusFailed, ErrorClass: ax.ClassLost, Error: "gone", StoppedMs: 8}, 1_000_000)
	if e.Detail != "gone" || !strings.HasPrefix(e.Next, "attempt 2 not before 1970-01-01T09:16:") || !strings.HasSuffix(e.Next, "+09:00") {
		t.Errorf("%q, %q", e.Detail, e.Next)
	}
}

func sameEnding(a, b ax.Ending) bool {
	return a.Attempt == b.Attempt && a.Status == b.Status && a.RetryStatus == b.RetryStatus &&
		a.NotBeforeMs == b.NotBeforeMs && a.StartedMs == b.StartedMs && a.EndedMs == b.EndedMs &&
		a.StoppedMs == b.StoppedMs && a.ErrorClass == b.ErrorClass && a.Error == b.Error &&
		a.Cause == b.Cause && a.Detail == b.Detail
}

// Whatever a plugin reports, what goes on from it keeps the ports' contracts.
func TestAnyReportIsMadeFit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := ax.Report{
			Kind:       rapid.SampledFrom([]ax.ReportKind{ax.ReportEnded, ax.ReportRefused, ax.ReportLost}).Draw(t, "kind"),
			Status:     ax.Status(rapid.SampledFrom([]string{"", "success", "failed", "timeout", "cancelled", "pending", "skipped", "\xff"}).Draw(t, "status")),
			ErrorClass: ax.ErrorClass(rapid.SampledFrom([]string{"", "transient", "failed", "lost"}).Draw(t, "class")),
			Error:      strings.Repeat(string(rapid.SliceOf(rapid.Byte()).Draw(t, "error")), rapid.IntRange(0, 9000).Draw(t, "times")),
			EndedMs:    rapid.Int64Range(0, 10).Draw(t, "ended"),
			StoppedMs:  rapid.Int64Range(0, 10).Draw(t, "stopped"),
			Outputs:    rapid.SampledFrom([][]byte{nil, []byte(`{"a":1}`), []byte(`{`), make([]byte, ax.MaxOutputsBytes+1)}).Draw(t, "outputs"),
		}
		s := subject{attempt: rapid.IntRange(1, 5).Draw(t, "attempt"), spec: spec()}
		got := clean(r, 100)
		e, ready := conclude(s, got, 100)
		if !utf8.ValidString(e.Error) || len(e.Error) > ax.MaxErrorBytes || len(e.Outputs) > ax.MaxOutputsBytes || e.EndedMs == 0 {
			t.Fatalf("unfit: %+v", e)
		}
		if e.Status != ax.StatusPending && !e.Status.Final() || e.Status == ax.StatusSkipped {
			t.Fatalf("status %q", e.Status)
		}
		if ready && e.Status == ax.StatusPending && (e.StoppedMs == 0 || e.RetryStatus == "") {
			t.Fatalf("a retry before it stopped: %+v", e)
		}
		if (e.Status == ax.StatusSuccess) != (e.ErrorClass == "") {
			t.Fatalf("status %s has class %q", e.Status, e.ErrorClass)
		}
		if again := clean(got, 200); again.Status != got.Status || again.Error != got.Error || again.EndedMs != got.EndedMs {
			t.Fatalf("cleaning twice differs: %+v, %+v", got, again)
		}
	})
}

func TestPlaces(t *testing.T) {
	t.Parallel()
	size := Places(map[string]int{"one": 1}, 2)
	offered := []string{"shell", "http", "code"}
	p := newPlaces(func(pool string) int { return size(pool, slices.Contains(offered, pool)) })
	for pool, size := range map[string]int{"one": 1, "shell": 64, "http": 64, "code": 6, "nobody's": 0, "late": 0} {
		for n := range size {
			if !p.reserve(pool, true) {
				t.Errorf("%s has %d places, want %d", pool, n, size)
			}
		}
		if p.reserve(pool, true) {
			t.Errorf("%s has more than %d places", pool, size)
		}
	}
	offered = append(offered, "late")
	if !p.reserve("late", true) {
		t.Error("the pool of a handler that came later has no place")
	}
	if got := Pools(map[string]int{"one": 1}, offered, 2); !maps.Equal(got, map[string]int{"one": 1, "shell": 64, "http": 64, "code": 6, "late": 6}) {
		t.Errorf("pools are %v", got)
	}
	p.queue("one", 1)
	p.release("one")
	if p.reserve("one", true) {
		t.Error("a newcomer overtook one that waits")
	}
	if !p.reserve("one", false) {
		t.Error("the one that waits got no place")
	}
	p.occupy("one")
	p.release("one")
	if p.reserve("one", false) {
		t.Error("a place over the size was given")
	}
}

func TestRecentForgetsTheOldest(t *testing.T) {
	t.Parallel()
	r := newRecent()
	for i := range maxRecent + 10 {
		r.put(ax.BatchNo("x", int64(i), 1), goneAttempt{attempt: i})
	}
	if _, ok := r.get(ax.BatchNo("x", 9, 1)); ok || len(r.gone) != maxRecent {
		t.Errorf("%d remembered", len(r.gone))
	}
	if g, ok := r.get(ax.BatchNo("x", 10, 1)); !ok || g.attempt != 10 {
		t.Errorf("got %+v, %v", g, ok)
	}
}
