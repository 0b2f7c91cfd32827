package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/axctl/ax"
	"github.com/axctl/ax/config"
)

// sourceArgs are the flags of every command that reads a configuration.
type sourceArgs struct {
	path     string
	vars     []string
	varFiles []string
	plugins  string
	strict   bool
}

func (a *sourceArgs) register(flags *pflag.FlagSet) {
	flags.StringArrayVar(&a.vars, "var", nil, "`NAME=VALUE` of a variable; may be repeated")
	flags.StringArrayVar(&a.varFiles, "var-file", nil, "`FILE` with values of variables; may be repeated")
	flags.StringVar(&a.plugins, "plugins", "", "check handler bodies with the plugins of the folder `DIR`, which are asked")
}

func (a *sourceArgs) registerStrict(flags *pflag.FlagSet) {
	flags.BoolVar(&a.strict, "strict", false, "warnings are errors")
}

// configuration is the folder or file that the arguments name.
func (c *call) configuration(a sourceArgs) string {
	if a.path == "" {
		return c.dir
	}
	return c.path(a.path)
}

func (c *call) pluginDir(a sourceArgs) string {
	if a.plugins == "" {
		return ""
	}
	return c.path(a.plugins)
}

// options are the arguments as config takes them.
func (c *call) options(a sourceArgs) (config.Options, error) {
	options := config.Options{Vars: map[string]string{}, Env: c.env.Environ, Strict: a.strict}
	for _, text := range a.vars {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return options, ax.Diagnostic{
				Severity: ax.SeverityError,
				Summary:  fmt.Sprintf("-var %q has no value", text),
				Detail:   "Write it as -var name=value.",
			}
		}
		options.Vars[name] = value
	}
	for _, file := range a.varFiles {
		options.VarFiles = append(options.VarFiles, c.path(file))
	}
	return options, nil
}

// load reads the configuration that the arguments name. Its diagnostics are an
// error when one of them is, else warnings. ask reads what hosts offer, nil
// where no store is to be asked. What was used to check bodies comes with it.
func (c *call) load(ctx context.Context, a sourceArgs, ask func() []ax.HostOffer) (*ax.Configuration, *catalog, ax.Diagnostics, error) {
	options, err := c.options(a)
	if err != nil {
		return nil, nil, nil, err
	}
	path := c.configuration(a)
	k, err := c.newCatalog(folderOf(path), c.pluginDir(a), ask)
	if err != nil {
		return nil, nil, nil, err
	}
	options.Schemas = k.find
	options.Declared = func(plugins []ax.Definition) ([]string, ax.Diagnostics) { return k.declared(ctx, plugins) }
	conf, found := config.Load(path, options)
	if !found.HasErrors() {
		found = append(found, k.compare(conf)...)
	}
	for i := range found {
		if a.strict {
			found[i].Severity = ax.SeverityError
		}
	}
	if found.HasErrors() {
		return nil, nil, nil, faults(found)
	}
	return conf, k, found, nil
}

func validateCommand(c *call) *cobra.Command {
	var a sourceArgs
	cmd := &cobra.Command{
		Use:   "validate [PATH]",
		Short: "Check a configuration without a store: all faults at once",
		Args:  argumentCount(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				a.path = args[0]
			}
			return c.validate(cmd.Context(), a)
		},
	}
	a.register(cmd.Flags())
	a.registerStrict(cmd.Flags())
	return cmd
}

func (c *call) validate(ctx context.Context, a sourceArgs) error {
	conf, _, found, err := c.load(ctx, a, nil)
	if all := faults(nil); errors.As(err, &all) && c.globals.json {
		if err := c.print(validateResult{found: ax.Diagnostics(all)}); err != nil {
			return err
		}
		return exit(ExitError)
	}
	if err != nil {
		return err
	}
	c.warn(found)
	return c.print(validateResult{found: found, objects: definedCounts(conf.Definitions)})
}

// definedCounts says how many of each kind there are.
func definedCounts(defs []ax.Definition) string {
	n := 0
	for _, d := range defs {
		if d.Kind == ax.KindTask {
			n++
		}
	}
	text := plural(n, "task")
	if n < len(defs) {
		text += " and " + plural(len(defs)-n, "plugin")
	}
	return text
}

type validateResult struct {
	found   ax.Diagnostics
	objects string
}

// counts returns how many errors and warnings there are.
func (r validateResult) counts() (errs, warnings int) {
	for _, d := range r.found {
		if d.Severity == ax.SeverityError {
			errs++
		} else {
			warnings++
		}
	}
	return errs, warnings
}

func (r validateResult) human(s *screen) {
	_, warnings := r.counts()
	if warnings > 0 {
		s.line("The configuration is valid: %s, with %s.", r.objects, plural(warnings, "warning"))
		return
	}
	s.line("The configuration is valid: %s.", r.objects)
}

// json has the keys of Terraform's validate, so that tools which read that can
// read this.
func (r validateResult) json() document {
	errs, warnings := r.counts()
	return document{
		"valid": errs == 0, "error_count": errs, "warning_count": warnings, "diagnostics": list(r.found),
	}
}

// plural writes a number with its noun.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
