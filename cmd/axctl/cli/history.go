package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/axctl/ax"
	"github.com/axctl/ax/planner"
)

func historyCommand(c *call) *cobra.Command {
	return &cobra.Command{
		Use:               "history ADDRESS",
		ValidArgsFunction: c.completeAddress,
		Short:             "List the versions of an object: what changed, who and when",
		Args:              argumentCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			result, err := c.history(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return c.print(result)
		},
	}
}

type historyResult struct {
	task     task
	versions []ax.VersionRow // newest first
}

func (c *call) history(ctx context.Context, address string) (historyResult, error) {
	s, err := c.open(ctx, OpenOptions{ReadOnly: true})
	if err != nil {
		return historyResult{}, err
	}
	defer s.Close()
	t, err := lookUp(ctx, s, address, func(in []task) (task, error) { return find(in, address) })
	if err != nil {
		return historyResult{}, err
	}
	versions, err := s.Versions(ctx, t.ID)
	return historyResult{task: t, versions: versions}, err
}

func (r historyResult) human(s *screen) {
	s.line("%s of stack %s", clean(r.task.Address()), r.task.Stack)
	for i, v := range r.versions {
		rev := v.Revision
		s.line("")
		s.line("%s  %s  by %s on %s  serial %d", s.paint(bold, fmt.Sprintf("v%d", v.Version)),
			s.at(rev.AtMs, r.task.Zone), clean(rev.Who), clean(rev.Host), rev.Serial)
		if rev.Message != "" {
			s.line("    %s", clean(rev.Message))
		}
		if rev.GitCommit != "" {
			s.line("    commit %s%s  %s", rev.GitCommit, dirty(rev.GitDirty), clean(rev.GitRemote))
		}
		switch {
		case v.Deleted:
			s.line("    - deleted")
		case i == len(r.versions)-1 || r.versions[i+1].Deleted:
			s.line("    + created")
		default:
			// One that this program cannot read is listed without what changed.
			changes, _ := planner.Attributes(r.versions[i+1].Definition, v.Definition)
			for _, change := range changes {
				s.line("    %s", s.attribute(change, ax.ActionUpdate, 0))
			}
		}
	}
}

func dirty(d bool) string {
	if d {
		return " (with changes not committed)"
	}
	return ""
}

func (r historyResult) json() document {
	versions := make([]document, 0, len(r.versions))
	for _, v := range r.versions {
		versions = append(versions, document{
			"version": v.Version, "hash": v.Hash, "deleted": v.Deleted,
			"definition": json.RawMessage(orNull(v.Definition)), "revision": revisionJSON(v.Revision),
		})
	}
	return document{"address": r.task.Address(), "stack": r.task.Stack, "versions": versions}
}

func revisionJSON(r ax.Revision) document {
	return document{
		"serial": r.Serial, "at": stamp(r.AtMs, time.UTC), "at_ms": stampMs(r.AtMs), "who": r.Who, "host": r.Host,
		"origin": r.Origin, "message": r.Message, "git_remote": r.GitRemote, "git_commit": r.GitCommit,
		"git_dirty": r.GitDirty, "plan_hash": r.PlanHash, "config_hash": r.ConfigHash,
	}
}

func orNull(b json.RawMessage) json.RawMessage {
	if len(b) == 0 {
		return json.RawMessage("null")
	}
	return b
}
