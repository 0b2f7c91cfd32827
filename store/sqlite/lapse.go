package sqlite

import (
	"context"

	"github.com/axctl/ax"
)

// Lapse implements ax.Lapses.
func (s *Store) Lapse(ctx context.Context, ls []ax.Lapse) ([]bool, error) {
	var done []bool
	err := s.write(ctx, len(ls), func(t *tx) error {
		done = make([]bool, len(ls))
		for i, l := range ls {
			n := ax.Transition{AtMs: l.NowMs, Actor: "dispatch", Cause: ax.CauseStartWithin, Detail: l.Detail}
			var err error
			if done[i], err = skipOne(t, waiting{Ref: l.Ref, attempt: 1}, ax.ReasonStartWithin, n); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return done, nil
}
