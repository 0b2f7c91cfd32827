package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/axctl/ax"
)

func showCommand(c *call) *cobra.Command {
	return &cobra.Command{
		Use:   "show [PLANFILE]",
		Short: "Show what is in the store, or a saved plan",
		Args:  argumentCount(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return c.showPlan(args[0])
			}
			result, err := c.showStore(cmd.Context())
			if err != nil {
				return err
			}
			return c.print(result)
		},
	}
}

// showPlan shows a saved plan as it was computed.
func (c *call) showPlan(file string) error {
	saved, err := c.readPlan(file)
	if err != nil {
		return err
	}
	return c.print(planResult{plan: saved, notes: []string{"Made " + when(saved.MadeAtMs, time.UTC) + "; shown as it was then."}})
}

type showResult struct {
	store   string
	info    ax.StoreInfo
	objects []task
}

func (c *call) showStore(ctx context.Context) (showResult, error) {
	s, err := c.open(ctx, OpenOptions{ReadOnly: true})
	if err != nil {
		return showResult{}, err
	}
	defer s.Close()
	info, err := s.Info(ctx)
	if err != nil {
		return showResult{}, err
	}
	all, err := objects(ctx, s, false)
	return showResult{store: c.storeName(), info: info, objects: all}, err
}

func (r showResult) human(s *screen) {
	s.line("Store %s (serial %d)", r.store, r.info.Serial)
	s.line("")
	if len(r.objects) == 0 {
		s.line("Nothing is defined.")
		return
	}
	var rows [][]string
	for _, t := range r.objects {
		if t.Kind != ax.KindTask {
			rows = append(rows, []string{clean(t.Address()), t.Stack, fmt.Sprintf("v%d", t.Version), "", "", "", ""})
			continue
		}
		rows = append(rows, []string{
			clean(t.Address()), t.Stack, fmt.Sprintf("v%d", t.Version), taskState(t),
			s.nextFiring(t), fmt.Sprint(t.Row.Active), fmt.Sprint(t.Row.Waiting),
		})
	}
	s.table([]string{"OBJECT", "STACK", "VERSION", "STATE", "NEXT FIRE", "RUNNING", "WAITING"}, rows)
	s.holds(r.objects)
}

// nextFiring is when a task fires next. A held one does not, whatever its row
// keeps for the end of the hold.
func (s *screen) nextFiring(t task) string {
	switch h := t.Row.Hold; {
	case h == nil || t.Row.NextMs == 0:
		return s.at(t.Row.NextMs, t.Zone)
	case h.UntilMs == 0 && h.Kind == ax.HoldFrozen:
		return "when unfrozen"
	case h.UntilMs == 0:
		return "when resumed"
	default:
		return "after " + s.at(h.UntilMs, t.Zone)
	}
}

// taskState says in one word whether a task fires.
func taskState(t task) string {
	switch {
	case t.Deleted:
		return "deleted"
	case t.Row.Hold != nil:
		return string(t.Row.Hold.Kind)
	case !t.Row.Enabled:
		return "disabled"
	default:
		return "enabled"
	}
}

// holds lists what is kept from firing.
func (s *screen) holds(all []task) {
	head := false
	for _, t := range all {
		if t.Row.Hold == nil {
			continue
		}
		if !head {
			s.line("")
			s.line("Held:")
			head = true
		}
		s.line("  %-30s %s", clean(t.Address()), s.hold(*t.Row.Hold, t.Zone))
	}
}

// hold says who holds a task, since when, until when and why.
func (s *screen) hold(h ax.Hold, zone *time.Location) string {
	until := "until someone resumes it"
	if h.Kind == ax.HoldFrozen {
		until = "until someone unfreezes it"
	}
	if h.UntilMs != 0 {
		until = "until " + s.at(h.UntilMs, zone)
	}
	return fmt.Sprintf("%s by %s since %s, %s: %s", h.Kind, clean(h.Who), s.at(h.SinceMs, zone), until, clean(h.Reason))
}

func (r showResult) json() document {
	objects := make([]document, 0, len(r.objects))
	for _, t := range r.objects {
		if t.Kind != ax.KindTask {
			objects = append(objects, document{
				"address": t.Address(), "kind": t.Kind, "stack": t.Stack, "version": t.Version, "hash": t.Hash, "definition": t.Definition,
			})
			continue
		}
		objects = append(objects, objectJSON(t))
	}
	return document{"store": r.info.URL, "store_id": r.info.ID, "serial": r.info.Serial, "objects": objects}
}

func objectJSON(t task) document {
	return document{
		"address": t.Address(), "kind": t.Kind, "stack": t.Stack, "version": t.Version, "hash": t.Hash,
		"state": taskState(t), "enabled": t.Row.Enabled, "hold": holdJSON(t.Row.Hold, t.Zone),
		"next_fire": stamp(t.Row.NextMs, t.Zone), "next_fire_ms": stampMs(t.Row.NextMs),
		"last_slot": stamp(t.Row.LastSlotMs, t.Zone), "last_slot_ms": stampMs(t.Row.LastSlotMs),
		"failure_streak": t.Row.FailureStreak, "running": t.Row.Active, "waiting": t.Row.Waiting, "definition": t.Definition,
	}
}

func holdJSON(h *ax.Hold, zone *time.Location) any {
	if h == nil {
		return nil
	}
	return document{
		"kind": h.Kind, "who": h.Who, "reason": h.Reason,
		"since": stamp(h.SinceMs, zone), "since_ms": stampMs(h.SinceMs),
		"until": stamp(h.UntilMs, zone), "until_ms": stampMs(h.UntilMs),
	}
}
