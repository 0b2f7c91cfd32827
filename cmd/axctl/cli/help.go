package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// usage writes a command's help, with flags as axctl writes them: one dash.
func usage(s *screen, cmd *cobra.Command) {
	about := cmd.Long
	if about == "" {
		about = cmd.Short + "."
	}
	s.line("%s", about)
	s.line("")
	s.line("Usage: %s", useLine(cmd))
	if subs := cmd.Commands(); len(subs) > 0 {
		s.line("")
		s.line("Commands:")
		for _, sub := range subs {
			if sub.IsAvailableCommand() {
				s.line("  %-12s %s", sub.Name(), sub.Short)
			}
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
	if !set.HasAvailableFlags() {
		return
	}
	s.line("")
	s.line("%s", title)
	set.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		name := "-" + f.Name
		if f.NoOptDefVal == "" {
			name += "=" + strings.ToUpper(f.Value.Type())
		}
		text := f.Usage
		if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "0" && f.DefValue != "[]" {
			text += fmt.Sprintf(" (default %s)", f.DefValue)
		}
		s.line("  %-22s %s", name, text)
	})
}
