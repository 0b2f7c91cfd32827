package claim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/axctl/ax"
	"github.com/axctl/ax/schedule"
	"github.com/axctl/ax/store/check"
	"github.com/axctl/ax/store/memory"
	"github.com/prometheus/client_golang/prometheus"
)

// bench is a claimer whose wakes the test makes, on a store in memory, with
// places that the test gives.
type bench struct {
	*memory.Store // what the claimer calls
	t             *testing.T
	c             *Claimer
	places        int
	taken         []ax.Handover
	waits         []ax.Waiting
	cancels       int
	lose          bool           // claims are lost
	refused       map[int64]bool // tasks whose hold cannot be ended
	endsUnread    bool           // ended holds cannot be read
	noRewind      int            // calls of Rewind that were refused
	rewindRefused bool
	unknown       int
	claims        [][]ax.Firing
	skipped       map[ax.Reason]int
	offset        time.Duration // of the wall clock
}

func (b *bench) now() time.Time { return time.Now().Add(b.offset) }

func (b *bench) Reserve(string, ax.HandlerSpec) bool {
	if b.places == 0 {
		return false
	}
	b.places--
	return true
}
func (b *bench) Release(string)                               { b.places++ }
func (b *bench) Take(_ []*ax.TaskVersion, rows []ax.Handover) { b.taken = append(b.taken, rows...) }
func (b *bench) Wait(_ []*ax.TaskVersion, rows []ax.Waiting)  { b.waits = append(b.waits, rows...) }
func (b *bench) Behind(int64, []int64)                        {}
func (b *bench) CancelAsked()                                 { b.cancels++ }
func (b *bench) OutcomeUnknown()                              { b.unknown++ }
func (b *bench) Claim(ctx context.Context, fs []ax.Firing) ([]ax.Claimed, error) {
	b.claims = append(b.claims, slices.Clone(fs))
	if b.lose {
		return []ax.Claimed{{Lost: true}}, nil
	}
	return b.Store.Claim(ctx, fs)
}

func (b *bench) Resume(ctx context.Context, id int64, tt ax.Timetable, nowMs int64) error {
	if b.refused[id] {
		return errors.New("refused")
	}
	return b.Store.Resume(ctx, id, tt, nowMs)
}

func (b *bench) Rewind(ctx context.Context, rs []ax.Rewind) ([]bool, error) {
	if b.rewindRefused {
		b.noRewind++
		return nil, errors.New("refused")
	}
	return b.Store.Rewind(ctx, rs)
}

func (b *bench) EndingHolds(ctx context.Context, untilMs int64) ([]ax.HeldTask, error) {
	if b.endsUnread && untilMs <= time.Now().UnixMilli() {
		return nil, errors.New("unread")
	}
	return b.Store.EndingHolds(ctx, untilMs)
}

func onBench(t *testing.T, body func(b *bench)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{Store: memory.New(time.Now), t: t, places: 1 << 20, skipped: map[ax.Reason]int{}}
		made := time.Now()
		b.c = New(Config{
			Store: b, Places: b, Host: "h", Boot: "b",
			Tick: time.Second, Scan: 5 * time.Second, Horizon: 5 * time.Minute,
			Now: b.now, Elapsed: func() time.Duration { return time.Since(made) }, Synced: func() bool { return true }, Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Registerer: prometheus.NewRegistry(),
			OnSkipped: func(_ *ax.TaskVersion, _ ax.Ref, r ax.Reason, n int) { b.skipped[r] += n },
		})
		body(b)
		findings, err := check.Check(t.Context(), b.Store, time.Now())
		if err != nil || len(findings) > 0 {
			t.Error(findings, err)
		}
	})
}

