package check

import (
	"cmp"
	"fmt"
	"iter"

	"github.com/axctl/ax"
)

// instances checks each instance with its attempts and its life line, three
// streams in the order of ids.
func (c *checker) instances(r ax.Records) error {
	attempts := newGroups(r.Attempts(), func(a ax.Attempt) int64 { return a.InstanceID })
	defer attempts.stop()
	transitions := newGroups(r.Transitions(), func(t ax.Transition) int64 { return t.InstanceID })
	defer transitions.stop()
	for in, err := range r.Instances() {
		if err != nil {
			return fmt.Errorf("instances: %w", err)
		}
		before, err := attempts.of(in.ID)
		if err != nil {
			return fmt.Errorf("attempts: %w", err)
		}
		line, err := transitions.of(in.ID)
		if err != nil {
			return fmt.Errorf("transitions: %w", err)
		}
		c.instance(in, before, line)
	}
	return nil
}

func (c *checker) instance(in ax.Instance, before []ax.Attempt, line []ax.Transition) {
	subject := fmt.Sprintf("instance %d", in.ID)
	t := c.tasks[in.TaskID]
	if t == nil {
		c.find(2, report, subject, "its task %d does not exist", in.TaskID)
		return
	}
	t.used[in.Version] = in.ID
	t.first = cmp.Or(t.first, in.ID)
	if of := in.RetryOf(); of != 0 {
		c.retried[of] = append(c.retried[of], in.Ref)
	}
	if in.HandedMs != 0 && in.StoppedMs == 0 {
		t.active++
		if t.activeFrom == 0 || in.HandedMs < t.activeFrom {
			t.activeFrom = in.HandedMs
		}
	}
	if in.Status == ax.StatusPending {
		t.waiting++
	}
	c.backfilled(subject, in)
	c.shape(subject, in)
	c.attempts(subject, in, before)
	c.lifeLine(subject, in, line)
}

// retries checks what people's retries are of. Retention deletes the oldest of
// a task first, so what is older than all that is there was there once.
func (c *checker) retries(r ax.Records) error {
	if len(c.retried) == 0 {
		return nil
	}
	for in, err := range r.Instances() {
		if err != nil {
			return fmt.Errorf("instances: %w", err)
		}
		keys := map[string]bool{}
		for _, re := range c.retried[in.ID] {
			subject := fmt.Sprintf("instance %d", re.ID)
			switch {
			case re.TaskID != in.TaskID || re.DueMs != in.DueMs || re.ID <= in.ID:
				c.find(2, report, subject, "it is a retry of instance %d, which is no older one of its task and instant", in.ID)
			case in.EndedMs == 0:
				c.find(2, report, subject, "it is a retry of instance %d, which has not ended", in.ID)
			case keys[re.SlotKey]:
				c.find(1, report, subject, "another instance has its key %s", re.SlotKey)
			}
			keys[re.SlotKey] = true
		}
		delete(c.retried, in.ID)
	}
	for of, retries := range c.retried {
		for _, re := range retries {
			if of >= c.tasks[re.TaskID].first {
				c.find(2, report, fmt.Sprintf("instance %d", re.ID), "it is a retry of instance %d, which does not exist", of)
			}
		}
	}
	return nil
}

// shape checks that the row has what its status needs.
func (c *checker) shape(subject string, in ax.Instance) {
	lacks := func(ok bool, what string) {
		if !ok {
			c.find(4, report, subject, "it is %s and %s", in.Status, what)
		}
	}
	if in.Status != ax.StatusPending {
		lacks(in.HandedMs != 0 || in.StartedMs == 0, "has started and was never handed over")
	}
	lacks(in.ClaimedMs != 0, "was never claimed")
	switch in.Status {
	case ax.StatusPending:
		lacks(in.NotBeforeMs != 0, "has no not_before")
		lacks(in.Host == "" && in.HandedMs == 0, "has a host")
		lacks(in.EndedMs == 0, "has ended")
	case ax.StatusDispatched:
		lacks(in.Host != "" && in.HandedMs != 0, "has no host")
		lacks(in.EndedMs == 0 && in.StoppedMs == 0, "has ended")
		if in.DeadlineMs == 0 {
			k := ax.VersionKey{ObjectID: in.TaskID, Version: in.Version}
			c.untimed[k] = append(c.untimed[k], in.ID)
		}
	case ax.StatusSuccess, ax.StatusFailed, ax.StatusTimeout:
		lacks(in.HandedMs != 0, "was never handed over")
		lacks(in.EndedMs != 0, "has no end")
	case ax.StatusSkipped:
		lacks(in.HandedMs == 0, "was handed over")
		lacks(in.Reason != ax.ReasonNone, "has no reason")
		lacks(in.EndedMs != 0, "has no end")
	case ax.StatusCancelled:
		lacks(in.EndedMs != 0, "has no end")
	default:
		c.find(4, report, subject, "its status %q is unknown", string(in.Status))
	}
}

