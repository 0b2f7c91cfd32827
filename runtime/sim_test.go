package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/axctl/ax"
	"github.com/axctl/ax/planner"
	"github.com/axctl/ax/runtime/rules"
	"github.com/axctl/ax/schedule"
	"github.com/axctl/ax/store/storetest"
)

// How many histories TestSimulation tries where AX_SIM_SEEDS does not say it, and
// within how many a planted bug must be found.
const (
	fewSeeds  = 30
	mostSeeds = 1000
)

// One host through a random history: what a seed decides is what tasks there
// are, what their attempts do, which calls of the store fail, are late or lose
// their answer, when axd is killed, and what people do meanwhile. Whatever it
// was, nothing is lost, nothing happens twice and nothing hangs.
func TestSimulation(t *testing.T) {
	first, n := uint64(1), uint64(fewSeeds)
	if s := os.Getenv("AX_SIM_SEEDS"); s != "" {
		n = number(t, s)
	}
	one := os.Getenv("AX_SIM_SEED")
	if one != "" {
		first, n = number(t, one), 1
	}
	for seed := first; seed < first+n; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			s := explore(t, seed, bug{})
			for _, f := range s.found {
				t.Error(f)
			}
			if t.Failed() {
				t.Logf("to repeat it with its log: make sim SEED=%d", seed)
			}
			if one != "" {
				t.Log(s.log.String())
			}
		})
	}
}

func number(t *testing.T, s string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		t.Fatalf("a number of seeds, or a seed: %v", err)
	}
	return n
}

// sim is a world whose history a seed decides.
type sim struct {
	*world
	seed  uint64
	bug   bug
	dice  *rand.Rand
	store storetest.Store // as axd and axctl see it
	found []string

	specs   map[string]*ax.TaskSpec // what the configuration declares
	applies int
	ends    map[string]ax.Status // what executors that are gone reported
	rates   [3]float64           // of Fail, LoseAnswer and Delay
}

// explore runs the history of a seed in a bubble of its own.
func explore(t *testing.T, seed uint64, b bug) *sim {
	t.Helper()
	s := &sim{
		seed: seed, bug: b, dice: rand.New(rand.NewPCG(seed, 0)),
		specs: map[string]*ax.TaskSpec{}, ends: map[string]ax.Status{},
	}
	synctest.Test(t, func(t *testing.T) {
		s.world = newWorld(finder{t, s}, t.TempDir())
		defer func() {
			if s.engine != nil {
				s.kill()
			}
		}()
		defer func() {
			if r := recover(); r != nil && r != any(gaveUp{}) {
				panic(r)
			}
		}()
		s.connect()
		s.live()
		s.settle()
		s.verify()
	})
	return s
}

// finder keeps what is found, since to find something is what a planted bug is
// for.
type finder struct {
	testing.TB
	s *sim
}

type gaveUp struct{}

func (f finder) Helper() {}

func (f finder) Error(args ...any) { f.s.found = append(f.s.found, fmt.Sprint(args...)) }

func (f finder) Errorf(format string, args ...any) {
	f.s.found = append(f.s.found, fmt.Sprintf(format, args...))
}

func (f finder) Fatal(args ...any) {
	f.Error(args...)
	panic(gaveUp{})
}

func (f finder) Fatalf(format string, args ...any) {
	f.Errorf(format, args...)
	panic(gaveUp{})
}

