package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/axctl/ax"
)

func completionCommand(c *call) *cobra.Command {
	shells := []string{"bash", "fish", "powershell", "zsh"}
	return &cobra.Command{
		Use:       "completion bash|fish|powershell|zsh",
		Short:     "Print a script that lets a shell complete axctl's words",
		Example:   "  source <(axctl completion bash)",
		Args:      argumentCount(1, 1),
		ValidArgs: shells,
		RunE: func(cmd *cobra.Command, args []string) error {
			root, out := cmd.Root(), c.env.Stdout
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(out, true)
			case "fish":
				return root.GenFishCompletion(out, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(out)
			case "zsh":
				return root.GenZshCompletion(out)
			default:
				return ax.Diagnostic{
					Severity: ax.SeverityError,
					Summary:  fmt.Sprintf("Unknown shell %q", args[0]),
					Detail:   suggestion(args[0], shells, "Known are bash, fish, powershell and zsh."),
				}
			}
		},
	}
}
