package dispatch

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/axctl/ax"
	"github.com/axctl/ax/store/check"
	"github.com/axctl/ax/store/memory"
	"github.com/prometheus/client_golang/prometheus"
)

// host is a dispatcher on a store, with executors that the test plays.
type host struct {
	t       *testing.T
	store   *memory.Store
	d       *Dispatcher
	journal *Journal
	task    *ax.TaskVersion

	mu      sync.Mutex // guards what follows
	log     bytes.Buffer
	jobs    []ax.Job
	acked   []string
	cancels []ax.CancelOrder
	signals []ax.SignalOrder
	reports chan []ax.Report
	away    bool          // the executor cannot be given jobs
	stall   time.Duration // how long an end stops the dispatcher

	// What the store refuses and has lost: calls_test.go.
	refused      map[string]int64
	versionsLost bool
	versionReads int
}

func (h *host) Fit(ax.HandlerSpec) ax.Fit {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.away {
		return ax.FitNone
	}
	return ax.FitWell
}

func (h *host) setAway(away bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.away = away
}

// Recover says that nothing of the jobs is left.
func (h *host) Recover(jobs []ax.Job) {
	for _, j := range jobs {
		h.reports <- []ax.Report{{BatchNo: j.BatchNo, Kind: ax.ReportLost, Error: "axd ended while it ran, and no executor that it left has a word of it"}}
	}
}

func (h *host) Dispatch(jobs []ax.Job) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.jobs = append(h.jobs, jobs...)
}

func (h *host) Signal(orders []ax.SignalOrder) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.signals = append(h.signals, orders...)
}

func (h *host) Cancel(orders []ax.CancelOrder) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.cancels = append(h.cancels, orders...)
}

func (h *host) Acknowledge(batchNos []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.acked = append(h.acked, batchNos...)
}

// Write takes the log.
func (h *host) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.log.Write(p)
}

func (h *host) told() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.log.String()
}

func (h *host) given() []ax.Job {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.jobs)
}

func (h *host) acks() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.acked)
}

func (h *host) Reports() <-chan []ax.Report { return h.reports }

