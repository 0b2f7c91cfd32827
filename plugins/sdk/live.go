package sdk

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/axctl/ax/plugins"
	pb "github.com/axctl/ax/plugins/proto"
)

// progressEvery is how often the host is told of an attempt's progress at most,
// and how old an attempt is before it is the first time: short work costs it
// nothing.
const progressEvery = time.Second

// Spans of the watch for signs of life.
const (
	minWatch = 10 * time.Millisecond
	maxWatch = time.Second
	// stalled is how much later than it should a look must come for this
	// process, and so the attempt's signs, to have stood still meanwhile.
	stalled = 2 * time.Second
)

// live is what an attempt and the host tell one another while it runs.
type live struct {
	begun time.Time
	limit *countdown // of the timeout; nil: none

	// Guarded by Executor.mu.
	onSignal func(plugins.Signal) error
	signals  []string // that wait to be answered
	at       bool     // answering them
	paused   int64    // since; 0 it is not
	progress *pb.Progress
	news     bool // progress that is not told
	armed    bool // it will be
	toldAt   time.Time
}

// countdown is a timeout that can stand still.
type countdown struct {
	mu    sync.Mutex // guards what follows
	timer *time.Timer
	left  time.Duration
	since time.Time // it runs; zero: it stands still
}

func newCountdown(d time.Duration, over func()) *countdown {
	return &countdown{timer: time.AfterFunc(d, over), left: d, since: time.Now()}
}

// hold lets it stand still, or go on. One that is over stays so.
func (c *countdown) hold(still bool) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case still && !c.since.IsZero():
		c.timer.Stop()
		c.left -= time.Since(c.since)
		c.since = time.Time{}
	case !still && c.since.IsZero():
		c.since = time.Now()
		c.timer.Reset(max(c.left, 0))
	}
}

func (c *countdown) stop() {
	if c != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.timer.Stop()
	}
}

// watch ends an attempt that gives no sign of life for as long as it may. Its
// writers that wait for the host do, and so does one that is paused. It counts
// only time in which this process could have seen a sign.
func (e *Executor) watch(a *attempt, limit time.Duration) {
	every := min(max(limit/4, minWatch), maxWatch)
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	silent, last := time.Duration(0), time.Now()
	for {
		select {
		case <-a.ctx.Done():
			return
		case <-ticker.C:
		}
		now := time.Now()
		passed := now.Sub(last)
		last = now
		e.mu.Lock()
		paused := a.live.paused != 0
		e.mu.Unlock()
		if a.out.signs.Swap(false) || a.out.writing.Load() > 0 || paused || passed > every+stalled {
			silent = 0
			continue
		}
		if silent += passed; silent >= limit {
			e.interrupt(a, ErrSilent, fmt.Sprintf("no sign of life for %s (heartbeat)", limit))
			return
		}
	}
}

// tellProgress takes what a handler says of its progress.
func (e *Executor) tellProgress(a *attempt, percent float64, text string) {
	a.out.signs.Store(true)
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	p := &pb.Progress{BatchNo: a.job.BatchNo, AtMs: e.nowMs(), Text: clean(text, plugins.MaxProgressBytes)}
	if percent >= 0 && !math.IsNaN(percent) {
		percent = min(percent, 100)
		p.Percent = &percent
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	l := &a.live
	if a.ended != 0 {
		return
	}
	l.progress, l.news = p, true
	if l.armed {
		return
	}
	l.armed = true
	next := l.begun.Add(progressEvery)
	if at := l.toldAt.Add(progressEvery); at.After(next) {
		next = at
	}
	time.AfterFunc(time.Until(next), func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		l.armed = false
		e.queueProgress(a)
	})
}

// queueProgress lets the host be told of news. Called with mu held.
func (e *Executor) queueProgress(a *attempt) {
	l := &a.live
	if !l.news || time.Since(l.begun) < progressEvery {
		return
	}
	l.news, l.toldAt = false, time.Now()
	e.progressed = append(e.progressed, l.progress)
	e.wake()
}

