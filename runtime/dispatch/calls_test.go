package dispatch

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/axctl/ax"
	"github.com/axctl/ax/store/memory"
)

// refusing is a store that refuses, for no passing reason, what has a row of
// one instance in it, and whose definitions may be lost.
type refusing struct {
	*memory.Store
	h *host
}

var errRefused = errors.New("constraint")

// refuse sets the instance that a call refuses from now on, 0 none.
func (h *host) refuse(call string, id int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.refused == nil {
		h.refused = map[string]int64{}
	}
	h.refused[call] = id
}

func refuse[T any](r refusing, call string, rows []T, id func(T) int64) error {
	r.h.mu.Lock()
	defer r.h.mu.Unlock()
	bad := r.h.refused[call]
	if slices.ContainsFunc(rows, func(row T) bool { return id(row) == bad }) {
		return errRefused
	}
	return nil
}

func (r refusing) Dispatch(ctx context.Context, hs []ax.Handover) ([]ax.HandoverResult, error) {
	if err := refuse(r, "Dispatch", hs, func(h ax.Handover) int64 { return h.ID }); err != nil {
		return nil, err
	}
	return r.Store.Dispatch(ctx, hs)
}

func (r refusing) Started(ctx context.Context, ss []ax.Started) error {
	if err := refuse(r, "Started", ss, func(s ax.Started) int64 { return s.ID }); err != nil {
		return err
	}
	return r.Store.Started(ctx, ss)
}

func (r refusing) TaskVersions(ctx context.Context, ks []ax.VersionKey) ([]ax.TaskVersion, error) {
	r.h.mu.Lock()
	r.h.versionReads++
	lost := r.h.versionsLost
	r.h.mu.Unlock()
	if lost {
		return nil, nil
	}
	return r.Store.TaskVersions(ctx, ks)
}

// Of two instances that are handed over together the one that the store refuses
// keeps neither the other, nor a place, and is tried again each minute only.
func TestRefusedHandoverKeepsNobody(t *testing.T) {
	onHost(t, ax.TaskSpec{}, func(h *host) {
		h.setAway(true)
		bad := h.trigger()
		h.pass(time.Millisecond)
		good := h.trigger()
		h.refuse("Dispatch", bad)
		h.setAway(false)
		h.pass(30 * time.Second)
		if l := h.life(good); l.Status != ax.StatusDispatched {
			t.Fatalf("kept: %+v", l)
		}
		if n := strings.Count(h.told(), "cannot be handed over"); n != 1 || !strings.Contains(h.told(), "error=constraint") {
			t.Errorf("told %d times", n)
		}
		h.report(ax.Report{BatchNo: ax.BatchNo("inc", good, 1), Kind: ax.ReportEnded, Status: ax.StatusSuccess, StoppedMs: 1})
		var more []int64
		for range 2 { // with the bad one that would be three of two places
			more = append(more, h.trigger())
			h.pass(time.Millisecond)
		}
		for _, id := range more {
			if l := h.life(id); l.Status != ax.StatusDispatched {
				t.Errorf("no place: %+v", l)
			}
			h.report(ax.Report{BatchNo: ax.BatchNo("inc", id, 1), Kind: ax.ReportEnded, Status: ax.StatusSuccess, StoppedMs: 1})
		}
		h.refuse("Dispatch", 0)
		h.pass(31 * time.Second)
		if l := h.life(bad); l.Status != ax.StatusDispatched {
			t.Errorf("not tried again: %+v", l)
		}
	})
}

// A start that the store refuses keeps no other from being written, and is
// written when the store takes it.
func TestRefusedStartIsKept(t *testing.T) {
	onHost(t, ax.TaskSpec{Timeout: 600_000}, func(h *host) {
		bad := h.trigger()
		h.pass(time.Millisecond)
		good := h.trigger()
		h.refuse("Started", bad)
		began := time.Now().UnixMilli()
		for _, id := range []int64{bad, good} {
			h.report(ax.Report{BatchNo: ax.BatchNo("inc", id, 1), Kind: ax.ReportStarted, StartedMs: began})
		}
		h.pass(time.Minute)
		if l := h.life(good); l.StartedMs != began || l.DeadlineMs != began+600_000 {
			t.Errorf("kept: %+v", l)
		}
		if n := strings.Count(h.told(), "call=started"); n != 1 || !strings.Contains(h.told(), "constraint") {
			t.Errorf("told %d times", n)
		}
		h.refuse("Started", 0)
		h.pass(10 * time.Second)
		if l := h.life(bad); l.StartedMs != began || l.DeadlineMs != began+600_000 {
			t.Errorf("dropped: %+v", l)
		}
	})
}

// A flush of starts does not put off the stop that a cancel has asked for.
func TestCancelBeforeTheStartIsWritten(t *testing.T) {
	onHost(t, ax.TaskSpec{Timeout: 3_600_000}, func(h *host) {
		id := h.trigger()
		h.report(ax.Report{BatchNo: ax.BatchNo("inc", id, 1), Kind: ax.ReportStarted, StartedMs: time.Now().UnixMilli()})
		if _, err := h.store.Cancel(t.Context(), id, "ann", time.Now().UnixMilli()); err != nil {
			t.Fatal(err)
		}
		h.d.CancelAsked()
		h.pass(30 * time.Second) // kill_after 10 s, grace 10 s
		if l := h.life(id); l.Status != ax.StatusCancelled {
			t.Errorf("%+v", l)
		}
		h.report(ax.Report{BatchNo: ax.BatchNo("inc", id, 1), Kind: ax.ReportStopped, StoppedMs: time.Now().UnixMilli()})
	})
}

// The definition of a dispatched row that is nowhere is read once, and told
// once.
func TestAbsentVersionIsToldOnce(t *testing.T) {
	onHost(t, ax.TaskSpec{}, func(h *host) {
		now := time.Now().UnixMilli()
		ref, err := h.store.Trigger(t.Context(), ax.Trigger{ObjectID: 1, UID: "x", DueMs: now, NowMs: now})
		if err != nil {
			t.Fatal(err)
		}
		_, err = h.store.Dispatch(t.Context(), []ax.Handover{{Ref: ref, Attempt: 1, Host: "h1", Boot: "b1", AtMs: now, DeadlineMs: now + 30_000}})
		if err != nil {
			t.Fatal(err)
		}
		h.mu.Lock()
		h.versionsLost, h.versionReads = true, 0
		h.mu.Unlock()
		h.d.OutcomeUnknown()
		h.pass(time.Minute)
		h.mu.Lock()
		reads := h.versionReads
		h.mu.Unlock()
		if n := strings.Count(h.told(), "definition is not in the store"); n != 1 || reads != 1 {
			t.Errorf("told %d times, read %d times", n, reads)
		}
	})
}
