package runtime_test

import (
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

// executors is a fake of the executors on a host: it runs jobs by timers.
type executors struct {
	mu      sync.Mutex
	play    func(ax.Job) play
	offers  func(handler string) bool
	reports chan []ax.Report
	sent    map[string]int       // times each batch number was given
	jobs    []ax.Job             // in the order given
	at      map[string]int64     // when
	live    map[string]ax.Job    // begun, not ended
	ends    map[string]ax.Status // first reported, by batch number
	timers  map[string]*time.Timer
	acked   map[string]int
	cancels []ax.CancelOrder
	cleared []string       // batch numbers of an earlier boot
	most    map[string]int // most attempts at work at once, by task
	now     map[string]int
}

func newExecutors() *executors {
	return &executors{
		play:    func(ax.Job) play { return play{work: 100 * time.Millisecond} },
		offers:  func(string) bool { return true },
		reports: make(chan []ax.Report, 1<<16),
		sent:    map[string]int{}, at: map[string]int64{}, live: map[string]ax.Job{},
		ends: map[string]ax.Status{}, timers: map[string]*time.Timer{}, acked: map[string]int{},
		most: map[string]int{}, now: map[string]int{},
	}
}

func (x *executors) Offers(handler string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.offers(handler)
}

func (x *executors) ClearLeft(batchNos []string) int {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.cleared = append(x.cleared, batchNos...)
	return 0
}

func (x *executors) Dispatch(jobs []ax.Job) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, j := range jobs {
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
	x.ends[j.BatchNo] = status
	if p.again > 0 {
		time.AfterFunc(p.again, func() { x.tell(r) })
	}
	if p.stops == 0 {
		x.now[j.Task]--
		r.StoppedMs = now
		x.tell(r)
		return
	}
	x.tell(r)
	time.AfterFunc(p.stops, func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.now[j.Task]--
		x.tell(ax.Report{BatchNo: j.BatchNo, Kind: ax.ReportStopped, StoppedMs: time.Now().UnixMilli()})
	})
}

func (x *executors) tell(r ax.Report) { x.reports <- []ax.Report{r} }

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
	}
}

func (x *executors) Reports() <-chan []ax.Report { return x.reports }

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
	x.tell(ax.Report{BatchNo: b, Kind: ax.ReportLost, StoppedMs: time.Now().UnixMilli(), Error: "the executor is gone"})
}
