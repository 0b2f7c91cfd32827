// Package builtin lists the handlers that come with axd. axd's own binary
// serves each as an executor process of its own: axd executor NAME.
package builtin

import (
	"fmt"

	"github.com/axctl/ax/plugins"
)

// All returns the built-in handlers, by name. One executor serves each.
func All() []plugins.Handler {
	return nil
}

// Serve is the executor process of the built-in handler called name. It
// returns an error when there is no such handler, and else never.
func Serve(name string) error {
	return fmt.Errorf("no built-in handler %q", name)
}
