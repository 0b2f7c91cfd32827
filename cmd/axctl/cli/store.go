package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/spf13/cobra"

	"github.com/axctl/ax"
	"github.com/axctl/ax/runtime/retention"
)

func storeCommand(c *call) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "store COMMAND",
		Short: "Copy the store while it is used; delete old history now",
		Args:  cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(cmd, args[0])
			}
			return cmd.Help()
		},
	}
	cmd.AddCommand(backupCommand(c), gcCommand(c))
	return cmd
}

func backupCommand(c *call) *cobra.Command {
	return &cobra.Command{
		Use:   "backup FILE",
		Short: "Copy the store as it is now into a new file",
		Long: "backup copies the store as it is now into a new file, while axd works on it. Logs are\n" +
			"not in the store: they are files of axd's data folder.\n\n" +
			"To restore: stop axd, move the old store and its -wal and -shm files away, copy FILE to\n" +
			"its place and start axd. What became due since the copy was made is then due again, by\n" +
			"each task's misfire policy. Never run the copy beside the original: both would fire.",
		Args: argumentCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			result, err := c.backup(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return c.print(result)
		},
	}
}

type backupResult struct{ from, to string }

func (c *call) backup(ctx context.Context, file string) (backupResult, error) {
	s, err := c.open(ctx, OpenOptions{ReadOnly: true})
	if err != nil {
		return backupResult{}, err
	}
	defer s.Close()
	source, ok := s.(interface {
		Backup(ctx context.Context, path string) (string, error)
	})
	if !ok {
		return backupResult{}, ax.WithHint(fmt.Errorf("the store %s is no file to copy", c.storeName()), "Use its database's own backup.")
	}
	to, err := source.Backup(ctx, c.path(file))
	if errors.Is(err, fs.ErrExist) {
		return backupResult{}, withCode(ExitDenied, err)
	}
	return backupResult{c.storeName(), to}, err
}

func (r backupResult) human(s *screen) {
	s.line("Copied %s to %s.", r.from, r.to)
}

func (r backupResult) json() document { return document{"store": r.from, "file": r.to} }

type gcArgs struct {
	retain time.Duration
	last   int
}

func gcCommand(c *call) *cobra.Command {
	var a gcArgs
	cmd := &cobra.Command{
		Use:   "gc",
		Short: "Delete old history now, as axd does by itself now and then",
		Long: "gc deletes the instances that ended longer than -retain ago, with their attempts and\n" +
			"life lines, and skipped stretches as old; the newest -retain-last of each task stay, and\n" +
			"whatever is open. It may run while axd works. A slot whose history is deleted is never\n" +
			"run again. Freed space is used again; the file shrinks only in a backup.",
		Args: argumentCount(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			result, err := c.gc(cmd.Context(), a)
			if err != nil {
				return err
			}
			return c.print(result)
		},
	}
	cmd.Flags().DurationVar(&a.retain, "retain", retention.DefaultAge, "how `long` after its end an instance is kept")
	cmd.Flags().IntVar(&a.last, "retain-last", retention.DefaultLast, "how `many` instances of each task are kept whatever their age")
	return cmd
}

type gcResult struct {
	beforeMs int64
	last     int
	deleted  ax.Pruned
}

// gcPause between two transactions lets axd have the writer.
const gcPause = 5 * time.Millisecond

func (c *call) gc(ctx context.Context, a gcArgs) (gcResult, error) {
	if a.retain < time.Minute || a.last < 1 {
		return gcResult{}, ax.Diagnostic{
			Severity: ax.SeverityError,
			Summary:  "That would keep nothing",
			Detail:   "-retain is at least 1m, -retain-last at least 1.",
		}
	}
	s, err := c.open(ctx, OpenOptions{})
	if err != nil {
		return gcResult{}, err
	}
	defer s.Close()
	r := gcResult{beforeMs: c.nowMs() - a.retain.Milliseconds(), last: a.last}
	q := ax.PruneQuery{EndedByMs: r.beforeMs, KeepLast: a.last, KeysByMs: c.nowMs() - ax.TriggerKeyMs}
	err = s.Prune(ctx, q, func(n ax.Pruned) error {
		r.deleted = r.deleted.Plus(n)
		return pause(ctx, gcPause)
	})
	if err == nil {
		err = s.IndexHistory(ctx, func() error { return pause(ctx, gcPause) })
	}
	if err != nil && r.deleted.Rows() > 0 {
		code := exitCode(err)
		if i := (*Interrupt)(nil); errors.As(context.Cause(ctx), &i) {
			code = i.Code
		}
		return r, withCode(code, fmt.Errorf("committed: %d instances deleted, and then: %w", r.deleted.Instances, err))
	}
	return r, err
}

func (r gcResult) human(s *screen) {
	d := r.deleted
	s.line("Deleted %s that ended before %s, with %s and %s.", plural(int(d.Instances), "instance"),
		s.at(r.beforeMs, nil), plural(int(d.Attempts), "earlier attempt"), plural(int(d.Transitions), "transition"))
	s.line("Deleted stretches of skipped slots: %d.", d.Stretches)
	if d.Keys > 0 {
		s.line("Deleted keys of triggers: %d, made over 30 days ago.", d.Keys)
	}
	s.line("The newest %d of each task are kept.", r.last)
}

func (r gcResult) json() document {
	d := r.deleted
	return document{
		"ended_before": stamp(r.beforeMs, nil), "ended_before_ms": r.beforeMs, "retain_last": r.last,
		"instances": d.Instances, "attempts": d.Attempts, "transitions": d.Transitions, "skipped_stretches": d.Stretches, "trigger_keys": d.Keys,
	}
}
