package config

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"golang.org/x/sync/errgroup"

	"github.com/axctl/ax"
	"github.com/axctl/ax/plugins"
)

// Options are what a configuration does not say itself. Values of variables
// beat one another in this order: Vars, VarFiles (later ones first), files
// *.auto.axvars of the folder (later names first), Env, the default.
type Options struct {
	// Vars are values of variables by name. The text is the value itself for
	// variables of a primitive type and an HCL expression for others.
	Vars     map[string]string
	VarFiles []string
	// Env is an environment as os.Environ gives it; AX_VAR_name is read.
	Env []string
	// Schemas returns the schema of a handler. nil knows none.
	Schemas func(handler string) (plugins.Schema, bool)
	// HandlerNames are the names Schemas knows, for suggestions.
	HandlerNames []string
	// Declared is told of the plugin blocks before Schemas is asked for anything.
	// It returns names that Schemas knows besides HandlerNames, and what is to be
	// said about the plugins. nil: nobody.
	Declared func(plugins []ax.Definition) (handlers []string, found ax.Diagnostics)
	// Strict makes warnings errors.
	Strict bool
}

// workers is how many files are parsed and decoded at once.
const workers = 2

// loader holds one load. While decoders work side by side they only read it.
type loader struct {
	opts     Options
	folder   string // that file functions read in
	isFolder bool   // a folder is loaded, not one file of it
	sources  []*source
	texts    map[string][]byte // by file name, to cut snippets from
	// incomplete says that a file with declarations did not parse, so a name
	// that is not declared may be in the part that was not read.
	incomplete bool

	stack       string
	stackAt     *hcl.Range
	vars        map[string]*variable
	locals      map[string]*local
	defaultsAt  *hcl.Range
	base        draft       // built-in defaults under the defaults block
	classes     []classSeen // of the configuration
	context     *hcl.EvalContext
	diagnostics ax.Diagnostics
}

// Load reads one folder's *.hcl files (or one file), evaluates and checks
// everything, and reports all faults at once, in the order of the files, with
// snippets. The Configuration is nil when one of them is an error. The same
// text gives the same Hash whatever its line ends are and whatever its files
// are called.
func Load(path string, o Options) (*ax.Configuration, ax.Diagnostics) {
	l := newLoader(o)
	var c *ax.Configuration
	if l.open(path) {
		c = l.decode(path)
	}
	found := l.finish()
	if found.HasErrors() {
		return nil, found
	}
	return c, found
}

func newLoader(o Options) *loader {
	return &loader{opts: o, stack: defaultStack, vars: map[string]*variable{}, locals: map[string]*local{}, texts: map[string][]byte{}}
}

// decode takes the sources through all steps.
func (l *loader) decode(path string) *ax.Configuration {
	l.parseDeclarations()
	shared := l.declare()
	if l.opts.Declared != nil {
		names, found := l.opts.Declared(shared.definitions)
		l.opts.HandlerNames = slices.Concat(l.opts.HandlerNames, names)
		l.diagnostics = append(l.diagnostics, found...)
	}
	decoders := l.each(func(s *source) *decoder {
		d := l.decoder()
		if !s.declares {
			s.parse(d)
		}
		d.file(s)
		s.body = nil
		return d
	})
	return l.join(path, append([]*decoder{shared}, decoders...))
}

// parseDeclarations parses the files that may hold more than tasks.
func (l *loader) parseDeclarations() {
	l.each(func(s *source) *decoder {
		d := l.decoder()
		if s.declares {
			s.parse(d)
		}
		return d
	})
}

// each runs work for every source on a few workers, and collects what the
// decoders found in the order of the sources.
func (l *loader) each(work func(*source) *decoder) []*decoder {
	done := make([]*decoder, len(l.sources))
	var group errgroup.Group
	group.SetLimit(workers)
	for i, s := range l.sources {
		group.Go(func() error {
			done[i] = work(s)
			return nil
		})
	}
	_ = group.Wait() // the work has no error: it reports
	for i, d := range done {
		l.diagnostics = append(l.diagnostics, d.found...)
		l.incomplete = l.incomplete || l.sources[i].declares && l.sources[i].brokenAt >= 0
	}
	return done
}

func (l *loader) decoder() *decoder { return &decoder{loader: l, context: l.context} }

// declare reads what all tasks share, and gives it values.
func (l *loader) declare() *decoder {
	d := l.decoder()
	var defaults *hclsyntax.Block
	var classes []*hclsyntax.Block
	var plugins []*hclsyntax.Block
	for _, s := range l.sources {
		for _, b := range s.blocks() {
			switch b.Type {
			case "ax":
				d.settings(b)
			case "variable":
				d.variable(b)
			case "locals":
				d.localsBlock(b)
			case "defaults":
				defaults = d.only(b, &l.defaultsAt, defaults)
			case "error_class":
				classes = append(classes, b)
			case "plugin":
				plugins = append(plugins, b)
			}
		}
	}
	l.context = &hcl.EvalContext{Functions: functions(l.folder)}
	d.assignVariables()
	d.context = l.context
	d.evaluateLocals()
	l.base = builtIn()
	if defaults != nil {
		d.defaults(defaults)
	}
	l.classes = d.errorClasses(classes)
	for _, b := range plugins {
		d.plugin(b)
	}
	l.diagnostics = append(l.diagnostics, d.found...)
	return d
}

// join puts together what the files define.
func (l *loader) join(path string, decoders []*decoder) *ax.Configuration {
	c := &ax.Configuration{Stack: l.stack, Origin: path}
	if abs, err := filepath.Abs(path); err == nil {
		c.Origin = abs
	}
	d := l.decoder()
	first := map[string]hcl.Range{}
	for _, part := range decoders {
		for _, s := range part.seen {
			if at, ok := first[s.address]; ok {
				d.address = s.address
				kind, name, _ := strings.Cut(s.address, ".")
				d.errorf(s.header, "Duplicate "+kind, "A %s named %q is defined already, at %s. Names are unique in a configuration.", kind, name, place(at))
				continue
			}
			first[s.address] = s.header
		}
		c.Definitions = append(c.Definitions, part.definitions...)
	}
	l.diagnostics = append(l.diagnostics, d.found...)
	slices.SortFunc(c.Definitions, func(a, b ax.Definition) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name)) })
	c.Hash = hash(c)
	return c
}

func hash(c *ax.Configuration) string {
	sum := sha256.New()
	fmt.Fprintf(sum, "stack %q\n", c.Stack)
	for _, def := range c.Definitions {
		_, content := def.Canonical()
		fmt.Fprintf(sum, "%q %s\n", def.Address(), content)
	}
	return hex.EncodeToString(sum.Sum(nil))
}
