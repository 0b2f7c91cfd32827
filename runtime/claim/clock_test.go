package claim

import (
	"slices"
	"testing"
	"time"

	"github.com/axctl/ax"
	"github.com/prometheus/client_golang/prometheus"
)

// metric returns a counter's reading, 0 when it has none.
func (b *bench) metric(name, label string) float64 {
	b.t.Helper()
	families, err := b.c.cfg.Registerer.(*prometheus.Registry).Gather()
	if err != nil {
		b.t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name && (label == "" || m.GetLabel()[0].GetValue() == label) {
				return m.GetCounter().GetValue()
			}
		}
	}
	return 0
}

// All tasks are set back in pages, a few a wake, and each page is one
// transaction.
func TestRewindIsPaced(t *testing.T) {
	onBench(t, func(b *bench) {
		n := 2*rewindRows + 7
		b.apply(n, 30, keep)
		b.settle()
		b.offset = time.Hour
		for range 3 { // it is seen, and confirmed by two looks
			<-time.After(5 * time.Second)
			b.settle()
		}
		b.offset = 0
		<-time.After(5 * time.Second)
		for before := 0.0; before < float64(n); {
			if _, err := b.c.runOnce(t.Context()); err != nil {
				t.Fatal(err)
			}
			now := b.metric("ax_claim_rewound_total", "")
			if now-before > rewindRows {
				t.Fatalf("%v tasks set back in a wake", now-before)
			}
			before = now
		}
		b.settle()
		if got := b.metric("ax_claim_rewound_total", ""); got != float64(n) {
			t.Errorf("%v tasks set back", got)
		}
		if f, k := b.metric("ax_claim_clock_steps_total", "forward"), b.metric("ax_claim_clock_steps_total", "back"); f != 1 || k != 1 {
			t.Errorf("%v steps forward, %v back", f, k)
		}
		rows, err := b.ScheduledTasks(t.Context(), 0, 2*n)
		if err != nil || len(rows) != n {
			t.Fatal(len(rows), err)
		}
		for _, row := range rows {
			if now := time.Now().UnixMilli(); row.NextMs <= now || row.NextMs > now+30*second {
				t.Fatalf("next in %d ms", row.NextMs-now)
			}
		}
	})
}

// A clock that is slow or fast, or stands still for seconds, makes no step.
func TestSlewIsNoStep(t *testing.T) {
	onBench(t, func(b *bench) {
		b.apply(1, 30, keep)
		for i := range 60 {
			<-time.After(5 * time.Second)
			b.offset += time.Duration(i%3-1) * 900 * time.Millisecond
			b.settle()
		}
		b.offset -= 9 * time.Second
		b.settle()
		if b.c.Stats().ClockDoubted {
			t.Error("it is not believed")
		}
		for _, way := range []string{"forward", "back"} {
			if n := b.metric("ax_claim_clock_steps_total", way); n != 0 {
				t.Errorf("%v steps %s", n, way)
			}
		}
		if len(b.claims) < 9 {
			t.Errorf("%d claims", len(b.claims))
		}
	})
}

// A next_fire_time that was set ahead while axd was down comes back when it
// starts, and what passed meanwhile is a misfire.
func TestSetAheadWhileDown(t *testing.T) {
	onBench(t, func(b *bench) {
		b.apply(1, 10, keep)
		<-time.After(10 * time.Second)
		b.settle()
		row := b.c.tasks[1].DueTask
		done, err := b.Rewind(t.Context(), []ax.Rewind{{
			TaskID: 1, ExpectNextMs: row.NextMs, ExpectLockVersion: row.LockVersion,
			NextMs: row.NextMs + 3600*second, LastSlotMs: row.LastSlotMs, NowMs: b.c.nowMs(),
		}})
		if err != nil || !slices.Equal(done, []bool{true}) {
			t.Fatal(done, err)
		}
		<-time.After(10 * time.Minute)
		b.c.cfg.Registerer = nil
		b.c = New(b.c.cfg)
		b.settle()
		if b.skipped[ax.ReasonMisfire] != 59 || len(b.waits) != 1 {
			t.Errorf("skipped %v, waits %v", b.skipped, b.waits)
		}
	})
}

func TestCut(t *testing.T) {
	t.Parallel()
	tt := everySeconds(t, 10)
	const s = second
	tests := []struct {
		name string
		used []int64
		want []ax.SkippedStretch
	}{
		{"none", nil, []ax.SkippedStretch{{FromMs: 10 * s, ToMs: 50 * s, Slots: 5}}},
		{"outside", []int64{0, 60 * s}, []ax.SkippedStretch{{FromMs: 10 * s, ToMs: 50 * s, Slots: 5}}},
		{"inside", []int64{30 * s}, []ax.SkippedStretch{{FromMs: 10 * s, ToMs: 20 * s, Slots: 2}, {FromMs: 40 * s, ToMs: 50 * s, Slots: 2}}},
		{"both ends", []int64{10 * s, 50 * s}, []ax.SkippedStretch{{FromMs: 20 * s, ToMs: 40 * s, Slots: 3}}},
		{"neighbours", []int64{20 * s, 30 * s}, []ax.SkippedStretch{{FromMs: 10 * s, ToMs: 10 * s, Slots: 1}, {FromMs: 40 * s, ToMs: 50 * s, Slots: 2}}},
		{"all", []int64{10 * s, 20 * s, 30 * s, 40 * s, 50 * s}, nil},
	}
	for _, c := range tests {
		if got := cut(ax.SkippedStretch{FromMs: 10 * s, ToMs: 50 * s, Slots: 5}, c.used, tt); !slices.Equal(got, c.want) {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}

// A store that refuses to set tasks back is asked once a page, not at each wake,
// and what is due goes on.
func TestRewindThatIsRefused(t *testing.T) {
	onBench(t, func(b *bench) {
		b.apply(2, 10, keep)
		<-time.After(10 * time.Second)
		b.settle()
		row := b.c.tasks[1].DueTask
		if _, err := b.Store.Rewind(t.Context(), []ax.Rewind{{
			TaskID: 1, ExpectNextMs: row.NextMs, ExpectLockVersion: row.LockVersion,
			NextMs: row.NextMs + 3600*second, LastSlotMs: row.LastSlotMs, NowMs: b.c.nowMs(),
		}}); err != nil {
			t.Fatal(err)
		}
		b.rewindRefused = true
		b.c.cfg.Registerer = nil
		b.c = New(b.c.cfg)
		before := len(b.claims)
		for range 30 {
			<-time.After(5 * time.Second)
			b.settle()
		}
		if b.noRewind != 1 {
			t.Errorf("asked %d times", b.noRewind)
		}
		if len(b.claims) == before {
			t.Error("nothing was claimed any more")
		}
		b.rewindRefused = false
		b.c = New(b.c.cfg)
		b.settle() // and the store is whole again
	})
}
