// Package builtin lists the handlers that come with axd. axd's own binary
// serves each as an executor process of its own: axd executor NAME.
package builtin

import (
	"fmt"
	"strings"

	"github.com/axctl/ax/plugins"
	"github.com/axctl/ax/plugins/builtin/http"
	"github.com/axctl/ax/plugins/builtin/shell"
	"github.com/axctl/ax/plugins/sdk"
)

// All returns the built-in handlers, by name. One executor serves each.
func All() []plugins.Handler {
	return []plugins.Handler{http.New(), shell.New()}
}

// Containment says, for people, how processes of attempts are kept together by
// an executor that this process starts.
func Containment() string { return shell.Containment() }

// Serve is the executor process of the built-in handler called name. It
// returns an error when there is no such handler, and else never.
func Serve(name string) error {
	var names []string
	for _, h := range All() {
		names = append(names, h.Schema().Handler)
		if h.Schema().Handler == name {
			if o, ok := h.(interface{ Open() }); ok {
				o.Open()
			}
			sdk.Serve(name, h)
		}
	}
	return fmt.Errorf("no built-in handler %q; there are %s", name, strings.Join(names, ", "))
}