// connect puts faults, and the bug if there is one, between the store and those
// who use it. Each method throws dice of its own, so that what one goroutine
// does in an instant does not change the luck of another.
func (s *sim) connect() {
	dice := map[string]*rand.Rand{}
	late := time.Duration(1+s.dice.IntN(3000)) * time.Millisecond
	s.store = &storetest.Faulty{
		Store: s.world.store,
		Plan: func(_ int, method string) storetest.Fault {
			d := dice[method]
			if d == nil {
				h := fnv.New64a()
				h.Write([]byte(method))
				d = rand.New(rand.NewPCG(s.seed, h.Sum64()))
				dice[method] = d
			}
			luck := d.Float64()
			s.mu.Lock()
			defer s.mu.Unlock()
			for i, f := range []storetest.Fault{storetest.Fail, storetest.LoseAnswer, storetest.Delay} {
				if luck < s.rates[i] {
					return f
				}
				luck -= s.rates[i]
			}
			return storetest.NoFault
		},
		Wait: func(ctx context.Context) {
			select {
			case <-time.After(late):
			case <-ctx.Done():
			}
		},
	}
	if s.bug.store != nil {
		s.store = s.bug.store(s.store)
	}
	s.cfg.Claims, s.cfg.Fills, s.cfg.Dispatches, s.cfg.Cancels, s.cfg.Watcher, s.audit = s.store, s.store, s.store, s.store, s.store, s.store
	s.cfg.Pools = map[string]int{"work": 1 + s.dice.IntN(8)}
	s.cfg.Poll = time.Second // as good as the default, and quicker
	s.exec.play, s.exec.lag, s.exec.gullible = s.play, s.lag, s.bug.gullible
}

func (s *sim) weather(fail, lose, late float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rates = [3]float64{fail, lose, late}
}

// play decides what an attempt does, from nothing but what it is.
func (s *sim) play(j ax.Job) play {
	r := rand.New(rand.NewPCG(s.seed, uint64(j.InstanceID)<<16|uint64(j.Attempt)))
	seconds := func(most int) time.Duration { return time.Duration(1+r.IntN(most*1000)) * time.Millisecond }
	p := play{work: seconds(30)}
	chance := func(c float64) bool { return r.Float64() < c }
	if chance(0.3) {
		p.class = append(slices.Clone(ax.RetryClasses), ax.ClassPermanent)[r.IntN(4)]
	}
	if chance(0.2) {
		p.stops = seconds(20)
	}
	if chance(0.1) {
		p.deaf, p.work = true, seconds(120)
	}
	if chance(0.05) {
		p.again = seconds(60)
	}
	p.refuse, p.lost = chance(0.03), chance(0.03)
	if chance(0.3) {
		p.tells = 1 + p.work/2
	}
	return p
}

// lag decides how long the message with an attempt is not read.
func (s *sim) lag(j ax.Job) time.Duration {
	r := rand.New(rand.NewPCG(s.seed, uint64(j.InstanceID)<<16|uint64(j.Attempt)|1<<63))
	if r.IntN(5) > 0 {
		return 0
	}
	return time.Duration(1+r.IntN(5000)) * time.Millisecond
}

// live lets some minutes go by in which all sorts of things happen.
func (s *sim) live() {
	for range 1 + s.dice.IntN(4) {
		s.declare()
	}
	s.apply()
	s.boot()
	for range 4 + s.dice.IntN(8) {
		switch s.dice.IntN(6) {
		case 0:
			s.weather(0, 0, 0)
		case 1:
			s.weather(1, 0, 0) // it is away
		default:
			s.weather(s.dice.Float64()*0.2, s.dice.Float64()*0.2, s.dice.Float64()*0.2)
		}
		s.pass(time.Duration(s.dice.IntN(45_000)) * time.Millisecond)
		if s.dice.IntN(2) == 0 {
			s.signal()
			s.pass(time.Duration(s.dice.IntN(10_000)) * time.Millisecond)
		}
		s.happen()
	}
}

