// Package cli is axctl: its commands, from arguments to exit code. One file is
// one command, and each has the same three parts: its arguments (a cobra
// command), its act (a function from arguments to a result), and its view (two
// methods of the result: human, for people, and json, the contract with
// scripts). The package owns no state and opens nothing by itself; all it needs
// from outside comes in an Env, so that scripts run it whole, in process.
//
// Results go to stdout, diagnostics to stderr; with -json everything goes to
// stdout as one document.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/axctl/ax"
	"github.com/axctl/ax/runtime/clock"
)

// Env is everything a call of axctl is given from outside.
type Env struct {
	Args    []string // without the program's own name
	Dir     string   // the current folder, absolute
	Environ []string // as os.Environ has it
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
	// Terminals says which of the three streams are terminals.
	Terminals Terminals
	User      string // who revisions, holds and cancels are written for
	Host      string
	Version   string
	Now       func() time.Time
	// Clock reads the clocks of this machine, and Kernel what its kernel says of
	// the wall clock; nil: not asked.
	Clock  func() ax.ClockMark
	Kernel func() (clock.State, error)
	// Open opens the store at a URL. It returns ax.ErrNoStore when there is
	// none and o.Create is false.
	Open func(ctx context.Context, url string, o OpenOptions) (Store, error)
}

// Terminals says which streams are terminals.
type Terminals struct{ Stdin, Stdout, Stderr bool }

// OpenOptions says how a store is to be opened.
type OpenOptions struct {
	Create   bool // make it if there is none
	ReadOnly bool
}

// WriterPatience is how long a write waits for a store's writer before the
// command ends with ExitBusy.
const WriterPatience = 10 * time.Second

// Store is what the commands need of a store.
type Store interface {
	ax.Definitions
	ax.Operations
	ax.BackfillOperations
	ax.Queries
	ax.Auditor
	ax.Retention
	ax.Upkeep
	Close() error
}

// Interrupt is the cause (context.Cause) with which the program's context is
// cancelled when a signal asks it to end.
type Interrupt struct {
	Signal string
	Code   int // exit code: ExitInterrupted or ExitTerminated
}

func (i *Interrupt) Error() string { return i.Signal }

// Main runs one call and returns its exit code. It starts nothing that
// outlives it, but for a read of stdin that a signal interrupted.
func Main(ctx context.Context, env Env) (exitCode int) {
	c := newCall(env)
	root := c.root()
	args, err := normalise(root, env.Args)
	if err == nil {
		root.SetArgs(args)
		err = root.ExecuteContext(ctx)
	}
	if i := (*Interrupt)(nil); err != nil && errors.As(context.Cause(ctx), &i) {
		err = interrupted(err, i)
	}
	return c.end(err)
}

// root builds the tree of commands.
func (c *call) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "axctl",
		Short: "Declare tasks, plan what changes, apply it, and see what ran",
		Long: "axctl plans and applies declared tasks, and shows what ran.\n" +
			"axd is the daemon that runs them.\n\n" +
			"Exit codes: 0 done; 1 error; 2 there are changes (-detailed-exitcode), or fmt cannot\n" +
			"parse; 3 findings (fmt -check, doctor, handlers lock -check); 4 denied by a guard; 5 the\n" +
			"plan is stale or from another store; 6 the store's writer was not to be had; 7 declined,\n" +
			"or nobody to ask; 8 -wait: no success; 130, 143 interrupted: nothing was changed unless\n" +
			"it says \"committed\".",
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       c.env.Version,
		Args:          cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(cmd, args[0])
			}
			return cmd.Help()
		},
		PersistentPreRunE: func(*cobra.Command, []string) error { return c.begin() },
	}
	root.SetOut(c.env.Stdout)
	root.SetErr(c.env.Stderr)
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetVersionTemplate("axctl {{.Version}}\n")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if word := commandWord(root, c.env.Args); !cmd.HasParent() && word != "" {
			return unknownCommand(root, word) // whose flags they are is not known then
		}
		return flagError(cmd, err)
	})
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		s := c.screen(c.env.Stdout, c.env.Terminals.Stdout)
		c.usage(s, cmd)
		_ = s.flush()
	})
	root.SetHelpCommand(helpCommand())
	c.globals.register(root.PersistentFlags())
	for _, build := range commands() {
		root.AddCommand(build(c))
	}
	return root
}

// commands lists every command. A new one is its file and its line here.
func commands() []func(*call) *cobra.Command {
	return []func(*call) *cobra.Command{
		fmtCommand,
		validateCommand,
		planCommand,
		applyCommand,
		destroyCommand,
		showCommand,
		nextCommand,
		historyCommand,
		whyCommand,
		triggerCommand,
		retryCommand,
		markCommand,
		backfillCommand,
		backfillsCommand,
		instancesCommand,
		instanceCommand,
		logsCommand,
		cancelCommand,
		signalCommand,
		pauseCommand,
		resumeCommand,
		freezeCommand,
		unfreezeCommand,
		statusCommand,
		doctorCommand,
		handlersCommand,
		storeCommand,
		versionCommand,
		completionCommand,
	}
}

// unknownCommand tells the nearest command.
func unknownCommand(parent *cobra.Command, name string) error {
	var names []string
	for _, cmd := range parent.Commands() {
		if cmd.IsAvailableCommand() {
			names = append(names, cmd.Name())
		}
	}
	return ax.Diagnostic{
		Severity: ax.SeverityError,
		Summary:  fmt.Sprintf("Unknown command %q", name),
		Detail:   suggestion(name, names, parent.CommandPath()+" -h lists the commands."),
	}
}
