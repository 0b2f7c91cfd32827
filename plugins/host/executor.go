package host

import (
	"context"
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
	cmd     Command
	retired bool           // it is configured no more: it only finishes
	links   sync.WaitGroup // of those that were found

	// Guarded by Host.mu.
	jobs        []*pb.Job // wait for a process
	current     *link     // takes jobs; nil: none
	settled     bool      // has come up or failed to
	known       bool      // has told its handlers once
	problem     string    // why it last failed; "" when it has run since
	quarantined string    // why nothing is started for now; "" is not so
}

func newExecutor(h *Host, c Command) *executor { return &executor{host: h, cmd: c} }

// find takes over a process of an earlier host. It returns when that has begun
// or failed. One that is of another program than would be started now, or the
// second, only finishes what it has.
func (x *executor) find(ctx context.Context, r record) {
	p := foundProcess(x, r)
	if p == nil {
		x.host.ended(x, r)
		return
	}
	l := newLink(x, p)
	_, sum, err := x.program()
	x.host.mu.Lock()
	l.draining = x.retired || err != nil || sum != r.SHA256 || x.current != nil
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
		x.host.believe(l.told, "executor "+x.cmd.Name+" was killed: "+l.err.Error())
	}
}

// supervise keeps a process of the executor running until ctx ends, and changes
// it when its program's file is another.
func (x *executor) supervise(ctx context.Context) {
	defer x.links.Wait()
	if x.retired {
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
			tail, err, l = l.tail, l.err, nil
		}
		if ctx.Err() != nil {
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
	_, sum, err := x.program()
	if err != nil {
		return nil, "", err
	}
	p, err := newProcess(x, sum)
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

// attend waits until the process is over. When its program's file has become
// another one it starts that, and returns its process once it takes the jobs:
// then the one before only finishes what it has. A program that does not start
// changes nothing.
func (x *executor) attend(ctx context.Context, l *link) (next *link) {
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	tried := l.proc.rec.SHA256
	for {
		select {
		case <-l.over:
			return nil
		case <-ctx.Done():
			<-l.over
			return nil
		case <-ticker.C:
		}
		_, sum, err := x.program()
		if err != nil || sum == tried || sum == l.proc.rec.SHA256 {
			continue
		}
		log := x.host.cfg.Log.With("executor", x.cmd.Name, "path", x.cmd.Path)
		tried = sum
		next, tail, err := x.launch(ctx)
		if err == nil {
			log.Info("program was replaced: the process before finishes what it has and takes no more jobs", "pid", l.proc.pid())
			return next
		}
		log.Error("program was replaced and does not start: the process before goes on", "error", err, "stderr", tail)
	}
}

// failed takes note of the end of a process. It is logged when it is the first
// in a row and when it makes a crash loop, not beyond.
func (x *executor) failed(failures int, tail string, err error) {
	log := x.host.cfg.Log.With("executor", x.cmd.Name)
	switch {
	case failures == 1:
		log.Error("executor ended", "error", err, "stderr", tail)
	case failures == loopStarts:
		log.Error("executor in a crash loop", "error", err, "stderr", tail, "failures", failures,
			"hint", "it is quarantined: tried again every 30 s, and when its program changes")
	default:
		log.Debug("executor ended", "error", err, "failures", failures)
	}
	x.host.mu.Lock()
	x.problem = err.Error()
	x.host.mu.Unlock()
	why := ""
	if failures >= loopStarts {
		why = err.Error()
	}
	x.host.refuseWaiting(x, why)
}

// pause waits before the next start; a quarantine ends when the program changes
// too. It returns false when ctx has ended.
func (x *executor) pause(ctx context.Context, failures int) bool {
	_, was, _ := x.program()
	late := time.NewTimer(min(maxBackoff, firstBackoff<<min(failures-1, 20)))
	defer late.Stop()
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	for {
		select {
		case <-late.C:
			return true
		case <-ctx.Done():
			return false
		case <-ticker.C:
			if _, is, _ := x.program(); is != was && is != "" {
				return true
			}
		}
	}
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
	if h.settled++; h.settled == len(h.executors) {
		close(h.ready)
	}
}

// wakeUp makes the running process look for jobs. Called with Host.mu held.
func (x *executor) wakeUp() {
	if x.current != nil {
		x.current.wakeUp()
	}
}
