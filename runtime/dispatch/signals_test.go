package dispatch

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/axctl/ax"
)

func (h *host) signal(id int64, s ax.Signal) {
	h.t.Helper()
	if err := h.store.Signal(h.t.Context(), ax.SignalRequest{InstanceID: id, Signal: s, NowMs: time.Now().UnixMilli(), Who: "ann"}); err != nil {
		h.t.Fatal(err)
	}
	h.d.Wake()
	synctest.Wait()
}

func (h *host) asked() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.signals)
}

// A pause goes to the executor, again while it is not answered; while it lasts
// the attempt is not overdue, and its deadline is later by it.
func TestPauseMovesTheDeadline(t *testing.T) {
	onHost(t, *spec(func(s *ax.TaskSpec) { s.Timeout = 60_000 }), func(h *host) {
		id := h.trigger()
		batch := h.given()[0].BatchNo
		began := time.Now().UnixMilli()
		h.report(ax.Report{BatchNo: batch, Kind: ax.ReportStarted, StartedMs: began})
		h.pass(time.Second)
		h.signal(id, ax.SignalPause)
		if h.asked() != 1 {
			t.Fatalf("passed on %d times", h.asked())
		}
		h.pass(12 * time.Second)
		if n := h.asked(); n < 2 || n > 4 {
			t.Errorf("not answered for 12 s and passed on %d times", n)
		}
		paused := time.Now().UnixMilli()
		h.report(ax.Report{BatchNo: batch, Kind: ax.ReportSignal, Signal: ax.SignalPause, AtMs: paused})
		h.pass(time.Hour)
		l := h.life(id)
		if l.Status != ax.StatusDispatched || l.PausedMs != paused || l.PausedBy != "ann" {
			t.Errorf("after an hour of pause: %s, paused %d by %q", l.Status, l.PausedMs, l.PausedBy)
		}
		h.signal(id, ax.SignalResume)
		h.report(ax.Report{BatchNo: batch, Kind: ax.ReportSignal, Signal: ax.SignalResume, AtMs: time.Now().UnixMilli()})
		h.pass(time.Second)
		want := began + 60_000 + time.Hour.Milliseconds()
		if l = h.life(id); l.PausedMs != 0 || l.DeadlineMs < want || l.DeadlineMs > want+2000 {
			t.Errorf("deadline is %d, want %d; paused %d", l.DeadlineMs, want, l.PausedMs)
		}
		h.pass(2 * time.Minute)
		if l = h.life(id); l.Status != ax.StatusTimeout {
			t.Errorf("its executor says nothing, and it is %s", l.Status)
		}
		h.report(ax.Report{BatchNo: batch, Kind: ax.ReportStopped, StoppedMs: time.Now().UnixMilli()})
		h.pass(time.Second)
	})
}

// Progress is written once a second at most, the newest; a refusal is told.
func TestProgressIsWritten(t *testing.T) {
	onHost(t, *spec(), func(h *host) {
		id := h.trigger()
		batch := h.given()[0].BatchNo
		h.report(ax.Report{BatchNo: batch, Kind: ax.ReportStarted, StartedMs: time.Now().UnixMilli()})
		for n := range 10 {
			p := ax.Progress{AtMs: time.Now().UnixMilli() + int64(n), Percent: float64(n), Text: "step"}
			h.report(ax.Report{BatchNo: batch, Kind: ax.ReportProgress, Progress: &p})
		}
		h.pass(2 * time.Second)
		if p := h.life(id).Progress; p == nil || p.Percent != 9 || p.Text != "step" || p.Attempt != 1 {
			t.Errorf("progress is %+v", p)
		}
		h.signal(id, ax.SignalPause)
		h.report(ax.Report{BatchNo: batch, Kind: ax.ReportSignal, Signal: ax.SignalPause, AtMs: time.Now().UnixMilli(), Error: "it cannot"})
		h.pass(time.Second)
		if st := h.life(id).Signal; st == nil || st.Refused != "it cannot" || st.PausedMs != 0 {
			t.Errorf("the answer is %+v", st)
		}
		h.report(ax.Report{BatchNo: batch, Kind: ax.ReportEnded, Status: ax.StatusFailed, ErrorClass: ax.ClassLost, Error: "no sign of life", EndedMs: time.Now().UnixMilli()})
		h.pass(time.Second)
		if l := h.life(id); l.Status != ax.StatusDispatched {
			t.Errorf("a retry before its processes were gone: %s", l.Status)
		}
		h.report(ax.Report{BatchNo: batch, Kind: ax.ReportStopped, StoppedMs: time.Now().UnixMilli()})
		h.pass(time.Second)
		if l := h.life(id); l.Status != ax.StatusPending || l.Attempt != 2 || l.Attempts[0].ErrorClass != ax.ClassLost {
			t.Errorf("after they were gone: %s, attempt %d", l.Status, l.Attempt)
		}
	})
}
