package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/axctl/ax"
	"github.com/axctl/ax/store"
)

// How long the handler of the upgrade drill runs, and how much it prints.
const (
	upgradeRuns  = 12 * time.Second
	upgradeLines = 3000
)

// said is what the ledger program prints when it is to print so many lines.
func said(lines int) []byte {
	var text bytes.Buffer
	for i := range lines {
		fmt.Fprintf(&text, "line %d %s\n", i, strings.Repeat("x", i%97))
	}
	return text.Bytes()
}

// upgrade lets a handler run while axd is ended by SIGTERM, by SIGKILL, and by
// SIGTERM with another binary in its place. It is recorded once, its log is
// whole, and the new binary's executor takes new work while the old one's
// finishes. Beside it an attempt is paused and stays so, one gives signs of life
// and one does not.
func upgrade(ctx context.Context, s *stage) (report, error) {
	rep := report{}
	s.finished, s.flags = true, []string{"-grace", "300ms"}
	text := fmt.Sprintf(`
task "long" {
  timeout = "10m"
  handler "shell" { command = [%q, %q, %q, "%d"] }
}
task "short" {
  handler "shell" { command = [%q, %q, "1ms"] }
}
`, s.ledger, s.ledgerPath(), upgradeRuns, upgradeLines, s.ledger, s.ledgerPath()) + s.liveTasks()
	if err := s.write("upgrade.hcl", text); err != nil {
		return rep, err
	}
	if _, err := s.run(ctx, "apply", "-auto-approve", "upgrade.hcl"); err != nil {
		return rep, err
	}
	want := said(upgradeLines)
	var d *daemon
	for range min(s.rounds, 20) {
		var err error
		if d, err = s.upgradeRound(ctx, &rep, d); err != nil {
			return rep, err
		}
		if err := s.checkLong(ctx, want); err != nil {
			return rep, err
		}
	}
	return rep, s.end(ctx, d, &rep)
}

// upgradeRound begins a long handler and ends axd three times under it.
func (s *stage) upgradeRound(ctx context.Context, rep *report, d *daemon) (*daemon, error) {
	var err error
	if d == nil {
		if d, err = s.start(); err != nil {
			return d, err
		}
	}
	if _, err := s.run(ctx, "trigger", "task.long"); err != nil {
		return d, err
	}
	watched, err := s.beginLive(ctx)
	if err != nil {
		return d, err
	}
	for _, end := range []func(*daemon) error{terminated, (*daemon).kill, func(d *daemon) error {
		if err := s.otherBinary(); err != nil {
			return err
		}
		return terminated(d)
	}} {
		if err := sleep(ctx, s.between(500*time.Millisecond, 2500*time.Millisecond)); err != nil {
			return d, err
		}
		if err := end(d); err != nil {
			return d, err
		}
		s.faults = append(s.faults, time.Now())
		rep.faults++
		if err := sleep(ctx, s.between(0, time.Second)); err != nil {
			return d, err
		}
		began := time.Now()
		if d, err = s.start(); err != nil {
			return d, err
		}
		if _, err := s.run(ctx, "trigger", "task.short", "-wait"); err != nil {
			return d, err
		}
		rep.worst = max(rep.worst, time.Since(began))
	}
	return d, s.checkLive(ctx, watched)
}

func terminated(d *daemon) error {
	if err := d.signal(syscall.SIGTERM); err != nil {
		return err
	}
	return d.wait(10 * time.Second)
}

// otherBinary puts an axd of another sha256 in the place of the one there is.
func (s *stage) otherBinary() error {
	b, err := os.ReadFile(s.axd)
	if err != nil {
		return err
	}
	if err := os.WriteFile(s.axd+".new", append(b, '\n'), 0o700); err != nil {
		return err
	}
	return os.Rename(s.axd+".new", s.axd)
}

// withoutLedger takes out the lines of the ledger, which go to the log too.
func withoutLedger(log string) string {
	var b strings.Builder
	for line := range strings.Lines(log) {
		if strings.HasPrefix(line, "line ") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// checkLong waits for the end of the newest long instance: it has succeeded in
// its first attempt, and its log is what it printed.
func (s *stage) checkLong(ctx context.Context, want []byte) error {
	st, err := store.Open(ctx, "sqlite:"+s.storePath(), store.Options{ReadOnly: true, Now: time.Now})
	if err != nil {
		return err
	}
	defer st.Close()
	objects, err := st.Objects(ctx, ax.ObjectFilter{Stack: "default", Kind: ax.KindTask, Name: "long"})
	if err != nil {
		return err
	}
	if len(objects) != 1 {
		return fmt.Errorf("%d tasks are called long", len(objects))
	}
	task := objects[0].ID
	deadline := time.Now().Add(2 * upgradeRuns)
	for {
		rows, err := st.Instances(ctx, ax.InstanceFilter{TaskID: task, Limit: 1})
		if err != nil {
			return err
		}
		if len(rows) == 1 && rows[0].Status.Final() {
			if rows[0].Status != ax.StatusSuccess || rows[0].Attempt != 1 {
				return fmt.Errorf("instance %d is %s in attempt %d: %s", rows[0].ID, rows[0].Status, rows[0].Attempt, rows[0].Error)
			}
			got, err := s.run(ctx, "logs", fmt.Sprint(rows[0].ID))
			got = withoutLedger(got)
			if err == nil && got != string(want) {
				err = fmt.Errorf("the log of instance %d has %d bytes, and is not the %d that were printed", rows[0].ID, len(got), len(want))
			}
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the long handler has not ended: %+v", rows)
		}
		if err := sleep(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}
