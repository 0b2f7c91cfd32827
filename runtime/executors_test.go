package runtime_test

import (
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/axctl/ax"
)

// play is what a fake executor does with one attempt.
type play struct {
	work  time.Duration // from started to ended
	class ax.ErrorClass // "" is success
	quiet bool          // says nothing at all
	deaf  bool          // ignores cancel and timeout
	// stops is how long its processes outlive its end.
	stops  time.Duration
	refuse bool
	lost   bool          // its executor dies instead of an end
	again  time.Duration // its end is reported a second time so much later
	tells  time.Duration // from started to when it says how far it is; 0: never
}

// executors is a fake of the executors on a host: it runs jobs by timers. It
// outlives an axd: what ends while none is there, or is not acknowledged, is told
// to the next one. What an axd says lies in a socket until it is read.
type executors struct {
	mu      sync.Mutex
	play    func(ax.Job) play
	lag     func(ax.Job) time.Duration // until a message with the job is read
	offers  func(handler string) bool
	accepts func(body json.RawMessage) bool
	reports chan []ax.Report
	sent    map[string]int         // times each batch number was given and not known
	jobs    []ax.Job               // in the order read
	at      map[string]int64       // when
	live    map[string]*attempt    // begun, not ended
	ends    map[string]ax.Status   // first reported, by batch number
	told    map[string]ax.Progress // last, by batch number
	acked   map[string]int
	cancels []ax.CancelOrder
	gone    map[string]func()    // by batch number: its processes are gone now
	done    map[string]ax.Report // ended, not acknowledged
	away    bool                 // no axd is there
	retold  map[string]int       // times that an end was told to a next axd
	left    []string             // batch numbers that an axd asked about at its start
	most    map[string]int       // most attempts at work at once, by task
	now     map[string]int

	dead     bool            // axd dies while it hands over: nothing comes here any more
	unsent   map[string]bool // what was handed over, and certainly not begun
	wordless bool            // some executor is gone without a word: nothing is certain

	epoch    int // counts the axd
	socket   []word
	gullible bool            // reads what an axd said that another one has followed
	lost     map[string]bool // batch numbers that were given up
	revived  []string        // of them, those that were begun after that
}

// attempt is one that a fake executor has begun.
type attempt struct {
	job    ax.Job
	play   play
	status ax.Status
	class  ax.ErrorClass
	timer  *time.Timer
	rest   time.Duration // of its work
	since  time.Time     // it works
	paused int64         // since; 0 it is not
}

// word is what an axd has said and the executors have not read.
type word struct {
	epoch int
	jobs  []ax.Job // in it
	do    func()
}

func newExecutors() *executors {
	return &executors{
		play:    func(ax.Job) play { return play{work: 100 * time.Millisecond} },
		lag:     func(ax.Job) time.Duration { return 0 },
		offers:  func(string) bool { return true },
		accepts: func(json.RawMessage) bool { return true },
		reports: make(chan []ax.Report, 1<<16),
		sent:    map[string]int{}, at: map[string]int64{}, live: map[string]*attempt{},
		ends: map[string]ax.Status{}, acked: map[string]int{}, told: map[string]ax.Progress{}, lost: map[string]bool{},
		most: map[string]int{}, now: map[string]int{}, done: map[string]ax.Report{}, retold: map[string]int{}, gone: map[string]func(){},
		unsent: map[string]bool{},
	}
}

// next returns executors that know nothing of what ran, when these were killed.
// What is counted goes on.
func (x *executors) next() *executors {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.socket = nil
	for _, a := range x.live {
		if a.timer != nil {
			a.timer.Stop()
		}
	}
	n := newExecutors()
	n.play, n.lag, n.offers, n.sent, n.at, n.jobs = x.play, x.lag, x.offers, x.sent, x.at, x.jobs
	n.most, n.epoch, n.gullible, n.lost, n.revived, n.told, n.unsent = x.most, x.epoch, x.gullible, x.lost, x.revived, x.told, x.unsent
	return n
}

func (x *executors) Fit(h ax.HandlerSpec) ax.Fit {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case !x.offers(h.Name):
		return ax.FitNone
	case !x.accepts(h.Body):
		return ax.FitOther
	default:
		return ax.FitWell
	}
}

