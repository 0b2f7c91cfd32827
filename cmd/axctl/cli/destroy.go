package cli

import (
	"github.com/spf13/cobra"

	"github.com/axctl/ax/planner"
)

func destroyCommand(c *call) *cobra.Command {
	a := applyArgs{planArgs: planArgs{destroy: true, next: planner.DefaultNext}}
	cmd := &cobra.Command{
		Use:   "destroy [PATH]",
		Short: "Delete everything of the configuration's stack",
		Long: "destroy deletes every object of the stack that the configuration names. What waits is\n" +
			"skipped, what runs finishes, and history stays readable.",
		Args: argumentCount(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				a.path = args[0]
			}
			return c.apply(cmd.Context(), a)
		},
	}
	a.registerApply(cmd)
	return cmd
}
