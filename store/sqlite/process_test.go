package sqlite_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/axctl/ax"
	"github.com/axctl/ax/store/check"
	"github.com/axctl/ax/store/sqlite"
)

// applierEnv makes the test binary a process that applies to the store it
// names until it is killed.
const applierEnv = "AX_TEST_APPLY_TO"

func TestMain(m *testing.M) {
	if path := os.Getenv(applierEnv); path != "" {
		if err := applyForEver(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

const stackSize = 300

// applyForEver changes every task of a stack with each apply, and says so
// after each.
func applyForEver(path string) error {
	ctx := context.Background()
	s, err := sqlite.Open(ctx, path, sqlite.Options{})
	if err != nil {
		return err
	}
	for {
		st, err := s.ReadStack(ctx, "bench")
		if err != nil {
			return err
		}
		cs := updates(st, time.Now().UnixMilli())
		if _, err := s.Apply(ctx, cs); err != nil {
			return err
		}
		fmt.Println(cs.ApplyID)
	}
}

// updates gives every task of a stack the timeout of its next serial.
func updates(st ax.StackState, nowMs int64) ax.ChangeSet {
	cs := creations(stackSize, nowMs)
	cs.ApplyID, cs.StoreID, cs.BaseSerial = fmt.Sprint("apply-", st.Serial), st.StoreID, st.Serial
	for i := range cs.Changes {
		c, o := &cs.Changes[i], st.Objects[i]
		def := ax.Definition{Kind: ax.KindTask, Name: o.Name, Task: &ax.TaskSpec{Timeout: ax.Duration(1000 * (st.Serial + 1))}}
		c.Definition, c.Hash = def.Canonical()
		c.Action, c.ObjectID, c.BaseVersion, c.Task.Timetable = ax.ActionUpdate, o.ID, o.Version, nil
	}
	return cs
}

// An apply that is killed at any moment is there whole or not at all.
func TestApplyKilled(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ax.db")
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Apply(t.Context(), creations(stackSize, time.Now().UnixMilli())); err != nil {
		t.Fatal(err)
	}
	told := int64(1) // the last serial that an applier said it had written
	for range 15 {
		told = max(told, killApplier(t, path))
		st, err := s.ReadStack(t.Context(), "bench")
		if err != nil {
			t.Fatal(err)
		}
		if st.Serial < told {
			t.Fatalf("serial %d, and apply %d was told to be committed", st.Serial, told)
		}
		for _, o := range st.Objects {
			if o.Version != int(st.Serial) {
				t.Fatalf("%s is at version %d at serial %d: half an apply", o.Name, o.Version, st.Serial)
			}
		}
	}
	if told < 2 {
		t.Error("no applier came to its first commit")
	}
	found, err := check.Check(t.Context(), s, time.Now())
	if err != nil || len(found) > 0 {
		t.Errorf("findings: %v, %v", found, err)
	}
}

// killApplier runs an applier, kills it a moment after its first commit, and
// returns the last serial it told.
func killApplier(t *testing.T, path string) (serial int64) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), applierEnv+"="+path)
	var complaints strings.Builder
	cmd.Stderr = &complaints
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	var kill *time.Timer
	for lines.Scan() {
		var base int64
		if _, err := fmt.Sscanf(lines.Text(), "apply-%d", &base); err != nil {
			t.Fatal(err)
		}
		serial = base + 1
		if kill == nil {
			kill = time.AfterFunc(rand.N(40*time.Millisecond), func() { _ = cmd.Process.Kill() })
		}
	}
	_, _ = io.Copy(io.Discard, out)
	err = cmd.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Exited() {
		t.Fatalf("the applier ended by itself: %v %s", err, complaints.String())
	}
	return serial
}

// Claims, reports, applies of another process and a long read at once: nobody
// hears of a lock, and every report is there.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	const workers, rounds = 8, 25
	path := filepath.Join(t.TempDir(), "ax.db")
	ctx := t.Context()
	s, err := sqlite.Open(ctx, path, sqlite.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	now := time.Now().UnixMilli()
	cs := creations(workers, now)
	cs.Stack = "work"
	if _, err := s.Apply(ctx, cs); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Apply(ctx, withID(creations(stackSize, now), "other")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), applierEnv+"="+path)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	var reports atomic.Int64
	err = s.Audit(ctx, func(r ax.Records) error { // a snapshot that lives all the while
		for _, err := range r.Objects() { // it begins with the first row
			if err != nil {
				return err
			}
			break
		}
		var group sync.WaitGroup
		for w := range workers {
			group.Go(func() { work(t, s, int64(w+1), rounds, &reports) })
		}
		group.Wait()
		for _, err := range r.Instances() {
			if err != nil {
				return err
			}
			return errors.New("the snapshot has moved")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	rows, err := s.Instances(ctx, ax.InstanceFilter{Status: []ax.Status{ax.StatusSuccess}, Limit: 10_000})
	if err != nil || len(rows) != workers*rounds || reports.Load() != workers*rounds {
		t.Errorf("%d instances ended, %d reports of %d, %v", len(rows), reports.Load(), workers*rounds, err)
	}
	st, err := s.ReadStack(ctx, "bench")
	if err != nil || st.Serial < 2 {
		t.Errorf("the applier came to serial %d beside the claims, %v", st.Serial, err)
	}
	wal, err := os.Stat(path + "-wal")
	if err != nil || wal.Size() > 100<<20 {
		t.Errorf("the write-ahead log is %v, %v", wal, err)
	}
}

func withID(cs ax.ChangeSet, id string) ax.ChangeSet {
	cs.ApplyID = id
	return cs
}

// work fires one task and finishes it, again and again.
func work(t *testing.T, s *sqlite.Store, taskID int64, rounds int, reports *atomic.Int64) {
	for range rounds {
		due, err := s.ReloadTasks(t.Context(), []int64{taskID})
		if err != nil {
			t.Error(err)
			return
		}
		d := due[0]
		claimed, err := s.Claim(t.Context(), []ax.Firing{{
			TaskID: d.TaskID, Version: d.Version, ExpectNextMs: d.NextMs, ExpectLockVersion: d.LockVersion,
			NextMs: d.NextMs + 60_000, LastSlotMs: d.NextMs, NowMs: d.NextMs, Overlap: ax.OverlapQueue,
			Starts: []ax.FiringStart{{DueMs: d.NextMs, Place: &ax.Handover{Host: "h1", AtMs: d.NextMs}}},
		}})
		if err != nil {
			t.Error(err)
			return
		}
		ended, err := s.Finish(t.Context(), []ax.Ending{{
			Ref: claimed[0].Born[0].Ref, Attempt: 1, Status: ax.StatusSuccess, StoppedMs: d.NextMs, NowMs: d.NextMs,
		}})
		if err != nil || !ended[0].Freed {
			t.Errorf("finish: %+v %v", ended, err)
			return
		}
		reports.Add(1)
	}
}
