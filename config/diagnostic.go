package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/axctl/ax"
)

// errorf reports a fault at rng, in the object that is being decoded.
func (d *decoder) errorf(rng hcl.Range, summary, format string, args ...any) {
	d.report(ax.SeverityError, rng, summary, fmt.Sprintf(format, args...))
}

func (d *decoder) warnf(rng hcl.Range, summary, format string, args ...any) {
	d.report(ax.SeverityWarning, rng, summary, fmt.Sprintf(format, args...))
}

func (d *decoder) report(severity ax.Severity, rng hcl.Range, summary, detail string) {
	diag := ax.Diagnostic{Severity: severity, Summary: summary, Detail: detail, Address: d.address}
	if rng.Filename != "" {
		r := ax.Range{Filename: rng.Filename, Start: ax.Pos(rng.Start), End: ax.Pos(rng.End)}
		diag.Range = &r
		// Its code is cut out at the end; the enclosing block is known now.
		diag.Snippet = &ax.Snippet{Context: strings.Join(d.blocks, ", ")}
	}
	d.found = append(d.found, diag)
}

// hcl reports what hcl found while it parsed or while it evaluated e, which
// is nil when it parsed.
func (d *decoder) hcl(found hcl.Diagnostics, e hclsyntax.Expression) {
	sensitive := e != nil && d.readsSensitive(e)
	for _, f := range found {
		var rng hcl.Range
		if f.Subject != nil {
			rng = *f.Subject
		}
		if extra, ok := hcl.DiagnosticExtra[hclsyntax.FunctionCallUnknownDiagExtra](f); ok {
			d.unknownFunction(rng, extra.CalledFunctionName())
			continue
		}
		severity, detail := ax.SeverityError, f.Detail
		if f.Severity == hcl.DiagWarning {
			severity = ax.SeverityWarning
		}
		if sensitive {
			detail = "The expression reads a sensitive value, so what is wrong with it is not shown."
		}
		d.report(severity, rng, f.Summary, detail)
	}
}

func place(r hcl.Range) string { return fmt.Sprintf("%s:%d", r.Filename, r.Start.Line) }

// finish makes diagnostics ready to be shown: in source order, each once, with
// snippets, and with no value of a sensitive variable in them.
func (l *loader) finish() ax.Diagnostics {
	slices.SortStableFunc(l.diagnostics, func(a, b ax.Diagnostic) int {
		return cmp.Or(cmp.Compare(filename(a), filename(b)), cmp.Compare(offset(a), offset(b)), cmp.Compare(a.Summary, b.Summary))
	})
	secrets := l.secrets()
	var out ax.Diagnostics
	for _, d := range l.diagnostics {
		if n := len(out); n > 0 && repeats(d, out[n-1]) {
			continue
		}
		if l.opts.Strict {
			d.Severity = ax.SeverityError
		}
		if d.Range != nil {
			context := ""
			if d.Snippet != nil {
				context = d.Snippet.Context
			}
			d.Snippet = nil
			if text, ok := l.texts[d.Range.Filename]; ok {
				d.Snippet = d.Range.Snippet(text, context)
			}
		}
		for _, secret := range secrets {
			d.Detail = strings.ReplaceAll(d.Detail, secret, "(sensitive)")
			d.Summary = strings.ReplaceAll(d.Summary, secret, "(sensitive)")
			if d.Snippet != nil && strings.Contains(d.Snippet.Code, secret) {
				d.Snippet = nil
			}
		}
		out = append(out, d)
	}
	return out
}

// repeats reports whether d says what last says already: the same, or the same
// fault for another key of a for_each.
func repeats(d, last ax.Diagnostic) bool {
	if d.Range == nil || last.Range == nil || *d.Range != *last.Range || d.Summary != last.Summary {
		return false
	}
	return d.Detail == last.Detail || d.Address != last.Address
}

func filename(d ax.Diagnostic) string {
	if d.Range == nil {
		return ""
	}
	return d.Range.Filename
}

func offset(d ax.Diagnostic) int {
	if d.Range == nil {
		return 0
	}
	return d.Range.Start.Byte
}

// minSecret is the shortest text that is searched for in diagnostics. Shorter
// ones stand in any text; that no message is made of a sensitive value is what
// protects them.
const minSecret = 4

// secrets returns the texts inside the values of sensitive variables.
func (l *loader) secrets() []string {
	var out []string
	for _, v := range l.vars {
		if !v.sensitive {
			continue
		}
		for _, value := range []cty.Value{v.value, v.fallback} {
			if value == cty.NilVal {
				continue
			}
			value, _ = value.UnmarkDeep()
			_ = cty.Walk(value, func(_ cty.Path, leaf cty.Value) (bool, error) {
				if leaf.Type() == cty.String && leaf.IsKnown() && !leaf.IsNull() && len(leaf.AsString()) >= minSecret {
					out = append(out, leaf.AsString())
				}
				return true, nil
			})
		}
	}
	// Longest first, so that one inside another does not leave a part.
	slices.SortFunc(out, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	return slices.Compact(out)
}