// happen lets one thing happen.
func (s *sim) happen() {
	switch s.dice.IntN(15) {
	case 0, 1, 2:
		switch s.dice.IntN(3) {
		case 0: // what it hands over in its last moments is sent nowhere
			s.exec.cutOff()
			s.pass(time.Duration(s.dice.IntN(5_000)) * time.Millisecond)
		case 1: // or not read yet
			for range 40 {
				if s.exec.unread() {
					break
				}
				s.pass(250 * time.Millisecond)
			}
		}
		end := []func(){s.kill, s.crash, s.crash, s.abandon}[s.dice.IntN(4)]
		end()
		s.exec.wordless = s.dice.IntN(3) == 0
		s.pass(time.Duration(s.dice.IntN([]int{1000, 100_000}[s.dice.IntN(2)])) * time.Millisecond)
		s.boot()
	case 3:
		s.exec.die()
	case 4:
		s.declare()
		s.apply()
	case 5:
		if names := slices.Sorted(maps.Keys(s.specs)); len(names) > 0 {
			delete(s.specs, names[s.dice.IntN(len(names))])
			s.apply()
		}
	case 6:
		s.withTask(func(o ax.Object) error {
			now := time.Now().UnixMilli()
			h := ax.Hold{Kind: ax.HoldPaused, Who: "ann", SinceMs: now}
			if s.dice.IntN(2) == 0 {
				h.UntilMs = now + int64(1+s.dice.IntN(60_000))
			}
			return s.store.Hold(context.Background(), o.ID, h)
		})
	case 7:
		s.withTask(s.resume)
	case 8:
		s.withTask(func(o ax.Object) error {
			now := time.Now().UnixMilli()
			_, err := s.store.Trigger(context.Background(), ax.Trigger{
				ObjectID: o.ID, UID: fmt.Sprint(now, "-", s.dice.Uint32()), DueMs: now, NowMs: now, Who: "ann",
			})
			return err
		})
	case 9:
		s.withTask(func(o ax.Object) error {
			for _, in := range s.rows(o.Name) {
				if !in.Status.Final() && s.dice.IntN(2) == 0 {
					_, err := s.store.Cancel(context.Background(), in.ID, "ann", time.Now().UnixMilli())
					return err
				}
			}
			return nil
		})
	case 10:
		s.withEnded(func(in ax.Instance) error {
			_, err := s.store.Retry(context.Background(), ax.Retry{
				InstanceID: in.ID, WithCurrent: s.dice.IntN(2) == 0, NowMs: time.Now().UnixMilli(), Who: "ann",
			})
			return err
		})
	case 11:
		s.withEnded(func(in ax.Instance) error {
			return s.store.Mark(context.Background(), ax.Mark{
				InstanceID: in.ID, Verdict: ax.VerdictSuccess, Reason: "seen to", NowMs: time.Now().UnixMilli(), Who: "ann",
			})
		})
	case 12:
		s.prune()
	case 13:
		s.withTask(func(o ax.Object) error {
			now := time.Now().UnixMilli()
			_, err := s.store.StartBackfill(context.Background(), ax.BackfillRequest{
				TaskID: o.ID, Version: o.Version, FromMs: now - int64(60_000*(1+s.dice.IntN(3))), ToMs: now - int64(s.dice.IntN(60_000)),
				Mode: ax.BackfillModes[s.dice.IntN(3)], Parallel: 1 + s.dice.IntN(4), Slots: -1, Who: "ann", AtMs: now,
			})
			return err
		})
	case 14:
		s.withTask(func(o ax.Object) error {
			to := []ax.BackfillState{ax.BackfillPaused, ax.BackfillRunning, ax.BackfillCancelled}[s.dice.IntN(3)]
			_, err := s.store.MoveBackfill(context.Background(), ax.BackfillMove{ID: int64(1 + s.dice.IntN(3)), To: to, Who: "ann", NowMs: time.Now().UnixMilli()})
			if errors.Is(err, ax.ErrNotFound) {
				return nil
			}
			return err
		})
	}
}

