package cli_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/axctl/ax"
	"github.com/axctl/ax/cmd/axctl/cli"
	"github.com/axctl/ax/schedule"
)

// lock holds the lock that an axd on the world's store would hold.
func (w *world) lock() (release func()) {
	w.t.Helper()
	f, err := os.OpenFile(filepath.Join(w.dir, "ax.db.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err == nil {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return func() { f.Close() }
}

// An axd whose store file was replaced under it holds the lock, and fires
// nothing of the file that is there now.
func TestAxdOfAReplacedStore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.hello("0 * * * *", "a")
	w.run(0, "apply", "-auto-approve")
	defer w.lock()()
	w.wants(w.run(0, "status"), "has not joined this store", "restart axd")
	w.wants(w.run(3, "doctor"), "FAIL   axd: an axd runs beside this store but has not joined it", "-> restart axd")
}

// watched is a store that tells how often an instance was looked at.
type watched struct {
	cli.Store
	look func(n int)
	n    int
}

func (s *watched) Instance(ctx context.Context, id int64) (ax.Life, error) {
	s.n++
	s.look(s.n)
	return s.Store.Instance(ctx, id)
}

// A logs -f that waits for an axd that is not there says so, once.
func TestFollowWithoutAxd(t *testing.T) {
	t.Parallel()
	for name, runs := range map[string]bool{"axd runs": true, "no axd": false} {
		w := newWorld(t)
		w.hello("0 * * * *", "a")
		w.run(0, "apply", "-auto-approve")
		w.run(0, "trigger", "task.a")
		if runs {
			defer w.lock()()
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		w.ctx = ctx
		w.wrap = func(s cli.Store) cli.Store {
			return &watched{Store: s, look: func(n int) {
				if n == 3 {
					cancel(&cli.Interrupt{Signal: "SIGINT", Code: cli.ExitInterrupted})
				}
			}}
		}
		code, _, errs := w.try("logs", "-f", "1")
		if code != cli.ExitInterrupted || strings.Contains(errs, "Error") {
			t.Errorf("%s: to stop following is no error: exit code %d, %s", name, code, errs)
		}
		if got := strings.Count(errs, "ax: instance 1 is pending, and no axd runs on this store"); (got == 1) == runs || got > 1 {
			t.Errorf("%s: told %d times: %s", name, got, errs)
		}
	}
}

// While axd holds its lock it runs; a host that left no trace of its end does
// not count as running without the lock.
func TestStatusAndDoctorSeeAxd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.hello("0 * * * *", "a")
	w.run(0, "apply", "-auto-approve")
	err := w.store.Join(t.Context(), ax.Host{
		Name: "host1", Boot: "b", PID: 42, DataDir: w.dir, Version: "v1", TZData: schedule.TZDataVersion(), StartedMs: w.now.UnixMilli(),
	})
	if err != nil {
		t.Fatal(err)
	}
	w.wants(w.run(0, "status"), "does not run")
	release := w.lock()
	w.wants(w.run(0, "status"), "runs on host1", "pid 42")
	w.wants(w.run(0, "doctor"), "ok     axd", "ok     overdue tasks", "ok     time zone data", "ok     disk space")

	w.now = w.now.Add(2 * time.Hour)
	w.wants(w.run(0, "status"), "overdue    task.a  due Mon 2026-11-30 16:00 +00:00, 1 h ago")
	w.wants(w.run(3, "doctor"), "FAIL   overdue tasks: task.a was due Mon 2026-11-30 16:00 +00:00 and has not fired", "offer no handler shell")

	err = w.store.Join(t.Context(), ax.Host{Name: "host1", Boot: "c", PID: 43, DataDir: w.dir, TZData: "1999a", StartedMs: w.now.UnixMilli()})
	if err != nil {
		t.Fatal(err)
	}
	w.wants(w.run(3, "doctor"), "FAIL   time zone data: axd on host1 has time zone data 1999a")

	release()
	out := w.run(3, "doctor")
	w.wants(out, "FAIL   axd: no axd runs on this store", "ok     overdue tasks")
	w.wants(w.run(0, "trigger", "task.a"), "No axd is running")
}

// A task that a clock ahead has left waiting is a finding, and what axd will do.
func TestDoctorTellsTasksAhead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.hello("0 * * * *", "a")
	w.run(0, "apply", "-auto-approve")
	right := w.now
	w.now = w.now.Add(4 * time.Hour)
	objects, err := w.store.Objects(t.Context(), ax.ObjectFilter{})
	if err != nil {
		t.Fatal(err)
	}
	o, hour := objects[0], time.Hour.Milliseconds()
	last := w.now.UnixMilli() / hour * hour
	_, err = w.store.Claim(t.Context(), []ax.Firing{{
		TaskID: o.ID, Version: o.Version, ExpectNextMs: o.Row.NextMs, ExpectLockVersion: o.Row.LockVersion,
		NextMs: last + hour, LastSlotMs: last, NowMs: w.now.UnixMilli(), Overlap: ax.OverlapQueue,
		Starts:  []ax.FiringStart{{DueMs: last, CatchUp: true}},
		Skipped: []ax.SkippedStretch{{TaskID: o.ID, FromMs: o.Row.NextMs, ToMs: last - hour, Slots: 3, Reason: ax.ReasonMisfire, Version: o.Version}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	w.wants(w.run(3, "doctor"), "ok     tasks ahead of their schedule")
	w.now = right
	w.wants(w.run(3, "doctor"), "FAIL   tasks ahead of their schedule: task.a waits for Mon 2026-11-30 20:00 +00:00, and its schedule says Mon 2026-11-30 16:00 +00:00",
		"start axd: it sets the task back when it starts")
	release := w.lock()
	w.wants(w.run(3, "doctor"), "if this stays, restart axd")
	release()
	w.now = right.Add(-48 * time.Hour)
	w.wants(w.run(3, "doctor"), "over a day ahead of the clock")
}
