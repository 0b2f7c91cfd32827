package cli_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/axctl/ax"
	"github.com/axctl/ax/cmd/axctl/cli"
)

// faulty is a store whose Apply can be made to fail, lose its answer, or let
// somebody else go first.
type faulty struct {
	cli.Store
	apply func(ctx context.Context, next cli.Store, cs ax.ChangeSet) (ax.Applied, error)
}

func (f *faulty) Apply(ctx context.Context, cs ax.ChangeSet) (ax.Applied, error) {
	return f.apply(ctx, f.Store, cs)
}

func (w *world) onApply(apply func(ctx context.Context, next cli.Store, cs ax.ChangeSet) (ax.Applied, error)) {
	w.wrap = func(s cli.Store) cli.Store { return &faulty{s, apply} }
}

// An answer that was lost after the commit is looked up: the apply has happened
// once, and says so.
func TestApplyWhoseAnswerWasLost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.hello("0 * * * *", "a")
	w.onApply(func(ctx context.Context, next cli.Store, cs ax.ChangeSet) (ax.Applied, error) {
		if _, err := next.Apply(ctx, cs); err != nil {
			return ax.Applied{}, err
		}
		return ax.Applied{}, errors.New("connection reset")
	})
	w.wants(w.run(0, "apply", "-auto-approve"), "Apply complete! 1 added, 0 changed, 0 deleted. Serial 1.")
	w.wants(w.run(0, "apply", "-auto-approve"), "No changes. Stack default is as configured (serial 1).")
}

func TestApplyThatFailedChangedNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.hello("0 * * * *", "a")
	w.onApply(func(context.Context, cli.Store, ax.ChangeSet) (ax.Applied, error) {
		return ax.Applied{}, fmt.Errorf("write: %w", ax.ErrUnavailable)
	})
	w.wants(w.run(1, "apply", "-auto-approve"), "Nothing was changed.")
	w.onApply(func(context.Context, cli.Store, ax.ChangeSet) (ax.Applied, error) {
		return ax.Applied{}, fmt.Errorf("write: %w", ax.ErrBusy)
	})
	w.wants(w.run(6, "apply", "-auto-approve"), "Nothing was changed")
	w.wants(w.run(2, "plan", "-detailed-exitcode"), "Plan: 1 to add")
}

// blind is a store that cannot be asked about revisions.
type blind struct{ cli.Store }

func (blind) Revision(context.Context, string) (ax.Revision, error) {
	return ax.Revision{}, ax.ErrUnavailable
}

func TestApplyThatNobodyKnowsOf(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.hello("0 * * * *", "a")
	ctx, cancel := context.WithCancelCause(t.Context())
	w.ctx = ctx
	w.wrap = func(s cli.Store) cli.Store {
		return &faulty{blind{s}, func(context.Context, cli.Store, ax.ChangeSet) (ax.Applied, error) {
			cancel(&cli.Interrupt{Signal: "SIGINT", Code: cli.ExitInterrupted})
			return ax.Applied{}, errors.New("disk gone")
		}}
	}
	out := w.run(1, "apply", "-auto-approve")
	w.wants(out, "disk gone", "It is not known whether the change was committed")
	if strings.Contains(strings.ToLower(out), "nothing was changed") {
		t.Errorf("it says that nothing was changed:\n%s", out)
	}
}

// broken is a store in which one definition cannot be read.
type broken struct{ cli.Store }

func (b broken) Objects(ctx context.Context, f ax.ObjectFilter) ([]ax.Object, error) {
	objects, err := b.Store.Objects(ctx, f)
	for i := range objects {
		if objects[i].Name == "bad" {
			objects[i].Definition = json.RawMessage(`{"timeout": "soon"}`)
		}
	}
	return objects, err
}

// sparing is a store that refuses to be read whole.
type sparing struct{ cli.Store }

func (s sparing) Objects(ctx context.Context, f ax.ObjectFilter) ([]ax.Object, error) {
	if f.Name == "" && len(f.IDs) == 0 {
		return nil, errors.New("all objects are read")
	}
	return s.Store.Objects(ctx, f)
}