// signal asks some of what runs to stand still, or to go on.
func (s *sim) signal() {
	for _, o := range s.objects() {
		for _, in := range s.rows(o.Name) {
			if in.Status != ax.StatusDispatched || s.dice.IntN(3) == 0 {
				continue
			}
			r := ax.SignalRequest{InstanceID: in.ID, Signal: ax.SignalPause, NowMs: time.Now().UnixMilli(), Who: "ann"}
			if s.dice.IntN(3) == 0 {
				r.Signal = ax.SignalResume
			}
			s.done(s.store.Signal(context.Background(), r))
		}
	}
}

// withEnded does what a person does to an instance that has ended.
func (s *sim) withEnded(do func(ax.Instance) error) {
	s.withTask(func(o ax.Object) error {
		for _, in := range s.rows(o.Name) {
			if in.Status.Final() && s.dice.IntN(3) == 0 {
				return do(in)
			}
		}
		return nil
	})
}

// prune deletes history that is older than some seconds; what was deleted is
// not asked for in the end.
func (s *sim) prune() {
	err := s.store.Prune(context.Background(), ax.PruneQuery{
		EndedByMs: time.Now().UnixMilli() - int64(s.dice.IntN(120_000)), KeepLast: 1 + s.dice.IntN(5),
	}, func(ax.Pruned) error { return nil })
	if err != nil && !errors.Is(err, ax.ErrUnavailable) {
		s.t.Fatal(err)
	}
}

// pruned reports whether history of an instance was deleted.
func (s *sim) pruned(id int64) bool {
	_, err := s.world.store.Instance(context.Background(), id)
	return errors.Is(err, ax.ErrNotFound)
}

// kill ends axd, and remembers what was reported to it.
func (s *sim) kill() {
	maps.Copy(s.ends, s.exec.ends)
	s.world.kill()
	s.forget()
}

// crash ends axd; its executors go on, and tell the next one.
func (s *sim) crash() {
	s.world.crash()
	s.forget()
}

// abandon ends axd, and some time later its executors, which leave their last
// words.
func (s *sim) abandon() {
	s.crash()
	s.pass(time.Duration(s.dice.IntN(20_000)) * time.Millisecond)
	s.exec.abandon()
}

func (s *sim) forget() {
	if s.bug.forget {
		if err := os.Remove(s.cfg.JournalPath); err != nil {
			s.t.Fatal(err)
		}
	}
}

// withTask does what a person does to some task.
func (s *sim) withTask(do func(ax.Object) error) {
	os := slices.DeleteFunc(s.objects(), func(o ax.Object) bool { return o.Deleted })
	if len(os) == 0 {
		return
	}
	s.done(do(os[s.dice.IntN(len(os))]))
}