// Recover tells all that is known of the jobs, and that the others are lost.
func (x *executors) Recover(jobs []ax.Job) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, w := range x.socket { // it is not read any more
		for _, j := range w.jobs {
			x.unsent[j.BatchNo] = true
		}
	}
	if x.wordless {
		clear(x.unsent)
	}
	x.away, x.dead, x.wordless = false, false, false
	x.epoch++
	asked := map[string]bool{}
	for _, j := range jobs {
		x.left = append(x.left, j.BatchNo)
		asked[j.BatchNo] = true
		a := x.live[j.BatchNo]
		_, done := x.done[j.BatchNo]
		switch {
		case x.unsent[j.BatchNo]:
			x.tell(ax.Report{BatchNo: j.BatchNo, Kind: ax.ReportUnbegun})
		case a != nil && !a.play.quiet:
			x.tell(ax.Report{BatchNo: j.BatchNo, Kind: ax.ReportStarted, StartedMs: x.at[j.BatchNo]})
			if a.paused != 0 {
				x.tell(ax.Report{BatchNo: j.BatchNo, Kind: ax.ReportSignal, Signal: ax.SignalPause, AtMs: a.paused})
			}
		case a == nil && !done:
			x.lost[j.BatchNo] = true
			x.tell(ax.Report{BatchNo: j.BatchNo, Kind: ax.ReportLost, StoppedMs: time.Now().UnixMilli(), Error: "axd ended while it ran, and no executor that it left has a word of it"})
		}
	}
	for _, b := range slices.Sorted(maps.Keys(x.done)) { // an acknowledgement may have been lost
		x.ends[b] = x.done[b].Status
		x.retold[b]++
		x.tell(x.done[b])
	}
	for _, b := range slices.Sorted(maps.Keys(x.live)) {
		if !asked[b] {
			x.end(x.live[b], ax.StatusCancelled, ax.ClassCancelled)
		}
	}
}

// leave is the end of an axd: what was on its way to it is told to the next one.
func (x *executors) leave() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.away = true
	x.reports = make(chan []ax.Report, cap(x.reports))
}

// cutOff lets nothing come from axd any more, as when it dies while it sends.
func (x *executors) cutOff() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.dead = true
}

// abandon is the end of the grace time: what runs is stopped, and what nobody
// was told is left for the next axd.
func (x *executors) abandon() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.socket = nil
	for _, b := range slices.Sorted(maps.Keys(x.live)) {
		x.lose(b)
	}
	for _, b := range slices.Sorted(maps.Keys(x.gone)) {
		x.gone[b]()
	}
}

// say puts what the axd that is there says into the socket. Messages are read in
// their order: one that is read late lets those behind it wait. Called with the
// lock.
func (x *executors) say(lag time.Duration, jobs []ax.Job, do func()) {
	x.socket = append(x.socket, word{x.epoch, jobs, do})
	switch {
	case len(x.socket) > 1:
	case lag == 0:
		x.read()
	default:
		time.AfterFunc(lag, func() {
			x.mu.Lock()
			defer x.mu.Unlock()
			x.read()
		})
	}
}

// unread reports whether something lies in the socket.
func (x *executors) unread() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.socket) > 0
}

// read does what is in the socket. What an axd said that another one has followed
// is void: that one has judged by what had been begun. Called with the lock.
func (x *executors) read() {
	words := x.socket
	x.socket = nil
	for _, w := range words {
		if w.epoch == x.epoch || x.gullible {
			w.do()
		}
	}
}

func (x *executors) Dispatch(jobs []ax.Job) {
	x.mu.Lock()
	defer x.mu.Unlock()
	lag := time.Duration(0)
	for _, j := range jobs {
		if x.dead {
			x.unsent[j.BatchNo] = true
		}
		lag = max(lag, x.lag(j))
	}
	if x.dead {
		return
	}
	jobs = slices.Clone(jobs)
	x.say(lag, jobs, func() {
		for _, j := range jobs {
			x.begin(j)
		}
	})
}

// begin begins a job, or tells again of one that is known. Called with the lock.
func (x *executors) begin(j ax.Job) {
	b := j.BatchNo
	delete(x.unsent, b)
	if x.live[b] != nil {
		x.tell(ax.Report{BatchNo: b, Kind: ax.ReportStarted, StartedMs: x.at[b]})
		return
	}
	if r, ok := x.done[b]; ok {
		x.tell(r)
		return
	}
	x.sent[b]++
	if x.lost[b] {
		x.revived = append(x.revived, b)
	}
	x.jobs = append(x.jobs, j)
	x.at[b] = time.Now().UnixMilli()
	p := x.play(j)
	if p.refuse {
		x.tell(ax.Report{BatchNo: b, Kind: ax.ReportRefused, Error: "no such handler"})
		return
	}
	a := &attempt{job: j, play: p, status: ax.StatusSuccess, class: p.class, rest: p.work}
	x.live[b] = a
	x.now[j.Task]++
	x.most[j.Task] = max(x.most[j.Task], x.now[j.Task])
	if p.quiet {
		return
	}
	x.tell(ax.Report{BatchNo: b, Kind: ax.ReportStarted, StartedMs: x.at[b]})
	if a.class != "" {
		a.status = ax.StatusFailed
	}
	if j.Timeout > 0 && a.rest > j.Timeout.Std() && !p.deaf {
		a.rest, a.status, a.class = j.Timeout.Std(), ax.StatusTimeout, ax.ClassTimeout
	}
	x.work(a)
	if p.tells > 0 {
		time.AfterFunc(p.tells, func() {
			x.mu.Lock()
			defer x.mu.Unlock()
			if x.live[b] == a && a.paused == 0 {
				said := ax.Progress{AtMs: time.Now().UnixMilli(), Percent: 50, Text: "half of " + b}
				x.told[b] = said
				x.tell(ax.Report{BatchNo: b, Kind: ax.ReportProgress, Progress: &said})
			}
		})
	}
}