// What is asked of one address reads that object; only where there is none such
// all names are read, to tell the nearest.
func TestOneAddressReadsOneObject(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.hello("0 * * * *", "a")
	w.run(0, "apply", "-auto-approve")
	w.wrap = func(s cli.Store) cli.Store { return sparing{s} }
	for _, args := range [][]string{
		{"trigger", "task.a"},
		{"instances", "task.a"},
		{"instances"},
		{"instance", "1"},
		{"why", "task.a"},
		{"why", "1"},
		{"history", "task.a"},
		{"next", "task.a"},
		{"backfills", "task.a"},
		{"pause", "task.a", "-reason", "r"},
		{"resume", "task.a"},
	} {
		w.run(0, args...)
	}
	w.wants(w.run(1, "why", "task.aa"), "All objects are read")
	w.wrap = func(s cli.Store) cli.Store { return s }
	w.wants(w.run(1, "why", "task.aa"), "Did you mean task.a?")
}

// A store that cannot be opened ends every command with the right code and with
// what the driver says to do.
func TestStoreThatCannotBeOpened(t *testing.T) {
	t.Parallel()
	commands := [][]string{
		{"plan"},
		{"apply", "-auto-approve"},
		{"destroy", "-auto-approve"},
		{"show"},
		{"next"},
		{"history", "task.a"},
		{"why", "task.a"},
		{"trigger", "task.a"},
		{"instances"},
		{"instance", "1"},
		{"logs", "1"},
		{"cancel", "1"},
		{"retry", "1"},
		{"mark", "1", "success", "-reason", "r"},
		{"pause", "task.a", "-reason", "r"},
		{"resume", "task.a"},
		{"status"},
		{"doctor"},
	}
	for _, tt := range []struct {
		err  error
		code int
	}{{ax.ErrTooNew, 1}, {ax.ErrDenied, 1}, {ax.ErrUnavailable, 1}, {ax.ErrBusy, 6}} {
		w := newWorld(t)
		w.hello("0 * * * *", "a")
		w.fault = ax.WithHint(fmt.Errorf("store x: %w", tt.err), "do this: 42")
		for _, args := range commands {
			code, out, errs := w.try(args...)
			if code != tt.code || out != "" || !strings.Contains(errs, tt.err.Error()) || !strings.Contains(errs, "do this: 42") {
				t.Errorf("%v with %v: exit code %d, want %d\n%s%s", args, tt.err, code, tt.code, out, errs)
			}
			code, out, errs = w.try(append(args, "-json")...)
			var doc struct {
				FormatVersion string `json:"format_version"`
				Diagnostics   []ax.Diagnostic
			}
			if err := json.Unmarshal([]byte(out), &doc); err != nil || code != tt.code || errs != "" || len(doc.Diagnostics) != 1 || doc.FormatVersion != "1.0" {
				t.Errorf("%v -json with %v: exit code %d, %v\n%s%s", args, tt.err, code, err, out, errs)
			}
		}
	}
}

// One definition that this program cannot read hides none of the others.
func TestABrokenDefinition(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.hello("0 * * * *", "bad", "good")
	w.run(0, "apply", "-auto-approve")
	w.wrap = func(s cli.Store) cli.Store { return broken{s} }
	w.wants(w.run(0, "show"), "task.bad", "task.good")
	w.wants(w.run(0, "next"), "task.good")
	w.wants(w.run(0, "status"), "tasks      2")
	w.wants(w.run(1, "next", "task.bad"), "Definition of task.bad", "soon")
	w.wants(w.run(3, "doctor"), "FAIL   definitions: definition of task.bad")
}