// done takes the answer to what a person did. That may be refused, as by a store
// that is away; then the person gives up.
func (s *sim) done(err error) {
	for _, refusal := range []error{ax.ErrUnavailable, ax.ErrMoved, ax.ErrConflict, ax.ErrStale} {
		if errors.Is(err, refusal) {
			return
		}
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *sim) resume(o ax.Object) error {
	var spec ax.TaskSpec
	if err := json.Unmarshal(o.Definition, &spec); err != nil {
		return err
	}
	tt, err := schedule.Compile(spec.Schedules)
	if err != nil {
		return err
	}
	now := time.Now().UnixMilli()
	return s.store.Resume(context.Background(), o.ID,
		rules.Resume(tt, spec.Misfire, o.Version, o.ID, o.Row, tt.Fingerprint(), ax.ReasonHeld, now), now)
}

// declare adds a task to the configuration, or changes one. What the invariants
// at the end ask for, its concurrency and whether it may run twice, is its
// name's for ever.
func (s *sim) declare() {
	i, d := s.dice.IntN(4), s.dice
	s.specs[fmt.Sprintf("t%d", i)] = taskSpec(func(t *ax.TaskSpec) {
		t.Concurrency, t.Idempotent = concurrency(s.seed, i), idempotent(s.seed, i)
		t.Overlap = ax.Overlaps[d.IntN(len(ax.Overlaps))]
		t.Schedules[0].Every = ax.Duration(1000 * (3 + d.IntN(30)))
		t.Enabled = d.IntN(6) > 0
		t.Timeout = ax.Duration(1000 * (5 + d.IntN(60)))
		t.KillAfter = ax.Duration(1000 * d.IntN(5))
		t.Retry.Max, t.Retry.Initial, t.Retry.Jitter = d.IntN(4), ax.Duration(1000*(1+d.IntN(15))), d.Float64()
		t.Misfire = ax.MisfireSpec{
			Policy: ax.MisfirePolicies[d.IntN(3)], OnResume: ax.MisfirePolicies[d.IntN(3)],
			Grace: ax.Duration(1000 * (1 + d.IntN(60))), Max: 1 + d.IntN(10),
		}
	})
}

func concurrency(seed uint64, i int) int { return 1 + int(seed+uint64(i))%3 }

func idempotent(seed uint64, i int) bool { return (seed/3+uint64(i))%4 != 0 }

// apply brings the configuration to the store, as axctl does; a person gives up
// after some tries.
func (s *sim) apply() {
	s.applies++
	c := ax.Configuration{Stack: "s"}
	for _, name := range slices.Sorted(maps.Keys(s.specs)) {
		c.Definitions = append(c.Definitions, ax.Definition{Kind: ax.KindTask, Name: name, Task: s.specs[name]})
	}
	for try := range 10 {
		err := s.tryApply(c, fmt.Sprint(s.applies, "-", try))
		switch {
		case err == nil:
			return
		case !errors.Is(err, ax.ErrUnavailable) && !errors.Is(err, ax.ErrMoved) && !errors.Is(err, ax.ErrStale):
			s.t.Fatal(err)
		}
		s.pass(500 * time.Millisecond)
	}
}

func (s *sim) tryApply(c ax.Configuration, id string) error {
	ctx := context.Background()
	stored, err := s.store.ReadStack(ctx, c.Stack)
	if err != nil {
		return err
	}
	now := time.Now().UnixMilli()
	plan, err := planner.Diff(c, stored, planner.Options{}, now)
	if err != nil || plan.Empty() {
		return err
	}
	cs, err := plan.ChangeSet(stored, id, ax.Revision{Who: "ann"}, now)
	if err != nil {
		return err
	}
	_, err = s.store.Apply(ctx, cs)
	return err
}

// settle brings peace: no faults, no holds, no schedules, until nothing is open.
func (s *sim) settle() {
	s.weather(0, 0, 0)
	s.pass(10 * time.Second)
	for _, o := range s.objects() {
		if o.Row.Hold == nil || o.Deleted {
			continue
		}
		if err := s.resume(o); err != nil && !errors.Is(err, ax.ErrMoved) && !errors.Is(err, ax.ErrConflict) {
			s.t.Fatal(err)
		}
	}
	for _, b := range s.backfills(ax.BackfillPaused) {
		s.moveBackfill(b.ID, ax.BackfillRunning)
	}
	s.pass(3 * time.Minute) // what was missed is caught up
	for _, spec := range s.specs {
		spec.Schedules = nil
	}
	s.apply()
	for range 8 * 60 {
		s.goOn()
		if s.pass(time.Minute); s.idle() {
			break
		}
	}
}

// goOn lets attempts that stand still go on, as far as anybody asked for that.
func (s *sim) goOn() {
	ctx := context.Background()
	states, err := s.world.store.SignalStates(ctx, s.cfg.Host)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, st := range states {
		err := s.world.store.Signal(ctx, ax.SignalRequest{InstanceID: st.InstanceID, Signal: ax.SignalResume, NowMs: time.Now().UnixMilli(), Who: "ann"})
		if err != nil && !errors.Is(err, ax.ErrConflict) {
			s.t.Fatal(err)
		}
	}
}

// backfills returns those in a state.
func (s *sim) backfills(state ax.BackfillState) []ax.Backfill {
	all, err := s.world.store.Backfills(context.Background(), ax.BackfillFilter{States: []ax.BackfillState{state}})
	if err != nil {
		s.t.Fatal(err)
	}
	return all
}

func (s *sim) idle() bool {
	if len(s.backfills(ax.BackfillRunning)) > 0 {
		return false
	}
	for _, o := range s.objects() {
		if o.Row.Active != 0 || o.Row.Waiting != 0 {
			return false
		}
	}
	return true
}

// verify checks what must hold of every history when it is over.
func (s *sim) verify() {
	s.world.verify() // the store's invariants; no batch number was given twice
	for _, b := range s.backfills(ax.BackfillRunning) {
		s.t.Errorf("backfill %d hangs: %+v", b.ID, b)
	}
	for _, o := range s.objects() {
		if o.Row.Active != 0 || o.Row.Waiting != 0 {
			s.t.Errorf("%s hangs: active %d, waiting %d", o.Address(), o.Row.Active, o.Row.Waiting)
		}
		var i int
		if _, err := fmt.Sscanf(o.Name, "t%d", &i); err != nil {
			s.t.Fatal(err)
		}
		if n := s.exec.most[o.Address()]; n > concurrency(s.seed, i) {
			s.t.Errorf("%s: %d attempts at once, more than its concurrency %d", o.Address(), n, concurrency(s.seed, i))
		}
		for _, in := range s.rows(o.Name) {
			l := s.life(in.ID)
			s.verifyProgress(l)
			for _, a := range l.Attempts {
				if a.ErrorClass == ax.ClassLost && !idempotent(s.seed, i) {
					s.t.Errorf("instance %d is not idempotent, and was tried again after attempt %d was lost", in.ID, a.Attempt)
				}
			}
		}
	}
	for batch := range s.exec.ends { // of those that lived to the end
		_, id, attempt, _ := ax.ParseBatchNo(batch)
		told := 1 + s.exec.retold[batch]
		if s.play(ax.Job{InstanceID: id, Attempt: attempt}).again > 0 {
			told++
		}
		if n := s.exec.acked[batch]; n < 1 || n > told {
			s.t.Errorf("the end of %s was acknowledged %d times", batch, n)
		}
	}
	maps.Copy(s.ends, s.exec.ends)
	for _, batch := range slices.Sorted(maps.Keys(s.ends)) {
		s.verifyEnd(batch, s.ends[batch])
	}
}

// verifyProgress checks that an instance is as far as its attempt has said.
func (s *sim) verifyProgress(l ax.Life) {
	if l.Progress == nil {
		return
	}
	want := s.exec.told[ax.BatchNo(s.cfg.Incarnation, l.ID, l.Progress.Attempt)]
	want.InstanceID, want.Attempt = l.ID, l.Progress.Attempt
	if *l.Progress != want {
		s.t.Errorf("instance %d: progress is %+v, and its attempt said %+v", l.ID, *l.Progress, want)
	}
}

// verifyEnd checks that what an executor reported while axd lived is what the
// store says.
func (s *sim) verifyEnd(batch string, told ax.Status) {
	_, id, attempt, _ := ax.ParseBatchNo(batch)
	if s.pruned(id) {
		return
	}
	l := s.life(id)
	class, status := l.ErrorClass, l.Status
	if attempt < l.Attempt {
		class, status = l.Attempts[attempt-1].ErrorClass, l.Attempts[attempt-1].Status
	}
	deaf := s.play(ax.Job{InstanceID: id, Attempt: attempt}).deaf
	switch {
	case class == ax.ClassLost && told == ax.StatusSuccess:
		s.t.Errorf("%s was reported as %s, and the store says lost", batch, told)
	case told == ax.StatusSuccess && status != told && !deaf: // the deaf may be given up before
		s.t.Errorf("%s was reported as %s, and the store says %s", batch, told, status)
	}
}
