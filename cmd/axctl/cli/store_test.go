package cli_test

import (
	"context"
	"testing"

	"github.com/axctl/ax"
	"github.com/axctl/ax/cmd/axctl/cli"
)

// halfPruned fails after its first transaction.
type halfPruned struct{ cli.Store }

func (h halfPruned) Prune(_ context.Context, _ ax.PruneQuery, step func(ax.Pruned) error) error {
	if err := step(ax.Pruned{Instances: 500}); err != nil {
		return err
	}
	return ax.ErrUnavailable
}

// A gc that ends early says what it has deleted.
func TestGCCutShort(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.hello("0 * * * *", "a")
	w.run(cli.ExitDone, "apply", "-auto-approve")
	w.wrap = func(s cli.Store) cli.Store { return halfPruned{s} }
	w.wants(w.run(cli.ExitError, "store", "gc"), "ommitted: 500 instances deleted")
}

// A store that is no file tells so, and is not copied.
func TestBackupOfNoFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.hello("0 * * * *", "a")
	w.run(cli.ExitDone, "apply", "-auto-approve")
	w.wants(w.run(cli.ExitError, "store", "backup", "copy.db"), "is no file to copy", "own backup")
}
