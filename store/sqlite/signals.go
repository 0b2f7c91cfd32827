package sqlite

import (
	"context"
	"fmt"
	"math"

	"github.com/axctl/ax"
)

// Signal implements ax.Signaller.
func (s *Store) Signal(ctx context.Context, re ax.SignalRequest) error {
	return s.write(ctx, 1, func(t *tx) error {
		var status ax.Status
		var attempt int
		var cancelBy string
		err := t.query(func(r *row) error {
			status, attempt, cancelBy = ax.Status(r.text()), r.int(), r.text()
			return nil
		}, `SELECT i.status, i.attempt, i.cancel_by FROM instance i WHERE i.id = ?`, re.InstanceID)
		switch {
		case err != nil:
			return err
		case status == "":
			return fmt.Errorf("instance %d: %w", re.InstanceID, ax.ErrNotFound)
		case status != ax.StatusDispatched:
			return fmt.Errorf("instance %d is %s: %w", re.InstanceID, status, ax.ErrConflict)
		case cancelBy != "":
			return fmt.Errorf("instance %d is to be cancelled: %w", re.InstanceID, ax.ErrConflict)
		}
		st, known, err := signalState(t, re.InstanceID, attempt)
		switch {
		case err != nil:
			return err
		case known && st.Asks(re.Signal):
			return nil
		case re.Signal == ax.SignalResume && (!known || st.PausedMs == 0 && st.Settled()):
			return fmt.Errorf("instance %d is not paused: %w", re.InstanceID, ax.ErrConflict)
		}
		_, err = t.exec(`INSERT OR REPLACE INTO signal (instance_id, attempt, signal, who, asked_ms, paused_ms, paused_by) VALUES (?, ?, ?, ?, ?, ?, ?)`,
			re.InstanceID, attempt, string(re.Signal), re.Who, re.NowMs, null(st.PausedMs), text(st.PausedBy))
		if err != nil {
			return err
		}
		return note(t, ax.Transition{
			InstanceID: re.InstanceID, AtMs: re.NowMs, Attempt: attempt, From: status, To: status, Actor: re.Who,
			Cause: re.Signal.Cause(), Detail: ax.SignalAsked,
		})
	})
}

const selectSignals = `SELECT s.instance_id, s.attempt, s.signal, s.who, s.asked_ms, s.answered_ms, s.refused, s.paused_ms, s.paused_by FROM signal s`

func scanSignal(r *row) ax.SignalState {
	return ax.SignalState{
		InstanceID: r.int64(), Attempt: r.int(), Signal: ax.Signal(r.text()), Who: r.text(), AskedMs: r.int64(),
		AnsweredMs: r.int64(), Refused: r.text(), PausedMs: r.int64(), PausedBy: r.text(),
	}
}

// signalState returns what was asked of an attempt.
func signalState(t *tx, id int64, attempt int) (st ax.SignalState, known bool, err error) {
	err = t.query(func(r *row) error { st, known = scanSignal(r), true; return nil },
		selectSignals+` WHERE s.instance_id = ? AND s.attempt = ?`, id, attempt)
	return st, known, err
}

// SignalStates implements ax.Live.
func (s *Store) SignalStates(ctx context.Context, host string) ([]ax.SignalState, error) {
	var states []ax.SignalState
	err := s.read(ctx, func(c *conn) error {
		return c.query(ctx, func(r *row) error { states = append(states, scanSignal(r)); return nil },
			selectSignals+` INDEXED BY signal_open CROSS JOIN instance i ON i.id = s.instance_id
				WHERE (s.answered_ms IS NULL OR s.paused_ms IS NOT NULL)
				AND i.attempt = s.attempt AND i.host = ? AND i.status = 'dispatched' ORDER BY s.instance_id`, host)
	})
	return states, err
}

// Signalled implements ax.Live.
func (s *Store) Signalled(ctx context.Context, as []ax.SignalAnswer) error {
	return s.write(ctx, len(as), func(t *tx) error {
		for _, a := range as {
			if err := signalled(t, a); err != nil {
				return err
			}
		}
		return nil
	})
}

func signalled(t *tx, a ax.SignalAnswer) error {
	st, known, err := signalState(t, a.InstanceID, a.Attempt)
	if err != nil || !known {
		return err
	}
	var ref ax.Ref
	err = t.query(func(r *row) error { ref = scanRef(r); return nil },
		`SELECT i.id, i.due_ms, i.task_id, i.slot_key FROM instance i WHERE i.id = ? AND i.attempt = ? AND i.status = 'dispatched'`,
		a.InstanceID, a.Attempt)
	if err != nil || ref.ID == 0 {
		return err
	}
	after, news := st.Answered(a)
	if after == st {
		return nil
	}
	_, err = t.exec(`UPDATE signal SET answered_ms = ?, refused = ?, paused_ms = ?, paused_by = ? WHERE instance_id = ?`,
		null(after.AnsweredMs), text(after.Refused), null(after.PausedMs), text(after.PausedBy), a.InstanceID)
	if err != nil {
		return err
	}
	if a.DeadlineMs != 0 && after.PausedMs == 0 {
		_, err = t.exec(`UPDATE instance SET deadline_ms = ? WHERE due_ms = ? AND task_id = ? AND slot_key = ? AND status = 'dispatched'`,
			a.DeadlineMs, ref.DueMs, ref.TaskID, ref.SlotKey)
		if err != nil {
			return err
		}
	}
	if news == "" {
		return nil
	}
	return note(t, ax.Transition{
		InstanceID: a.InstanceID, AtMs: a.AtMs, Attempt: a.Attempt, From: ax.StatusDispatched, To: ax.StatusDispatched,
		Actor: "dispatch", Cause: a.Signal.Cause(), Detail: news,
	})
}

// Progressed implements ax.Live.
func (s *Store) Progressed(ctx context.Context, ps []ax.Progress) error {
	return s.write(ctx, len(ps), func(t *tx) error {
		for _, p := range ps {
			p = p.Clean()
			var percent any
			if p.Percent >= 0 {
				percent = int64(math.Round(p.Percent * 100))
			}
			_, err := t.exec(`INSERT INTO progress (instance_id, attempt, at_ms, percent, text)
				SELECT i.id, ?2, ?3, ?4, ?5 FROM instance i WHERE i.id = ?1
				ON CONFLICT (instance_id) DO UPDATE SET attempt = excluded.attempt, at_ms = excluded.at_ms, percent = excluded.percent, text = excluded.text
				WHERE (excluded.attempt, excluded.at_ms) > (attempt, at_ms)`,
				p.InstanceID, p.Attempt, p.AtMs, percent, text(p.Text))
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// live reads what is told of a running instance beside its row.
func (c *conn) live(ctx context.Context, life *ax.Life) error {
	err := c.query(ctx, func(r *row) error {
		p := ax.Progress{InstanceID: life.ID, Attempt: r.int(), AtMs: r.int64(), Percent: float64(r.int64()) / 100, Text: r.text()}
		life.Progress = &p
		return nil
	}, `SELECT attempt, at_ms, COALESCE(percent, -100), text FROM progress WHERE instance_id = ?`, life.ID)
	if err != nil {
		return err
	}
	return c.query(ctx, func(r *row) error {
		st := scanSignal(r)
		life.Signal = &st
		return nil
	}, selectSignals+` WHERE s.instance_id = ? AND s.attempt = ?`, life.ID, life.Attempt)
}
