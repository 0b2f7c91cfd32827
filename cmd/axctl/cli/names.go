package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/agext/levenshtein"

	"github.com/axctl/ax"
)

// nearest returns the names that someone who wrote got may have meant, best
// first, at most three.
func nearest(got string, names []string) []string {
	type scored struct {
		name string
		far  int
	}
	var near []scored
	want := bare(got)
	for _, name := range names {
		own := bare(name)
		far := levenshtein.Distance(want, own, nil)
		if far <= max(2, len(want)/3) || len(want) > 2 && strings.HasPrefix(own, want) {
			near = append(near, scored{name, far})
		}
	}
	slices.SortFunc(near, func(a, b scored) int {
		return cmp.Or(cmp.Compare(a.far, b.far), cmp.Compare(a.name, b.name))
	})
	var out []string
	for _, n := range near[:min(len(near), 3)] {
		out = append(out, n.name)
	}
	return out
}

// bare is a name as it is compared: in lower case, an address without its kind,
// which all addresses have in common.
func bare(name string) string {
	name = strings.ToLower(name)
	if _, own, ok := strings.Cut(name, "."); ok {
		return own
	}
	return name
}

// oneOf reads a word that must be one of a list, in any case.
func oneOf[T ~string](noun, word string, all []T) (T, error) {
	got := T(strings.ToLower(strings.TrimSpace(word)))
	if slices.Contains(all, got) {
		return got, nil
	}
	names := make([]string, len(all))
	for i, known := range all {
		names[i] = string(known)
	}
	return "", ax.Diagnostic{
		Severity: ax.SeverityError,
		Summary:  fmt.Sprintf("Unknown %s %q", noun, word),
		Detail:   suggestion(word, names, "It is one of "+words(names)+"."),
	}
}

// suggestion asks whether the nearest names were meant, or says otherwise
// where there is none.
func suggestion(got string, names []string, otherwise string) string {
	near := nearest(got, names)
	if len(near) == 0 {
		return otherwise
	}
	return "Did you mean " + strings.Join(near, " or ") + "?"
}