// attempts checks that every attempt but the last has ended, and stopped.
func (c *checker) attempts(subject string, in ax.Instance, before []ax.Attempt) {
	if len(before) != in.Attempt-1 {
		c.find(8, report, subject, "it is in attempt %d, and %d ended attempts are recorded", in.Attempt, len(before))
	}
	for i, a := range before {
		switch {
		case a.Attempt != i+1:
			c.find(8, report, subject, "attempt %d is recorded where attempt %d should be", a.Attempt, i+1)
		case a.Status != ax.StatusFailed && a.Status != ax.StatusTimeout:
			c.find(8, report, subject, "attempt %d ended as %q, and another followed", a.Attempt, string(a.Status))
		case a.EndedMs == 0 || a.StoppedMs == 0:
			c.find(10, report, subject, "attempt %d has not stopped, and attempt %d exists", a.Attempt, in.Attempt)
		}
	}
}

// lifeLine folds the transitions and compares with the row. The happy path
// leaves none, so between two entries it may have gone on.
func (c *checker) lifeLine(subject string, in ax.Instance, line []ax.Transition) {
	var at ax.Status // "" is before birth
	for i, t := range line {
		switch {
		case t.From == "" && i > 0:
			c.find(8, report, subject, "its life line has two births")
		case t.From != "" && at != t.From && !happy(at, t.From):
			law := 8
			if at.Final() {
				law = 5
			}
			c.find(law, report, subject, "its life line goes from %s to %s by %s", orBirth(at), t.From, t.Cause)
		case t.From != t.To && !ax.MayMove(t.From, t.To):
			c.find(8, report, subject, "its life line goes from %s to %s, which is no transition", orBirth(t.From), t.To)
		}
		at = t.To
	}
	if at != in.Status && !happy(at, in.Status) {
		law := 8
		if at.Final() {
			law = 5
		}
		c.find(law, report, subject, "it is %s, and its life line ends with %s", in.Status, orBirth(at))
	}
	c.folds(subject, in, c.fold(subject, line))
}

// happy reports whether an instance gets from one status to another without an
// entry in its life line.
func happy(from, to ax.Status) bool {
	switch from {
	case "":
		return to != ax.StatusSkipped
	case ax.StatusPending:
		return to == ax.StatusDispatched || happy(ax.StatusDispatched, to)
	case ax.StatusDispatched:
		return to == ax.StatusSuccess || to == ax.StatusFailed || to == ax.StatusTimeout || to == ax.StatusCancelled
	default:
		return false
	}
}

func orBirth(s ax.Status) string {
	if s == "" {
		return "birth"
	}
	return string(s)
}

// groups reads a stream that is in order of a key as runs of one key.
type groups[T any] struct {
	next func() (T, error, bool)
	stop func()
	key  func(T) int64
	row  T
	has  bool
	err  error
}

func newGroups[T any](rows iter.Seq2[T, error], key func(T) int64) *groups[T] {
	g := &groups[T]{key: key}
	g.next, g.stop = iter.Pull2(rows)
	g.read()
	return g
}

func (g *groups[T]) read() { g.row, g.err, g.has = g.next() }

// each yields the rows with this key. Keys are asked for in rising order; what
// is left of an earlier one is passed over.
func (g *groups[T]) each(key int64) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for g.has && g.err == nil && g.key(g.row) <= key {
			row := g.row
			g.read()
			if g.key(row) == key && !yield(row, nil) {
				return
			}
		}
		if g.err != nil {
			yield(g.row, g.err)
		}
	}
}

// of returns the rows with this key at once.
func (g *groups[T]) of(key int64) ([]T, error) {
	var run []T
	for row, err := range g.each(key) {
		if err != nil {
			return nil, err
		}
		run = append(run, row)
	}
	return run, nil
}
