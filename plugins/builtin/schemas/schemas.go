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