// apply makes n tasks that fire each so many seconds.
func (b *bench) apply(n, every int, edit func(*ax.TaskSpec)) {
	b.t.Helper()
	now := time.Now().UnixMilli()
	cs := ax.ChangeSet{ApplyID: "1", Stack: "s", NowMs: now}
	for i := range n {
		s := &ax.TaskSpec{
			Handler:   ax.HandlerSpec{Name: "work", Body: json.RawMessage("{}")},
			Schedules: []ax.ScheduleSpec{{Every: ax.Duration(every * second), Timezone: "UTC"}},
			Enabled:   true, Concurrency: 1, Overlap: ax.OverlapQueue,
			Misfire: ax.MisfireSpec{Policy: ax.MisfireOnce, Grace: 60 * second, Max: 100, OnResume: ax.MisfireSkip},
		}
		edit(s)
		name := fmt.Sprintf("t%05d", i)
		body, hash := ax.Definition{Kind: ax.KindTask, Name: name, Task: s}.Canonical()
		sched, err := schedule.Compile(s.Schedules)
		if err != nil {
			b.t.Fatal(err)
		}
		next, _ := sched.Next(now)
		cs.Changes = append(cs.Changes, ax.Change{
			Action: ax.ActionCreate, Kind: ax.KindTask, Name: name, Definition: body, Hash: hash,
			Task: &ax.TaskChange{
				Enabled: true, MaxActive: s.Concurrency, Overlap: s.Overlap,
				Timetable: &ax.Timetable{NextMs: next, Fingerprint: sched.Fingerprint()},
			},
		})
	}
	if _, err := b.Apply(b.t.Context(), cs); err != nil {
		b.t.Fatal(err)
	}
}

// settle wakes the claimer until it has nothing to do, and returns how long
// that will last.
func (b *bench) settle() time.Duration {
	b.t.Helper()
	for range 10_000 {
		wait, err := b.c.runOnce(b.t.Context())
		if err != nil {
			b.t.Fatal(err)
		}
		if wait > 0 {
			return wait
		}
	}
	b.t.Fatal("the claimer never rests")
	return 0
}

func keep(*ax.TaskSpec) {}

// The whole horizon is read page by page, and then the claimer sleeps until
// something is due.
func TestScanFillsTheWheel(t *testing.T) {
	onBench(t, func(b *bench) {
		b.apply(2*scanRows+7, 30, keep)
		wait := b.settle()
		if len(b.c.tasks) != 2*scanRows+7 || b.c.wheel.Len() != len(b.c.tasks) {
			t.Errorf("%d tasks, %d in the wheel", len(b.c.tasks), b.c.wheel.Len())
		}
		if len(b.c.versions.m) != len(b.c.tasks) {
			t.Errorf("%d definitions are there before they are needed", len(b.c.versions.m))
		}
		if wait != 5*time.Second {
			t.Errorf("sleeps %v", wait)
		}
		<-time.After(30 * time.Second)
		b.settle()
		if len(b.taken) != len(b.c.tasks) {
			t.Errorf("%d instances", len(b.taken))
		}
		for _, fs := range b.claims {
			if len(fs) > maxSlots {
				t.Errorf("%d slots in a transaction", len(fs))
			}
		}
	})
}

// Far tasks stay out of the wheel, and none is lost when it comes near.
func TestHorizon(t *testing.T) {
	onBench(t, func(b *bench) {
		b.apply(3, 3600, keep)
		b.settle()
		if len(b.c.tasks) != 0 {
			t.Errorf("%d tasks beyond the horizon are held", len(b.c.tasks))
		}
		for range 24 {
			<-time.After(3600 * time.Second)
			b.settle()
		}
		if len(b.taken) == 0 || b.places < 0 {
			t.Errorf("%d instances", len(b.taken))
		}
	})
}

// Somebody else moved the row: the firing is lost, nothing is born, the place
// is given back, and the task goes on from where it is.
func TestLostClaim(t *testing.T) {
	onBench(t, func(b *bench) {
		b.apply(1, 10, keep)
		b.settle()
		row := b.c.tasks[1].DueTask
		<-time.After(10 * time.Second)
		f, _, err := decide(row, &ax.TaskSpec{Concurrency: 1, Misfire: ax.MisfireSpec{Grace: 60 * second}}, everySeconds(t, 10), 10, b.c.nowMs())
		if err != nil {
			t.Fatal(err)
		}
		f.Overlap = ax.OverlapQueue
		if got, err := b.Store.Claim(t.Context(), []ax.Firing{f}); err != nil || got[0].Lost {
			t.Fatal(got, err)
		}
		places := b.places
		b.c.claim(t.Context(), []*task{b.c.tasks[1]}, b.c.nowMs())
		if len(b.taken)+len(b.waits) != 0 || b.places != places {
			t.Errorf("taken %v, waits %v, %d places of %d", b.taken, b.waits, b.places, places)
		}
		if now := b.c.tasks[1].DueTask; now.NextMs != f.NextMs || now.LockVersion == row.LockVersion {
			t.Errorf("the task is still at %+v", now)
		}
	})
}

