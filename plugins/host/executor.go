package host

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	pb "github.com/axctl/ax/plugins/proto"
)

// Supervision.
const (
	firstBackoff = 100 * time.Millisecond
	maxBackoff   = 30 * time.Second
	loopStarts   = 4                // failures in a row that make a crash loop
	steady       = 30 * time.Second // a run this long ends one
	stopLimit    = 8 * time.Second  // for an executor to end by itself
	closeLimit   = 2 * time.Second  // for a session to end
	watchEvery   = 2 * time.Second  // a program's file is looked at this often
	window       = 1 << 20          // bytes of output on their way from one process
	maxJobs      = 256              // of one message
	maxJobBytes  = 1 << 20
)

// executor supervises one command: the process that takes its jobs, and those
// of an earlier program or host that finish what they have.
type executor struct {
	host    *Host
	cmd     Command        // its Name stays; the rest is guarded by Host.mu
	links   sync.WaitGroup // of those that were found or started
	changed chan struct{}  // holds a token when cmd is another one
	removed chan struct{}  // closed when it is retired

	// Guarded by Host.mu.
	retired  bool      // it is configured no more: it only finishes
	jobs     []*pb.Job // wait for a process
	current  *link     // takes jobs; nil: none
	offers   []Offer   // of the process that came up last
	names    []string  // of its handlers, as it told last
	shadowed []string  // those of them that are another executor's
	settled  bool      // has come up or failed to
	known    bool      // has told its handlers once
	sum      string    // of the program that came up last
	ailments
}

// ailments are what is wrong with an executor.
type ailments struct {
	problem       string // why it last failed; "" when it has run since
	words         string // the last it said on standard error then
	note          string // what keeps the one that runs from being changed
	quarantined   string // why nothing is started for now; "" is not so
	quarantinedMs int64  // since when
	retryMs       int64  // when it is started again; 0 while it is up or starts
}

func newExecutor(h *Host, c Command) *executor {
	return &executor{host: h, cmd: c, names: c.Handlers, changed: make(chan struct{}, 1), removed: make(chan struct{})}
}

// find takes over a process of an earlier host. It returns when that has begun
// or failed. One that is of another program than would be started now, or the
// second, only finishes what it has.
func (x *executor) find(ctx context.Context, r record) {
	p := foundProcess(x, r)
	if p == nil {
		x.host.ended(ctx, x, r)
		return
	}
	l := newLink(x, p)
	cmd, sum, err := x.program()
	x.host.mu.Lock()
	l.draining = x.retired || err != nil || !r.is(cmd, sum) || x.current != nil
	x.host.mu.Unlock()
	x.links.Go(func() {
		l.run(ctx)
		select {
		case <-l.idle:
			x.host.cfg.Log.Info("executor of an earlier program or axd has finished what it had", "executor", x.cmd.Name, "pid", r.PID)
			return
		default:
		}
		if ctx.Err() == nil && l.err != nil {
			x.host.cfg.Log.Error("executor of an earlier axd is gone", "executor", x.cmd.Name, "error", l.err, "stderr", l.tail)
		}
	})
	select {
	case <-l.up:
		x.host.metrics.found.WithLabelValues(x.cmd.Name).Inc()
		x.host.believe(l.whole, "executor "+x.cmd.Name+" does not say whether it has named all that it has")
	case <-l.over:
		x.host.believe(l.told, fmt.Sprintf("executor %s was killed: %v", x.cmd.Name, l.err))
	}
}

// supervise keeps a process of the executor running until ctx ends, and changes
// it when its program's file is another.
func (x *executor) supervise(ctx context.Context) {
	defer x.links.Wait()
	if x.isRetired() {
		return
	}
	failures, began := 0, time.Now()
	l := x.running()
	for {
		var err error
		var tail string
		if l == nil {
			began = time.Now()
			l, tail, err = x.launch(ctx)
		}
		x.settle()
		if l != nil {
			if next := x.attend(ctx, l); next != nil {
				l, began = next, time.Now()
				continue
			}
			if x.isRetired() {
				return
			}
			tail, err, l = l.tail, l.err, nil
		}
		if ctx.Err() != nil || x.isRetired() {
			return
		}
		if time.Since(began) > steady {
			failures = 0
		}
		failures++
		x.failed(failures, tail, err)
		if !x.pause(ctx, failures) {
			return
		}
	}
}

