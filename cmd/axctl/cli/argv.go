package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/axctl/ax"
)

// normalise lets long flags be written with one dash, as -auto-approve: pflag
// would read that as a bundle of letters. It turns -name and -name=value into
// two dashes, and leaves alone single letters, values that follow their flag,
// and everything after "--".
func normalise(root *cobra.Command, args []string) ([]string, error) {
	takesValue, err := valueFlags(root)
	if err != nil {
		return nil, err
	}
	out := make([]string, 0, len(args))
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if arg == "--" {
			return append(out, args[i:]...), nil
		}
		if !strings.HasPrefix(arg, "-") || arg == "-" {
			out = append(out, arg)
			continue
		}
		name, _, hasValue := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if len(name) > 1 && !strings.HasPrefix(arg, "--") {
			arg = "-" + arg
		}
		out = append(out, arg)
		if takesValue[name] && !hasValue && i+1 < len(args) {
			i++
			out = append(out, args[i])
		}
	}
	return out, nil
}

// valueFlags returns the names of all flags that are followed by a value. One
// name must mean the same in every command, or a line could not be read before
// its command is known.
func valueFlags(root *cobra.Command) (map[string]bool, error) {
	takes := map[string]bool{}
	var clash error
	add := func(f *pflag.Flag) {
		value := f.NoOptDefVal == ""
		if before, seen := takes[f.Name]; seen && before != value {
			clash = fmt.Errorf("flag -%s takes a value in one command and none in another", f.Name)
		}
		takes[f.Name] = value
	}
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		cmd.PersistentFlags().VisitAll(add)
		cmd.Flags().VisitAll(add)
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(root)
	return takes, clash
}

// commandWord returns the argument that stands where the command does, "" when
// there is none.
func commandWord(root *cobra.Command, args []string) string {
	takesValue, err := valueFlags(root)
	if err != nil {
		return ""
	}
	for i := 0; i < len(args); i++ {
		if !strings.HasPrefix(args[i], "-") {
			return args[i]
		}
		name, _, hasValue := strings.Cut(strings.TrimLeft(args[i], "-"), "=")
		if takesValue[name] && !hasValue {
			i++
		}
	}
	return ""
}

// flagError tells a wrong flag as axctl writes flags, with the nearest name.
func flagError(cmd *cobra.Command, err error) error {
	d := ax.Diagnostic{
		Severity: ax.SeverityError,
		Summary:  "Wrong flag",
		Detail:   strings.ReplaceAll(err.Error(), " --", " -") + ".",
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "-"+f.Name) })
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		name := "-" + unknown.GetSpecifiedName()
		d.Summary = fmt.Sprintf("Unknown flag %s", name)
		d.Detail = suggestion(name, names, cmd.CommandPath()+" -h lists its flags.")
	}
	return d
}

// argumentCount tells how many arguments a command wants, in its own words.
func argumentCount(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) >= least && len(args) <= most {
			return nil
		}
		d := ax.Diagnostic{
			Severity: ax.SeverityError,
			Summary:  "Missing argument",
			Detail:   "Usage: " + useLine(cmd),
		}
		if len(args) > most {
			d.Summary = fmt.Sprintf("Argument %q is one too many", args[most])
		}
		return d
	}
}
