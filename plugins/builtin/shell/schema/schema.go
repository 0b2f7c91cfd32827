// Package schema describes the body of the shell handler, apart from its code
// so that axctl can check it without a host.
package schema

import (
	"encoding/json"

	"github.com/axctl/ax/plugins"
)

// Schema returns the schema of the shell handler.
func Schema() plugins.Schema {
	minCode, maxCode := 0.0, 255.0
	return plugins.Schema{
		Handler: "shell",
		Doc:     "Runs a command or a script in its own process group, with a clean environment.",
		Attributes: []plugins.Attribute{
			{Name: "command", Types: []plugins.Type{plugins.String, plugins.StringList}, Optional: true, Doc: "A string runs by /bin/sh -c; a list runs without a shell."},
			{Name: "script", Types: []plugins.Type{plugins.String}, Optional: true, Doc: "A program of many lines, run by interpreter."},
			{Name: "interpreter", Types: []plugins.Type{plugins.String, plugins.StringList}, Optional: true, Doc: "What runs script, with its arguments as a list; the script's path follows them. Default \"/bin/sh\"."},
			{Name: "dir", Types: []plugins.Type{plugins.String}, Optional: true, Format: plugins.AbsolutePath, Doc: "Working directory, absolute. Default: the user's home, else \"/\"."},
			{Name: "env", Types: []plugins.Type{plugins.StringMap}, Optional: true, Doc: "Environment beyond the documented one. Nothing of the daemon's is inherited."},
			{Name: "user", Types: []plugins.Type{plugins.String}, Optional: true, Doc: "User to run as; needs axd to run as root."},
			{Name: "stdin", Types: []plugins.Type{plugins.String}, Optional: true, Doc: "Text on standard input. Default: none."},
			{Name: "ok_codes", Types: []plugins.Type{plugins.NumberList}, Optional: true, Default: json.RawMessage(`[0]`), Format: plugins.Integer, Min: &minCode, Max: &maxCode, Doc: "Exit codes that mean success."},
		},
		OneOf: [][]string{{"command", "script"}},
		Needs: map[string][]string{"interpreter": {"script"}},
	}
}
