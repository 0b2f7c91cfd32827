package folder

import (
	"cmp"
	"maps"
	"slices"
)

// Claimant is somebody who offers handlers.
type Claimant struct {
	Name     string
	BuiltIn  bool // axd itself
	Declared bool // a plugin block names it
}

// OwnersRule is what Owners does, for people.
const OwnersRule = "built-in ones have theirs, then plugins with a plugin block, then by name"

// Owners decides whose each handler is, of those that offer it: axd's own come
// first, then plugins that a block names, since somebody has asked for those,
// and among equals the first by name. Who came up first does not matter, so that
// axd after a restart, and axctl without one, say the same.
func Owners(claims map[Claimant][]string) map[string]Claimant {
	order := slices.SortedFunc(maps.Keys(claims), func(a, b Claimant) int {
		return cmp.Or(soFirst(a.BuiltIn, b.BuiltIn), soFirst(a.Declared, b.Declared), cmp.Compare(a.Name, b.Name))
	})
	owners := map[string]Claimant{}
	for _, c := range order {
		for _, handler := range claims[c] {
			if _, taken := owners[handler]; !taken {
				owners[handler] = c
			}
		}
	}
	return owners
}

// soFirst orders the one that is so before the one that is not.
func soFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	default:
		return 1
	}
}