// What time or a claim overtakes is computed again, with the instants of now;
// that the reviewed instant has passed is told.
func TestApplyThatTimeOvertook(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.hello("*/5 * * * *", "a")
	var tries atomic.Int32
	w.onApply(func(ctx context.Context, next cli.Store, cs ax.ChangeSet) (ax.Applied, error) {
		if tries.Add(1) == 1 {
			w.now = w.now.Add(7 * time.Minute)
		}
		return next.Apply(ctx, cs)
	})
	out := w.run(0, "apply", "-auto-approve")
	w.wants(out, "Time has passed: the next fire of task.a is Mon 2026-11-30 15:10 +00:00, no longer Mon 2026-11-30 15:05 +00:00.", "Serial 1.")
	if tries.Load() != 2 {
		t.Errorf("%d tries, want 2", tries.Load())
	}
	w.onApply(func(context.Context, cli.Store, ax.ChangeSet) (ax.Applied, error) {
		return ax.Applied{}, fmt.Errorf("task.a: %w", ax.ErrMoved)
	})
	w.hello("*/7 * * * *", "a")
	w.wants(w.run(1, "apply", "-auto-approve"), "overtaken 10 times", "Nothing was changed")
}

// A saved plan whose firings have passed is applied with those of now, and says
// which moved.
func TestSavedPlanThatTimeOvertook(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.hello("*/5 * * * *", "a")
	w.run(0, "plan", "-out", "p")
	w.now = w.now.Add(12 * time.Minute)
	out := w.run(0, "apply", "-auto-approve", "p")
	w.wants(out, "Time has passed: the next fire of task.a is Mon 2026-11-30 15:15 +00:00, no longer Mon 2026-11-30 15:05 +00:00.",
		"next fire   Mon 2026-11-30 15:15", "Serial 1.")
	w.wants(w.run(0, "next", "-n", "1"), "15:15")
}

// Somebody else applies between plan and commit: the second is stale, and the
// first stays as it is.
func TestTwoAppliesAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.hello("0 * * * *", "a")
	w.run(0, "apply", "-auto-approve")
	w.hello("0 2 * * *", "a")
	var inner atomic.Bool
	w.onApply(func(ctx context.Context, next cli.Store, cs ax.ChangeSet) (ax.Applied, error) {
		if inner.CompareAndSwap(false, true) {
			cs2 := cs
			cs2.ApplyID, cs2.Revision.Who = "other", "grace"
			if _, err := next.Apply(ctx, cs2); err != nil {
				t.Errorf("the other apply: %v", err)
			}
		}
		return next.Apply(ctx, cs)
	})
	w.wants(w.run(5, "apply", "-auto-approve"), "task.a was read at v1 and is now v2", "by grace", "Nothing was changed now")
	w.wants(w.run(0, "history", "task.a"), "v2  ", "by grace")
}

// A signal at the prompt, in the transaction, and after the commit.
func TestInterruptedApply(t *testing.T) {
	t.Parallel()
	interrupt := func(w *world) context.CancelCauseFunc {
		ctx, cancel := context.WithCancelCause(t.Context())
		w.ctx = ctx
		return cancel
	}
	sigint := &cli.Interrupt{Signal: "SIGINT", Code: cli.ExitInterrupted}

	w := newWorld(t)
	w.hello("0 * * * *", "a")
	w.tty.Stdin = true
	silent, keyboard := io.Pipe()
	defer keyboard.Close()
	w.stdin = silent
	interrupt(w)(&cli.Interrupt{Signal: "SIGTERM", Code: cli.ExitTerminated})
	w.wants(w.run(143, "apply"), "Interrupted (SIGTERM); nothing was changed")
	w.tty.Stdin = false

	cancel := interrupt(w)
	w.onApply(func(ctx context.Context, _ cli.Store, _ ax.ChangeSet) (ax.Applied, error) {
		cancel(sigint)
		return ax.Applied{}, ctx.Err()
	})
	w.wants(w.run(130, "apply", "-auto-approve"), "Interrupted (SIGINT); nothing was changed")

	cancel = interrupt(w)
	w.onApply(func(ctx context.Context, next cli.Store, cs ax.ChangeSet) (ax.Applied, error) {
		_, err := next.Apply(ctx, cs)
		cancel(sigint)
		return ax.Applied{}, errors.Join(err, ctx.Err())
	})
	out := w.run(130, "apply", "-auto-approve")
	w.wants(out, "Apply complete! 1 added", "the change was committed")
	if strings.Contains(out, "Nothing was changed.") {
		t.Errorf("it says that nothing was changed:\n%s", out)
	}
}