// onHost runs body in a bubble with a store that has one manual task, while a
// dispatcher runs.
func onHost(t *testing.T, spec ax.TaskSpec, body func(h *host)) {
	t.Helper()
	t.Parallel()
	path := filepath.Join(t.TempDir(), "reports")
	synctest.Test(t, func(t *testing.T) {
		h := &host{t: t, store: memory.New(time.Now), reports: make(chan []ax.Report, 100)}
		h.apply(spec)
		journal, left, err := OpenJournal(path, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		h.journal = journal
		h.d = New(Config{
			Store: refusing{h.store, h}, Cancels: h.store, Executors: h, Journal: journal, Left: left,
			Host: "h1", Boot: "b1", Incarnation: "inc", Places: Places(nil, 2),
			Tick: time.Second, Scan: 5 * time.Second, Horizon: 5 * time.Minute,
			Now: time.Now, Log: slog.New(slog.NewTextHandler(h, nil)), Registerer: prometheus.NewRegistry(),
			OnEnded: func(ax.Job, ax.Ending) {
				if h.stall > 0 {
					<-time.After(h.stall)
				}
			},
		})
		if err := h.d.Recover(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- h.d.Run(ctx) }()
		defer func() {
			stop()
			if err := <-done; err != nil {
				t.Error(err)
			}
			_ = journal.Close()
			findings, err := check.Check(context.Background(), h.store, time.Now())
			if err != nil || len(findings) > 0 {
				t.Error(findings, err)
			}
			if t.Failed() {
				t.Log(h.told())
			}
		}()
		body(h)
	})
}

func (h *host) apply(spec ax.TaskSpec) {
	h.t.Helper()
	spec.Handler = ax.HandlerSpec{Name: "work", Body: json.RawMessage("{}")}
	spec.Enabled, spec.Concurrency, spec.Overlap, spec.KillAfter = true, 2, ax.OverlapAllow, 10_000
	def := ax.Definition{Kind: ax.KindTask, Name: "a", Task: &spec}
	body, hash := def.Canonical()
	_, err := h.store.Apply(h.t.Context(), ax.ChangeSet{
		ApplyID: "1", Stack: "s", NowMs: time.Now().UnixMilli(),
		Changes: []ax.Change{{
			Action: ax.ActionCreate, Kind: ax.KindTask, Name: "a", Definition: body, Hash: hash,
			Task: &ax.TaskChange{Enabled: true, MaxActive: 2, Overlap: ax.OverlapAllow, Timetable: &ax.Timetable{}},
		}},
	})
	if err != nil {
		h.t.Fatal(err)
	}
	vs, err := h.store.TaskVersions(h.t.Context(), []ax.VersionKey{{ObjectID: 1, Version: 1}})
	if err != nil || len(vs) != 1 {
		h.t.Fatal(vs, err)
	}
	h.task = &vs[0]
}

// trigger makes a waiting instance, and lets the dispatcher look.
func (h *host) trigger() int64 {
	h.t.Helper()
	now := time.Now().UnixMilli()
	ref, err := h.store.Trigger(h.t.Context(), ax.Trigger{ObjectID: 1, UID: fmt.Sprint(now), DueMs: now, NowMs: now})
	if err != nil {
		h.t.Fatal(err)
	}
	h.d.Wake()
	synctest.Wait()
	return ref.ID
}

func (h *host) report(r ax.Report) {
	h.reports <- []ax.Report{r}
	synctest.Wait()
}

func (h *host) pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func (h *host) life(id int64) ax.Life {
	h.t.Helper()
	l, err := h.store.Instance(h.t.Context(), id)
	if err != nil {
		h.t.Fatal(err)
	}
	return l
}

// A journal that cannot be written is told once; reports go to the store, and
// are acknowledged when they are there.
func TestJournalThatCannotBeWritten(t *testing.T) {
	onHost(t, ax.TaskSpec{}, func(h *host) {
		_ = h.journal.Close()
		for range 2 {
			id := h.trigger()
			h.report(ax.Report{BatchNo: ax.BatchNo("inc", id, 1), Kind: ax.ReportEnded, Status: ax.StatusSuccess, StoppedMs: 1})
			if l := h.life(id); l.Status != ax.StatusSuccess {
				t.Errorf("%+v", l)
			}
			h.pass(time.Second)
		}
		if len(h.acks()) != 2 {
			t.Errorf("acknowledged %v", h.acks())
		}
		if n := strings.Count(h.told(), "journal cannot be written"); n != 1 {
			t.Errorf("told %d times", n)
		}
	})
}

// A row that was born dispatched in a transaction whose answer was lost is
// started soon, once, and needs two readings.
func TestDispatchedRowInNobodysHands(t *testing.T) {
	onHost(t, ax.TaskSpec{}, func(h *host) {
		synctest.Wait()
		now := time.Now().UnixMilli()
		ref, err := h.store.Trigger(t.Context(), ax.Trigger{ObjectID: 1, UID: "x", DueMs: now, NowMs: now})
		if err != nil {
			t.Fatal(err)
		}
		_, err = h.store.Dispatch(t.Context(), []ax.Handover{{Ref: ref, Attempt: 1, Host: "h1", Boot: "b1", AtMs: now, DeadlineMs: now + 30_000}})
		if err != nil {
			t.Fatal(err)
		}
		h.d.OutcomeUnknown()
		synctest.Wait()
		if len(h.given()) != 0 {
			t.Fatal("started after one reading")
		}
		h.pass(2500 * time.Millisecond)
		if len(h.given()) != 1 || h.given()[0].BatchNo != ax.BatchNo("inc", ref.ID, 1) {
			t.Fatalf("jobs %+v", h.given())
		}
		h.pass(time.Minute)
		if len(h.given()) != 1 {
			t.Errorf("jobs %+v", h.given())
		}
		h.report(ax.Report{BatchNo: h.given()[0].BatchNo, Kind: ax.ReportEnded, Status: ax.StatusSuccess, StoppedMs: 1})
		if l := h.life(ref.ID); l.Status != ax.StatusSuccess {
			t.Errorf("%+v", l)
		}
	})
}

// What is born behind an instance that nobody told this process of starts after
// it, though it is the first that is known; and it does not wait for ever, also
// where no reading shows the other one any more.
func TestBornBehindWhatIsUnknown(t *testing.T) {
	onHost(t, ax.TaskSpec{}, func(h *host) {
		synctest.Wait()
		wait := func(n int, ahead ...int64) ax.Ref {
			due := time.Now().Add(time.Duration(n) * time.Millisecond).UnixMilli()
			ref, err := h.store.Trigger(t.Context(), ax.Trigger{ObjectID: 1, UID: fmt.Sprint(n), DueMs: due, NowMs: due})
			if err != nil {
				t.Fatal(err)
			}
			if ahead != nil {
				h.d.Behind(1, ahead)
				h.d.Wait([]*ax.TaskVersion{h.task}, []ax.Waiting{{
					Ref: ref, Version: 1, Kind: ax.InstanceManual, Attempt: 1, NotBeforeMs: due, MaxActive: 2, Overlap: ax.OverlapQueue,
				}})
			}
			return ref
		}
		older := wait(0)
		newer := wait(1, older.ID)
		h.pass(time.Second)
		if js := h.given(); len(js) != 2 || js[0].InstanceID != older.ID || js[1].InstanceID != newer.ID {
			t.Fatalf("jobs %+v", js)
		}
		for _, j := range h.given() {
			h.report(ax.Report{BatchNo: j.BatchNo, Kind: ax.ReportEnded, Status: ax.StatusSuccess, StoppedMs: 1})
		}
		last := wait(2, 99)
		h.pass(time.Second)
		if js := h.given(); len(js) != 3 || js[2].InstanceID != last.ID {
			t.Errorf("jobs %+v", js)
		}
	})
}

// When this process goes on after it was stopped beyond an attempt's deadline,
// an end that was reported in time counts; one that was not is overdue later.
func TestStallBeyondTheDeadline(t *testing.T) {
	for _, reported := range []bool{true, false} {
		t.Run(fmt.Sprintf("reported %t", reported), func(t *testing.T) {
			onHost(t, ax.TaskSpec{Timeout: 5000}, func(h *host) {
				ends := func(id int64) []ax.Report {
					return []ax.Report{{BatchNo: ax.BatchNo("inc", id, 1), Kind: ax.ReportEnded, Status: ax.StatusSuccess, StoppedMs: 1}}
				}
				id := h.trigger()
				h.report(ax.Report{BatchNo: ax.BatchNo("inc", id, 1), Kind: ax.ReportStarted, StartedMs: time.Now().UnixMilli()})
				h.pass(time.Second) // its deadline is set
				other := h.trigger()
				h.stall = time.Minute
				h.reports <- ends(other)
				synctest.Wait()
				h.stall = 0
				want := ax.StatusDispatched
				if reported {
					h.reports <- ends(id)
					want = ax.StatusSuccess
				}
				h.pass(time.Minute + time.Second)
				if l := h.life(id); l.Status != want {
					t.Errorf("a second later it is %s, not %s", l.Status, want)
				}
				h.pass(overdueGrace + time.Second)
				if l := h.life(id); !reported && l.Status != ax.StatusTimeout {
					t.Errorf("what was not reported is %s", l.Status)
				}
			})
		})
	}
}

// What waits for an executor starts soon after it is there, though nothing
// tells of it and nothing else happens.
func TestExecutorThatComesBack(t *testing.T) {
	onHost(t, ax.TaskSpec{}, func(h *host) {
		h.setAway(true)
		h.trigger()
		for range 5 {
			h.pass(1234 * time.Millisecond)
		}
		if len(h.given()) != 0 {
			t.Fatalf("given to nobody: %+v", h.given())
		}
		h.setAway(false)
		h.pass(offerEvery)
		if len(h.given()) != 1 {
			t.Errorf("not begun %s after its executor was there", offerEvery)
		}
	})
}

// A retry waits for the processes of the attempt before; when they do not go,
// the instance ends without it.
func TestRetryOfWhatDoesNotStop(t *testing.T) {
	retry := ax.RetrySpec{Max: 3, Initial: 1000, Factor: 1, MaxInterval: 1000, On: ax.RetryBlockOn}
	onHost(t, ax.TaskSpec{Idempotent: true, Retry: retry}, func(h *host) {
		id := h.trigger()
		batch := ax.BatchNo("inc", id, 1)
		h.report(ax.Report{BatchNo: batch, Kind: ax.ReportEnded, Status: ax.StatusFailed})
		h.pass(15 * time.Second)
		if l := h.life(id); l.Status != ax.StatusDispatched {
			t.Fatalf("%+v", l)
		}
		<-time.After(10 * time.Second) // kill_after 10 s, grace 10 s
		if l := h.life(id); l.Status != ax.StatusFailed || l.StoppedMs != 0 {
			t.Fatalf("%+v", l)
		}
		h.report(ax.Report{BatchNo: batch, Kind: ax.ReportLost, StoppedMs: time.Now().UnixMilli()})
		l := h.life(id)
		if l.StoppedMs == 0 || len(h.acks()) != 1 || h.d.Stats().Running != 0 {
			t.Errorf("%+v, acknowledged %v", l, h.acks())
		}
		for _, tr := range l.Transitions {
			if tr.Cause == ax.CauseLateResult {
				t.Errorf("the stop was noted as a result: %+v", tr)
			}
		}
	})
}

// An attempt that was handed over and does not begin is told once, and is left
// to its executor.
func TestAttemptThatDoesNotBegin(t *testing.T) {
	onHost(t, ax.TaskSpec{}, func(h *host) {
		id := h.trigger()
		h.pass(2 * time.Minute)
		if n := strings.Count(h.told(), "has not begun"); n != 1 {
			t.Errorf("told %d times", n)
		}
		if l := h.life(id); l.Status != ax.StatusDispatched {
			t.Errorf("%+v", l)
		}
	})
}

// Work that ends before the flush costs no write of its start; longer work has
// its deadline in the row.
func TestStartsAreWrittenForLongWorkOnly(t *testing.T) {
	onHost(t, ax.TaskSpec{Timeout: 60_000}, func(h *host) {
		short, long := h.trigger(), int64(0)
		h.pass(time.Millisecond)
		long = h.trigger()
		for _, id := range []int64{short, long} {
			h.report(ax.Report{BatchNo: ax.BatchNo("inc", id, 1), Kind: ax.ReportStarted, StartedMs: time.Now().UnixMilli()})
		}
		h.report(ax.Report{BatchNo: ax.BatchNo("inc", short, 1), Kind: ax.ReportEnded, Status: ax.StatusSuccess, StoppedMs: 1})
		if l := h.life(long); l.StartedMs != 0 {
			t.Errorf("written before the flush: %+v", l)
		}
		h.pass(time.Second)
		l := h.life(long)
		if l.StartedMs == 0 || l.DeadlineMs != l.StartedMs+60_000 {
			t.Errorf("%+v", l)
		}
		if s := h.life(short); s.StartedMs != l.StartedMs || s.DeadlineMs == s.StartedMs+60_000 {
			t.Errorf("%+v", s)
		}
	})
}
