package cli

import (
	"cmp"
	"slices"
	"strings"

	"github.com/agext/levenshtein"
)

// nearest returns the names that someone who wrote got may have meant, best
// first, at most three.
func nearest(got string, names []string) []string {
	type scored struct {
		name string
		far  int
	}
	var near []scored
	lower := strings.ToLower(got)
	for _, name := range names {
		far := levenshtein.Distance(lower, strings.ToLower(name), nil)
		if far <= max(2, len(got)/3) || strings.HasSuffix(name, "."+got) {
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

// suggestion asks whether the nearest names were meant, or says otherwise
// where there is none.
func suggestion(got string, names []string, otherwise string) string {
	near := nearest(got, names)
	if len(near) == 0 {
		return otherwise
	}
	return "Did you mean " + strings.Join(near, " or ") + "?"
}