// What a pause has skipped, and what it lets run late, is told when it ends.
func TestResumeTellsTheSlotsOfThePause(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ policy, says string }{
		{"skip", "3 slots from Mon 2026-11-30 16:00 +00:00 to Mon 2026-11-30 18:00 +00:00 not run."},
		{"once", "1 slot of the pause to be run now (misfire.on_resume = \"once\")."},
		{"all", "3 slots of the pause to be run now"},
	} {
		w := newWorld(t)
		w.file("main.hcl", "task \"a\" {\n  schedule { cron = \"0 * * * *\" }\n  misfire { on_resume = \""+tt.policy+"\" }\n  handler \"shell\" { command = \"true\" }\n}\n")
		w.run(0, "apply", "-auto-approve")
		w.run(0, "pause", "task.a", "-reason", "r")
		w.now = w.now.Add(3*time.Hour + time.Minute)
		w.wants(w.run(0, "resume", "task.a"), "It fires next Mon 2026-11-30 19:00 +00:00.", tt.says)
	}
}

// A script that changed is shown by its lines; another folder that applies to
// the same stack is warned of what it deletes.
func TestPlanOfAScriptAndOfAnotherFolder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	script := func(dir, lines string) {
		w.file(dir+"/main.hcl", "task \"a\" {\n  handler \"shell\" {\n    script = <<-EOT\n"+lines+"    EOT\n  }\n}\n")
	}
	script("one", "      set -eu\n      echo one\n      echo end\n")
	w.run(0, "apply", "-auto-approve", "one")
	script("one", "      set -eu\n      echo two\x07\n      echo end\n")
	w.wants(w.run(0, "plan", "one"), "      ~ handler.script\n          - echo one\n          + echo two\\u0007\n      next fire   none: it has no schedule\n")
	w.file("two/main.hcl", "task \"b\" {\n  handler \"shell\" { command = \"true\" }\n}\n")
	w.wants(w.run(0, "plan", "two"), "! The last apply of stack default was from "+w.dir+"/one; what only that declares is deleted.")
}

// A shell is offered the addresses of the store.
func TestCompletionOfAddresses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.hello("0 * * * *", "a", "b")
	w.run(0, "apply", "-auto-approve")
	w.wants(w.run(0, "__complete", "history", ""), "task.a\n", "task.b\n")
}

// The keys of instances -json and next -json are a contract.
func TestKeysOfDocuments(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.hello("0 * * * *", "a")
	w.run(0, "apply", "-auto-approve")
	w.run(0, "trigger", "task.a")
	tests := []struct{ command, list, keys string }{
		{"instances", "instances", "id task stack version kind due due_ms status reason attempt batch_no host executor " +
			"not_before not_before_ms claimed claimed_ms dispatched dispatched_ms started started_ms ended ended_ms stopped stopped_ms " +
			"error error_class last_error unkillable verdict output_dropped run_id retry_of backfill_id shard_index shard_count"},
		{"next", "firings", "due due_ms address"},
	}
	for _, tt := range tests {
		code, out, errs := w.try("-json", tt.command)
		var doc map[string]json.RawMessage
		if err := json.Unmarshal([]byte(out), &doc); err != nil || code != 0 || errs != "" {
			t.Fatalf("%s: exit code %d, %v\n%s%s", tt.command, code, err, out, errs)
		}
		if string(doc["format_version"]) != `"1.0"` || len(doc) != 2 {
			t.Errorf("%s: top level is %s", tt.command, out)
		}
		var items []map[string]json.RawMessage
		if err := json.Unmarshal(doc[tt.list], &items); err != nil || len(items) == 0 {
			t.Fatalf("%s: %v in %s", tt.command, err, out)
		}
		var keys []string
		for key := range items[0] {
			keys = append(keys, key)
		}
		want := strings.Fields(tt.keys)
		slices.Sort(want)
		slices.Sort(keys)
		if !slices.Equal(keys, want) {
			t.Errorf("%s has keys\n%v\nwant\n%v", tt.command, keys, want)
		}
	}
}

