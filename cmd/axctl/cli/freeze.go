package cli

import (
	"github.com/spf13/cobra"

	"github.com/axctl/ax"
)

func freezeCommand(c *call) *cobra.Command {
	return holdCommand(c, ax.HoldFrozen, &cobra.Command{
		Use:   "freeze ADDRESS -reason=TEXT",
		Short: "Freeze a task, as freeze_after does, until someone unfreezes it, or for a time",
		Long: "freeze keeps a task from firing, as freeze_after does when it fails too often. What\n" +
			"runs goes on, and trigger and retry still work, to try what was mended. What becomes\n" +
			"of the slots that pass meanwhile is the task's misfire.on_resume (skip, unless it\n" +
			"says otherwise).",
	})
}

func unfreezeCommand(c *call) *cobra.Command {
	return endHoldCommand(c, ax.HoldFrozen, &cobra.Command{
		Use:   "unfreeze ADDRESS",
		Short: "End a freezing: the task fires again, and its failures are counted from none",
	})
}