// launch starts a process and returns when it takes jobs, or why it does not.
func (x *executor) launch(ctx context.Context) (l *link, stderrTail string, err error) {
	x.host.metrics.starts.WithLabelValues(x.cmd.Name).Inc()
	cmd, sum, err := x.program()
	if err != nil {
		return nil, "", err
	}
	p, err := newProcess(x, cmd, sum)
	if err != nil {
		return nil, "", err
	}
	l = newLink(x, p)
	x.links.Go(func() { l.run(ctx) })
	select {
	case <-l.up:
		return l, "", nil
	case <-l.over:
		return nil, l.tail, l.err
	}
}

// attend waits until the process is over, or it is nobody's any more. When its
// program's file or the way to start it has become another one it starts that,
// and returns its process once it takes the jobs: then the one before only
// finishes what it has. A program that does not start, or is not the pinned one,
// changes nothing, which is noted.
func (x *executor) attend(ctx context.Context, l *link) (next *link) {
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	tried := ""
	for {
		select {
		case <-l.over:
			return nil
		case <-x.removed:
			return nil
		case <-ctx.Done():
			<-l.over
			return nil
		case <-x.changed:
			tried = ""
		case <-ticker.C:
		}
		cmd, sum, err := x.program()
		log := x.host.cfg.Log.With("executor", cmd.Name, "path", cmd.Path, "pid", l.proc.pid())
		switch {
		case err != nil:
			if x.remark(err.Error()) {
				log.Error("the program is not what it should be: the process that runs goes on", "error", err)
			}
			continue
		case l.proc.rec.is(cmd, sum):
			x.remark("")
			continue
		case sum == tried:
			continue
		}
		tried = sum
		next, tail, err := x.launch(ctx)
		if err == nil {
			x.remark("")
			log.Info("program was replaced: the process before finishes what it has and takes no more jobs")
			return next
		}
		x.remark("what it should be now does not start: " + err.Error())
		log.Error("program was replaced and does not start: the process before goes on", "error", err, "stderr", tail)
	}
}

// remark notes what keeps the process that runs from being changed, "" nothing.
// It returns whether that is news.
func (x *executor) remark(note string) bool {
	x.host.mu.Lock()
	defer x.host.mu.Unlock()
	was := x.note
	x.note = note
	return was != note
}

func (x *executor) isRetired() bool {
	x.host.mu.Lock()
	defer x.host.mu.Unlock()
	return x.retired
}

// failed takes note of the end of a process. It is logged when it is the first
// in a row and when it makes a crash loop, not beyond.
func (x *executor) failed(failures int, tail string, err error) {
	log := x.host.cfg.Log.With("executor", x.cmd.Name)
	switch {
	case failures == 1:
		log.Error("executor ended", "error", err, "stderr", tail)
	case errors.Is(err, errPinned): // it was not started, and has been told
	case failures == loopStarts:
		log.Error("executor in a crash loop", "error", err, "stderr", tail, "failures", failures,
			"hint", "it is quarantined: tried again every 30 s, and when its program changes")
	default:
		log.Debug("executor ended", "error", err, "failures", failures)
	}
	x.host.mu.Lock()
	x.problem, x.words, x.note = err.Error(), tail, ""
	x.host.mu.Unlock()
	why := ""
	if failures >= loopStarts && !errors.Is(err, errPinned) {
		why = err.Error()
	}
	x.host.refuseWaiting(x, why)
}

// pause waits before the next start; a quarantine ends when the program, or the
// way to start it, changes too. It returns false when nothing is to be started
// any more.
func (x *executor) pause(ctx context.Context, failures int) bool {
	_, was, _ := x.program()
	wait := min(maxBackoff, firstBackoff<<min(failures-1, 20))
	late := time.NewTimer(wait)
	defer late.Stop()
	x.retryAt(x.host.nowMs() + wait.Milliseconds())
	defer x.retryAt(0)
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	for {
		select {
		case <-late.C:
			return true
		case <-ctx.Done():
			return false
		case <-x.removed:
			return false
		case <-x.changed:
			return true
		case <-ticker.C:
			if _, is, _ := x.program(); is != was && is != "" {
				return true
			}
		}
	}
}

// retryAt notes when the next start is.
func (x *executor) retryAt(ms int64) {
	x.host.mu.Lock()
	defer x.host.mu.Unlock()
	x.retryMs = ms
}

// running returns the process that takes jobs.
func (x *executor) running() *link {
	x.host.mu.Lock()
	defer x.host.mu.Unlock()
	return x.current
}

// settle says that the executor has come up or failed to, once.
func (x *executor) settle() {
	h := x.host
	h.mu.Lock()
	defer h.mu.Unlock()
	if x.settled || x.retired {
		return
	}
	x.settled = true
	h.checkReady()
}

// wakeUp makes the running process look for jobs. Called with Host.mu held.
func (x *executor) wakeUp() {
	if x.current != nil {
		x.current.wakeUp()
	}
}
