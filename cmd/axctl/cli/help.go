package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// usage writes a command's help, with flags as axctl writes them, and all
// commands in the order of the registry.
func (c *call) usage(s *screen, cmd *cobra.Command) {
	about := cmd.Long
	if about == "" {
		about = cmd.Short + "."
	}
	s.line("%s", about)
	s.line("")
	s.line("Usage: %s", useLine(cmd))
	if !cmd.HasParent() {
		s.line("")
		s.line("Commands (axctl COMMAND -h says more):")
		for _, build := range commands() {
			sub := build(c)
			s.line("  %-12s %s", sub.Name(), sub.Short)
		}
	}
	if cmd.HasParent() && cmd.HasAvailableSubCommands() {
		s.line("")
		s.line("Commands (%s COMMAND -h says more):", cmd.CommandPath())
		for _, sub := range cmd.Commands() {
			s.line("  %-12s %s", sub.Name(), sub.Short)
		}
	}
	flags(s, "Flags:", cmd.LocalNonPersistentFlags())
	global := cmd.InheritedFlags()
	if !cmd.HasParent() {
		global = cmd.PersistentFlags()
	}
	flags(s, "Flags of all commands:", global)
	if cmd.Example != "" {
		s.line("")
		s.line("Examples:")
		s.line("%s", cmd.Example)
	}
}

// useLine is how a command is written.
func useLine(cmd *cobra.Command) string {
	if !cmd.HasParent() {
		return "axctl [flags] COMMAND [arguments]"
	}
	return cmd.CommandPath() + strings.TrimPrefix(cmd.Use, cmd.Name())
}

func flags(s *screen, title string, set *pflag.FlagSet) {
	set.VisitAll(func(f *pflag.Flag) {
		if f.Name == "help" || f.Hidden {
			return
		}
		if title != "" {
			s.line("")
			s.line("%s", title)
			title = ""
		}
		name := "-" + f.Name
		if f.Shorthand != "" && f.Shorthand != f.Name {
			name = "-" + f.Shorthand + ", " + name
		}
		value, text := pflag.UnquoteUsage(f)
		if value != "" {
			name += "=" + value
		}
		if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "0" && f.DefValue != "[]" {
			text += fmt.Sprintf(" (default %s)", f.DefValue)
		}
		s.line("  %-22s %s", name, text)
	})
}

// helpCommand is axctl help COMMAND, the same as axctl COMMAND -h.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "help [COMMAND]",
		Short:  "Explain a command",
		Hidden: true,
		Args:   argumentCount(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			found, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return unknownCommand(cmd.Root(), args[0])
			}
			return found.Help()
		},
	}
}