// A claim that is lost although nobody moved the row is not tried at once.
func TestLostWithoutCauseIsParked(t *testing.T) {
	onBench(t, func(b *bench) {
		b.apply(1, 10, keep)
		b.settle()
		b.lose = true
		<-time.After(10 * time.Second)
		before := len(b.claims)
		if wait := b.settle(); wait == 0 || len(b.claims) != before+1 {
			t.Errorf("%d claims", len(b.claims)-before)
		}
		b.lose = false
		for range 20 {
			<-time.After(5 * time.Second)
			b.settle()
		}
		if len(b.taken) == 0 {
			t.Error("the task does not go on")
		}
	})
}

// Without a place an instance is born waiting; with overlap it is skipped, and
// its place given back.
func TestBirthWithoutPlace(t *testing.T) {
	onBench(t, func(b *bench) {
		b.apply(1, 10, keep)
		b.settle()
		b.places = 0
		<-time.After(10 * time.Second)
		b.settle()
		if len(b.taken) != 0 || len(b.waits) != 1 || b.waits[0].MaxActive != 1 || b.waits[0].Attempt != 1 {
			t.Fatalf("taken %v, waits %+v", b.taken, b.waits)
		}
		b.places = 1
		<-time.After(20 * time.Second)
		b.settle()
		if b.places != 1 || len(b.taken) != 0 || b.skipped[ax.ReasonOverlap] == 0 {
			t.Errorf("%d places, taken %v, skipped %v", b.places, b.taken, b.skipped)
		}
	})
}

func TestReplaceAsksForCancel(t *testing.T) {
	onBench(t, func(b *bench) {
		b.apply(1, 10, func(s *ax.TaskSpec) { s.Overlap = ax.OverlapReplace })
		b.settle()
		<-time.After(10 * time.Second)
		b.settle()
		if b.cancels != 0 || len(b.taken) != 1 {
			t.Fatalf("%d cancels, taken %v", b.cancels, b.taken)
		}
		<-time.After(10 * time.Second)
		b.settle()
		if b.cancels != 1 {
			t.Errorf("%d cancels", b.cancels)
		}
	})
}

