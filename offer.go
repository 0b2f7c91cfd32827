package ax

import (
	"context"
	"encoding/json"
)

// Plugins is what axd needs to run plugins: what people declare of them, and
// where it says what its host makes of that.
type Plugins interface {
	// DeclaredPlugins returns the plugins of all stacks that are not deleted, by
	// name and stack. One that this program cannot read has a zero Spec.
	DeclaredPlugins(ctx context.Context) ([]DeclaredPlugin, error)
	// Offer replaces what the store knows of what a host offers. It is
	// ErrConflict when the host has another boot, or has not joined yet.
	Offer(ctx context.Context, o HostOffer) error
}

// DeclaredPlugin is a plugin block in force.
type DeclaredPlugin struct {
	Stack   string
	Name    string
	Version int
	Spec    PluginSpec
}

// HostOffer is what a host can run, as its axd told last. It stays when axd
// stops, so that a plan knows the handlers.
type HostOffer struct {
	Host     string
	Boot     string
	AtMs     int64
	Handlers []OfferedHandler // by name
	Plugins  []HostPlugin     // by name and path
}

// OfferedHandler is a handler with the schema that a host's executor has for it.
type OfferedHandler struct {
	Name       string
	Executor   string // the plugin, or the handler itself when it is built in
	SchemaHash string
	Schema     json.RawMessage // of plugins.Schema
}

// HostPlugin is a plugin as a host sees it.
type HostPlugin struct {
	Name    string // "" is the plugin folder as a whole
	Path    string // absolute
	SHA256  string // of the file when it was last looked at; "" not known
	Problem string // why it does not run; "" it runs
	// Declared says how it has been declared otherwise since it was started; it
	// runs as it was until axd is started again. "" as it runs.
	Declared string
}