// work lets an attempt do the rest of its work. Called with the lock.
func (x *executors) work(a *attempt) {
	a.since = time.Now()
	a.timer = time.AfterFunc(a.rest, func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		switch {
		case x.live[a.job.BatchNo] != a || a.paused != 0:
		case a.play.lost:
			x.lose(a.job.BatchNo)
		default:
			x.end(a, a.status, a.class)
		}
	})
}

// end ends an attempt that is live. Called with the lock.
func (x *executors) end(a *attempt, status ax.Status, class ax.ErrorClass) {
	j, p := a.job, a.play
	delete(x.live, j.BatchNo)
	if a.timer != nil {
		a.timer.Stop()
	}
	now := time.Now().UnixMilli()
	r := ax.Report{BatchNo: j.BatchNo, Kind: ax.ReportEnded, Status: status, ErrorClass: class, EndedMs: now}
	if class != "" {
		r.Error = "it was " + string(class)
	}
	if !x.away {
		x.ends[j.BatchNo] = status
	}
	if p.again > 0 {
		time.AfterFunc(p.again, func() {
			x.mu.Lock()
			defer x.mu.Unlock()
			x.tell(r)
		})
	}
	if p.stops == 0 {
		x.now[j.Task]--
		r.StoppedMs = now
		x.done[j.BatchNo] = r
		x.tell(r)
		return
	}
	x.done[j.BatchNo] = r
	x.tell(r)
	x.gone[j.BatchNo] = func() {
		delete(x.gone, j.BatchNo)
		x.now[j.Task]--
		if r, ok := x.done[j.BatchNo]; ok {
			r.StoppedMs = time.Now().UnixMilli()
			x.done[j.BatchNo] = r
		}
		x.tell(ax.Report{BatchNo: j.BatchNo, Kind: ax.ReportStopped, StoppedMs: time.Now().UnixMilli()})
	}
	time.AfterFunc(p.stops, func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		if gone := x.gone[j.BatchNo]; gone != nil {
			gone()
		}
	})
}

// tell reports to the axd that is there. Called with the lock.
func (x *executors) tell(r ax.Report) {
	if !x.away {
		x.reports <- []ax.Report{r}
	}
}

func (x *executors) Signal(orders []ax.SignalOrder) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.say(0, nil, func() {
		for _, o := range orders {
			x.signal(o)
		}
	})
}

// signal lets an attempt stand still, or go on. Called with the lock.
func (x *executors) signal(o ax.SignalOrder) {
	a := x.live[o.BatchNo]
	if a == nil || a.play.quiet {
		return
	}
	now := time.Now()
	r := ax.Report{BatchNo: o.BatchNo, Kind: ax.ReportSignal, Signal: o.Signal, AtMs: now.UnixMilli()}
	switch pause := o.Signal == ax.SignalPause; {
	case a.play.deaf:
		r.Error = "it takes no signals"
	case pause && a.paused == 0:
		a.timer.Stop()
		a.rest, a.paused = max(a.rest-now.Sub(a.since), 0), r.AtMs
	case pause:
		r.AtMs = a.paused
	case a.paused != 0:
		a.paused = 0
		x.work(a)
	}
	x.tell(r)
}

func (x *executors) Cancel(orders []ax.CancelOrder) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.say(0, nil, func() {
		for _, o := range orders {
			x.cancels = append(x.cancels, o)
			a := x.live[o.BatchNo]
			if a == nil || a.play.deaf {
				continue
			}
			status := ax.StatusCancelled
			if o.Class == ax.ClassTimeout {
				status = ax.StatusTimeout
			}
			x.end(a, status, o.Class)
		}
	})
}

func (x *executors) Acknowledge(batchNos []string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.say(0, nil, func() {
		for _, b := range batchNos {
			x.acked[b]++
			delete(x.done, b)
		}
	})
}

func (x *executors) Reports() <-chan []ax.Report {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.reports
}

// die ends all that runs, as when the executors' processes are gone.
func (x *executors) die() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, b := range slices.Sorted(maps.Keys(x.live)) {
		x.lose(b)
	}
	words := x.socket
	x.socket = nil
	for _, w := range words {
		if w.epoch != x.epoch {
			continue
		}
		if len(w.jobs) == 0 {
			w.do() // an acknowledgement counts: axd has said it
		}
		for _, j := range w.jobs {
			x.giveUp(j.BatchNo)
		}
	}
}

// lose ends an attempt that is live without a result. Called with the lock.
func (x *executors) lose(b string) {
	a := x.live[b]
	if a == nil {
		return
	}
	delete(x.live, b)
	if a.timer != nil {
		a.timer.Stop()
	}
	x.now[a.job.Task]--
	x.giveUp(b)
}

// giveUp says that a batch is lost. Called with the lock.
func (x *executors) giveUp(b string) {
	x.lost[b] = true
	r := ax.Report{BatchNo: b, Kind: ax.ReportLost, StoppedMs: time.Now().UnixMilli(), Error: "the executor is gone"}
	x.done[b] = r
	x.tell(r)
}