// A changed firing, a running instance and a hold, on one screen.
func TestPlanScreen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.hello("0 2 * * *", "a", "b")
	w.run(0, "apply", "-auto-approve")
	w.run(0, "trigger", "task.b")
	w.run(0, "pause", "task.a", "-reason", "moving house\x1b[2J")
	w.hello("0 1 * * *", "a")
	want := `Stack default in DIR/ax.db (serial 1)

  ~ task.a   main.hcl:1   v1 -> v2
      ~ schedule.cron   "0 2 * * *" -> "0 1 * * *"
      next fire   Tue 2026-12-01 02:00 +00:00 -> Tue 2026-12-01 01:00 +00:00    1 h earlier
      then        12-02 01:00, 12-03 01:00, 12-04 01:00
      note        paused by ada: it does not fire until that ends

  - task.b   v1 -> deleted
      next fire   Tue 2026-12-01 02:00 +00:00 -> none
      in flight   instance 1 waiting, will be skipped

Held, left as they are:
  task.a                         paused by ada since Mon 2026-11-30 15:00 +00:00, until someone resumes it: moving house\u001b[2J

Plan: 0 to add, 1 to change, 1 to delete.
`
	code, out, errs := w.try("plan")
	if got := strings.ReplaceAll(out, w.dir, "DIR"); got != want || code != 0 || errs != "" {
		t.Errorf("exit code %d, got\n%s%s\nwant\n%s", code, got, errs, want)
	}
}

// trigger -wait ends with the instance: 0 for success, 8 for anything else.
func TestTriggerWait(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		status ax.Status
		code   int
	}{{ax.StatusSuccess, 0}, {ax.StatusFailed, 8}, {ax.StatusTimeout, 8}, {ax.StatusSkipped, 8}} {
		w := newWorld(t)
		w.hello("0 * * * *", "a")
		w.run(0, "apply", "-auto-approve")
		w.wrap = func(s cli.Store) cli.Store { return &ending{Store: s, status: tt.status} }
		w.wants(w.run(tt.code, "trigger", "-wait", "task.a"), "Instance 1 of task.a v1 is to start", "Instance 1 ended: "+string(tt.status))
	}
	w := newWorld(t)
	w.hello("0 * * * *", "a")
	w.run(0, "apply", "-auto-approve")
	ctx, cancel := context.WithCancelCause(t.Context())
	w.ctx = ctx
	cancel(&cli.Interrupt{Signal: "SIGINT", Code: 130})
	w.wants(w.run(130, "trigger", "-wait", "task.a"), "instance 1 goes on")
}

// ending is a store on which instances have ended the second time they are
// looked at.
type ending struct {
	cli.Store
	status ax.Status
	looked atomic.Bool
}

func (e *ending) Instance(ctx context.Context, id int64) (ax.Life, error) {
	l, err := e.Store.Instance(ctx, id)
	if e.looked.Swap(true) {
		l.Status = e.status
	}
	return l, err
}

// mute is a store that takes triggers and signals, and tells no instance.
type mute struct {
	cli.Store
	look func()
}

func (mute) Signal(context.Context, ax.SignalRequest) error { return nil }

func (m mute) Instance(context.Context, int64) (ax.Life, error) {
	m.look()
	return ax.Life{}, ax.ErrBusy
}

// What was written is never said not to have been, or it would be done twice.
func TestWrittenAndThenNotSeen(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"instance 1 goes on":           {"trigger", "-wait", "task.a"},
		"instance 1 is asked to pause": {"signal", "1", "pause"},
	} {
		for code, cause := range map[int]error{1: nil, 143: &cli.Interrupt{Signal: "SIGTERM", Code: cli.ExitTerminated}} {
			w := newWorld(t)
			w.hello("0 * * * *", "a")
			w.run(0, "apply", "-auto-approve")
			defer w.lock()()
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			w.ctx = ctx
			w.wrap = func(s cli.Store) cli.Store {
				return mute{s, func() {
					if cause != nil {
						cancel(cause)
					}
				}}
			}
			out := w.run(code, args...)
			w.wants(out, want, "axctl instance 1 tells what becomes of it.")
			if strings.Contains(strings.ToLower(out), "nothing was changed") {
				t.Errorf("axctl %v says that nothing was changed:\n%s", args, out)
			}
		}
	}
}
