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
}

// executors is a fake of the executors on a host: it runs jobs by timers. It
// outlives an axd: what ends while none is there, or is not acknowledged, is told
// to the next one.
type executors struct {
	mu      sync.Mutex
	play    func(ax.Job) play
	offers  func(handler string) bool
	accepts func(body json.RawMessage) bool
	reports chan []ax.Report
	sent    map[string]int       // times each batch number was given
	jobs    []ax.Job             // in the order given
	at      map[string]int64     // when
	live    map[string]ax.Job    // begun, not ended
	ends    map[string]ax.Status // first reported, by batch number
	timers  map[string]*time.Timer
	acked   map[string]int
	cancels []ax.CancelOrder
	gone    map[string]func()    // by batch number: its processes are gone now
	done    map[string]ax.Report // ended, not acknowledged
	away    bool                 // no axd is there
	retold  map[string]int       // times that an end was told to a next axd
	left    []string             // batch numbers that an axd asked about at its start
	dead    bool                 // axd dies while it hands over: nothing comes here any more
	unsent  map[string]bool      // what did not come here
	most    map[string]int       // most attempts at work at once, by task
	now     map[string]int
}

func newExecutors() *executors {
	return &executors{
		play:    func(ax.Job) play { return play{work: 100 * time.Millisecond} },
		offers:  func(string) bool { return true },
		accepts: func(json.RawMessage) bool { return true },
		reports: make(chan []ax.Report, 1<<16),
		sent:    map[string]int{}, at: map[string]int64{}, live: map[string]ax.Job{},
		ends: map[string]ax.Status{}, timers: map[string]*time.Timer{}, acked: map[string]int{},
		most: map[string]int{}, now: map[string]int{}, done: map[string]ax.Report{}, retold: map[string]int{}, gone: map[string]func(){},
		unsent: map[string]bool{},
	}
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
	x.away, x.dead = false, false
	asked := map[string]bool{}
	for _, j := range jobs {
		x.left = append(x.left, j.BatchNo)
		asked[j.BatchNo] = true
		_, live := x.live[j.BatchNo]
		_, done := x.done[j.BatchNo]
		switch {
		case x.unsent[j.BatchNo]:
			delete(x.unsent, j.BatchNo)
			x.tell(ax.Report{BatchNo: j.BatchNo, Kind: ax.ReportUnbegun})
		case live && !x.play(x.live[j.BatchNo]).quiet:
			x.tell(ax.Report{BatchNo: j.BatchNo, Kind: ax.ReportStarted, StartedMs: x.at[j.BatchNo]})
		case !live && !done:
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
			x.end(x.live[b], ax.StatusCancelled, ax.ClassCancelled, x.play(x.live[b]))
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
	for _, b := range slices.Sorted(maps.Keys(x.live)) {
		x.lose(b)
	}
	for _, b := range slices.Sorted(maps.Keys(x.gone)) {
		x.gone[b]()
	}
}

func (x *executors) Dispatch(jobs []ax.Job) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, j := range jobs {
		if x.dead {
			x.unsent[j.BatchNo] = true
			continue
		}
		x.sent[j.BatchNo]++
		x.jobs = append(x.jobs, j)
		x.at[j.BatchNo] = time.Now().UnixMilli()
		p := x.play(j)
		if p.refuse {
			x.tell(ax.Report{BatchNo: j.BatchNo, Kind: ax.ReportRefused, Error: "no such handler"})
			continue
		}
		x.live[j.BatchNo] = j
		x.now[j.Task]++
		x.most[j.Task] = max(x.most[j.Task], x.now[j.Task])
		if p.quiet {
			continue
		}
		x.tell(ax.Report{BatchNo: j.BatchNo, Kind: ax.ReportStarted, StartedMs: time.Now().UnixMilli()})
		work, status, class := p.work, ax.StatusSuccess, p.class
		if class != "" {
			status = ax.StatusFailed
		}
		if j.Timeout > 0 && work > j.Timeout.Std() && !p.deaf {
			work, status, class = j.Timeout.Std(), ax.StatusTimeout, ax.ClassTimeout
		}
		x.timers[j.BatchNo] = time.AfterFunc(work, func() {
			x.mu.Lock()
			defer x.mu.Unlock()
			if p.lost {
				x.lose(j.BatchNo)
				return
			}
			x.end(j, status, class, p)
		})
	}
}

// end ends an attempt that is live. Called with the lock.
func (x *executors) end(j ax.Job, status ax.Status, class ax.ErrorClass, p play) {
	if _, ok := x.live[j.BatchNo]; !ok {
		return
	}
	delete(x.live, j.BatchNo)
	if t := x.timers[j.BatchNo]; t != nil {
		t.Stop()
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

func (x *executors) Signal([]ax.SignalOrder) {}

func (x *executors) Cancel(orders []ax.CancelOrder) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, o := range orders {
		x.cancels = append(x.cancels, o)
		j, ok := x.live[o.BatchNo]
		if !ok || x.play(j).deaf {
			continue
		}
		status := ax.StatusCancelled
		if o.Class == ax.ClassTimeout {
			status = ax.StatusTimeout
		}
		x.end(j, status, o.Class, x.play(j))
	}
}

func (x *executors) Acknowledge(batchNos []string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, b := range batchNos {
		x.acked[b]++
		delete(x.done, b)
	}
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
}

// lose ends an attempt that is live without a result. Called with the lock.
func (x *executors) lose(b string) {
	j, ok := x.live[b]
	if !ok {
		return
	}
	delete(x.live, b)
	if t := x.timers[b]; t != nil {
		t.Stop()
	}
	x.now[j.Task]--
	r := ax.Report{BatchNo: b, Kind: ax.ReportLost, StoppedMs: time.Now().UnixMilli(), Error: "the executor is gone"}
	x.done[b] = r
	x.tell(r)
}
