package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/axctl/ax"
	"github.com/axctl/ax/config"
	"github.com/axctl/ax/plugins/builtin/schemas"
)

// sourceArgs are the flags of every command that reads a configuration.
type sourceArgs struct {
	path     string
	vars     []string
	varFiles []string
	strict   bool
}

func (a *sourceArgs) register(flags *pflag.FlagSet) {
	flags.StringArrayVar(&a.vars, "var", nil, "`NAME=VALUE` of a variable; may be repeated")
	flags.StringArrayVar(&a.varFiles, "var-file", nil, "`FILE` with values of variables; may be repeated")
}

// load reads the configuration that the arguments name. Its diagnostics are an
// error when one of them is, else warnings.
func (c *call) load(a sourceArgs) (*ax.Configuration, ax.Diagnostics, error) {
	options := config.Options{
		Vars: map[string]string{}, Env: c.env.Environ, Strict: a.strict,
		Schemas: schemas.Find, HandlerNames: schemas.Names(),
	}
	for _, text := range a.vars {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return nil, nil, ax.Diagnostic{
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
	path := c.dir
	if a.path != "" {
		path = c.path(a.path)
	}
	conf, found := config.Load(path, options)
	if found.HasErrors() {
		return nil, nil, faults(found)
	}
	return conf, found, nil
}

func validateCommand(c *call) *cobra.Command {
	var a sourceArgs
	cmd := &cobra.Command{
		Use:   "validate [PATH]",
		Short: "Check a configuration without a store: all faults at once",
		Args:  argumentCount(0, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 {
				a.path = args[0]
			}
			return c.validate(a)
		},
	}
	a.register(cmd.Flags())
	cmd.Flags().BoolVar(&a.strict, "strict", false, "warnings are errors")
	return cmd
}

func (c *call) validate(a sourceArgs) error {
	conf, found, err := c.load(a)
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
	return c.print(validateResult{found: found, tasks: len(conf.Definitions)})
}

type validateResult struct {
	found ax.Diagnostics
	tasks int
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
		s.line("The configuration is valid: %s, with %s.", plural(r.tasks, "task"), plural(warnings, "warning"))
		return
	}
	s.line("The configuration is valid: %s.", plural(r.tasks, "task"))
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
