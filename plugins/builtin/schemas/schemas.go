// Package schemas lists the schemas of the built-in handlers, for those that
// check bodies and run nothing.
package schemas

import (
	"github.com/axctl/ax/plugins"
	http "github.com/axctl/ax/plugins/builtin/http/schema"
	shell "github.com/axctl/ax/plugins/builtin/shell/schema"
)

// All returns the schemas of all built-in handlers, by name.
func All() []plugins.Schema {
	return []plugins.Schema{http.Schema(), shell.Schema()}
}

// Find returns the schema of a built-in handler; false when there is none.
func Find(handler string) (plugins.Schema, bool) {
	for _, s := range All() {
		if s.Handler == handler {
			return s, true
		}
	}
	return plugins.Schema{}, false
}

// Names returns the names of the built-in handlers, sorted.
func Names() []string {
	var names []string
	for _, s := range All() {
		names = append(names, s.Handler)
	}
	return names
}