// tellAgain tells a new session how far a running attempt is and that it is
// paused. Called with mu held.
func (e *Executor) tellAgain(a *attempt) {
	if a.ended != 0 {
		return
	}
	if p := a.live.progress; p != nil && !a.live.toldAt.IsZero() {
		e.progressed = append(e.progressed, p)
	}
	if since := a.live.paused; since != 0 {
		e.answers = append(e.answers, &pb.SignalAnswer{BatchNo: a.job.BatchNo, Signal: string(plugins.Pause), AtMs: since})
	}
}

// signal takes a signal for an attempt. Those of one attempt are answered one
// after the other; an attempt that is not there, or has ended, answers by that.
// Called with mu held.
func (e *Executor) signal(s *pb.Signal) {
	a := e.attempts[s.BatchNo]
	if a == nil || a.ended != 0 {
		return
	}
	a.live.signals = append(a.live.signals, s.Signal)
	if !a.live.at {
		a.live.at = true
		go e.answer(a)
	}
}

// answer passes the signals that wait on to the handler.
func (e *Executor) answer(a *attempt) {
	l := &a.live
	for {
		e.mu.Lock()
		if len(l.signals) == 0 || a.ended != 0 {
			l.signals, l.at = nil, false
			e.mu.Unlock()
			return
		}
		word := plugins.Signal(l.signals[0])
		l.signals = l.signals[1:]
		on, paused := l.onSignal, l.paused != 0
		e.mu.Unlock()

		pause := word == plugins.Pause
		reply := &pb.SignalAnswer{BatchNo: a.job.BatchNo, Signal: string(word), AtMs: e.nowMs()}
		switch {
		case !pause && word != plugins.Resume:
			reply.Refused = fmt.Sprintf("executor %s knows no signal %q", e.opts.Plugin, word)
		case pause == paused:
		case on == nil:
			reply.Refused = fmt.Sprintf("handler %s takes no signals", a.job.Handler)
		default:
			if err := passOn(on, word); err != nil {
				reply.Refused = clean(err.Error(), plugins.MaxErrorBytes)
				break
			}
			l.limit.hold(pause)
		}
		e.mu.Lock()
		if reply.Refused == "" {
			switch {
			case !pause:
				l.paused = 0
				a.out.signs.Store(true)
			case l.paused == 0:
				l.paused = reply.AtMs
			}
			if pause {
				reply.AtMs = l.paused
			}
		}
		e.answers = append(e.answers, reply)
		e.mu.Unlock()
		e.wake()
	}
}

// passOn calls a handler's function.
func passOn(on func(plugins.Signal) error, s plugins.Signal) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return on(s)
}

// Gate lets a handler stand still between two steps of its work while its
// attempt is paused.
type Gate struct {
	mu   sync.Mutex
	shut chan struct{} // closed when it opens; nil: it is open
}

// NewGate makes the attempt of job one that can be paused. The handler calls
// Wait between the steps of its work.
func NewGate(job Job) *Gate {
	g := &Gate{}
	job.OnSignal(func(s plugins.Signal) error {
		g.mu.Lock()
		defer g.mu.Unlock()
		switch {
		case s == plugins.Pause && g.shut == nil:
			g.shut = make(chan struct{})
		case s == plugins.Resume && g.shut != nil:
			close(g.shut)
			g.shut = nil
		case s != plugins.Pause && s != plugins.Resume:
			return errors.New("unknown signal")
		}
		return nil
	})
	return g
}

// Wait returns at once, or when the attempt goes on. It returns the cause of
// ctx's end when that comes first.
func (g *Gate) Wait(ctx context.Context) error {
	for {
		g.mu.Lock()
		shut := g.shut
		g.mu.Unlock()
		if shut == nil {
			return context.Cause(ctx)
		}
		select {
		case <-shut:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