// A wake with a large backlog writes a bounded part of it, live slots first.
func TestBacklogIsPaced(t *testing.T) {
	onBench(t, func(b *bench) {
		b.apply(30, 10, func(s *ax.TaskSpec) {
			s.Misfire.Policy, s.Overlap = ax.MisfireAll, ax.OverlapAllow
		})
		<-time.After(3 * time.Hour)
		rows := 0
		for {
			before := len(b.waits)
			wait, err := b.c.runOnce(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if got := len(b.waits) - before; got > maxSlots+100 {
				t.Errorf("%d rows in a wake", got)
			}
			if rows++; wait > 0 {
				break
			}
		}
		if len(b.waits) != 3000 || b.skipped[ax.ReasonMisfire] != 30*980 {
			t.Errorf("%d rows, skipped %v", len(b.waits), b.skipped)
		}
		for i, w := range b.waits[1:] {
			if p := b.waits[i]; p.TaskID == w.TaskID && p.DueMs >= w.DueMs {
				t.Fatalf("task %d: %d before %d", w.TaskID, p.DueMs, w.DueMs)
			}
		}
	})
}

// The end of a hold runs what on_resume says, and says that rows were born.
func TestHoldEnds(t *testing.T) {
	onBench(t, func(b *bench) {
		b.apply(1, 10, func(s *ax.TaskSpec) { s.Misfire.OnResume = ax.MisfireOnce })
		until := time.Now().Add(95 * time.Second).UnixMilli()
		if err := b.Hold(t.Context(), 1, ax.Hold{Kind: ax.HoldPaused, Who: "ann", UntilMs: until}); err != nil {
			t.Fatal(err)
		}
		b.settle()
		<-time.After(95 * time.Second)
		b.settle()
		rows, err := b.Instances(t.Context(), ax.InstanceFilter{TaskID: 1})
		if err != nil || len(rows) != 1 || rows[0].DueMs != until-5*second || b.unknown == 0 {
			t.Errorf("%+v, %v", rows, err)
		}
		<-time.After(5 * time.Second)
		b.settle()
		if len(b.waits)+len(b.taken) != 1 {
			t.Errorf("the task does not go on: %v %v", b.waits, b.taken)
		}
	})
}

// hold holds a task until an instant.
func (b *bench) hold(id int64, until time.Time) {
	b.t.Helper()
	if err := b.Hold(b.t.Context(), id, ax.Hold{Kind: ax.HoldPaused, Who: "ann", UntilMs: until.UnixMilli()}); err != nil {
		b.t.Fatal(err)
	}
}

// A hold that cannot be ended keeps neither other holds nor slots that are due
// at the same instant, is not tried without a pause, and ends when it can.
func TestHoldThatCannotEnd(t *testing.T) {
	onBench(t, func(b *bench) {
		b.apply(3, 10, keep)
		until := time.Now().Add(30 * time.Second)
		b.hold(1, until)
		b.hold(2, until)
		b.refused = map[int64]bool{1: true}
		b.settle()
		<-time.After(30 * time.Second)
		b.settle()
		fired := func() map[int64]bool {
			tasks := map[int64]bool{}
			for _, h := range b.taken {
				tasks[h.TaskID] = true
			}
			return tasks
		}
		if got := fired(); got[1] || !got[2] || !got[3] {
			t.Fatalf("fired %v", got)
		}
		b.refused = nil
		for range 3 {
			<-time.After(5 * time.Second)
			b.settle()
		}
		if !fired()[1] {
			t.Error("the hold does not end")
		}
	})
}

// Slots that are due when ended holds cannot be read are claimed afterwards.
func TestHoldsThatCannotBeRead(t *testing.T) {
	onBench(t, func(b *bench) {
		b.apply(2, 10, keep)
		b.hold(1, time.Now().Add(10*time.Second))
		b.settle()
		<-time.After(9 * time.Second) // so that no scan is due with the slot
		b.settle()
		b.endsUnread = true
		<-time.After(time.Second)
		if _, err := b.c.runOnce(t.Context()); err == nil || len(b.taken) != 0 {
			t.Fatalf("%v, taken %v", err, b.taken)
		}
		b.endsUnread = false
		b.settle()
		if len(b.taken) != 1 || b.taken[0].TaskID != 2 {
			t.Errorf("taken %v", b.taken)
		}
	})
}

// specs has any version.
type specs struct{}

func (specs) TaskVersions(_ context.Context, keys []ax.VersionKey) ([]ax.TaskVersion, error) {
	vs := make([]ax.TaskVersion, len(keys))
	for i, k := range keys {
		vs[i].VersionKey = k
	}
	return vs, nil
}

// Room is made before a load, so what was asked for is there after it.
func TestVersionsAreThereAfterALoad(t *testing.T) {
	t.Parallel()
	vs := newVersions(specs{})
	for i := range maxVersions {
		vs.m[ax.VersionKey{ObjectID: int64(i)}] = &version{}
	}
	var keys []ax.VersionKey
	for i := range 3 * versionsRead {
		keys = append(keys, ax.VersionKey{ObjectID: int64(maxVersions - versionsRead + i)})
	}
	if err := vs.load(t.Context(), keys); err != nil {
		t.Fatal(err)
	}
	for _, k := range keys {
		if vs.get(k) == nil {
			t.Fatalf("%v is not there", k)
		}
	}
	if len(vs.m) > maxVersions {
		t.Errorf("%d kept", len(vs.m))
	}
}

func TestVersionsAreBounded(t *testing.T) {
	t.Parallel()
	vs := newVersions(nil)
	for i := range maxVersions {
		vs.m[ax.VersionKey{ObjectID: int64(i)}] = &version{}
	}
	vs.shrink(1)
	if len(vs.m) != maxVersions/2 {
		t.Errorf("%d kept", len(vs.m))
	}
	for range maxVersions + 5 {
		vs.want(ax.VersionKey{ObjectID: -1})
	}
	if len(vs.queue) != maxVersions {
		t.Errorf("%d wanted", len(vs.queue))
	}
}
