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
	// Containment says how the processes of attempts are kept together; "" when
	// an older axd told.
	Containment string
	DataProblem string // what is wrong with the data folder; "" nothing
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
	// Declared says why it runs on as it was started, although it, or its file,
	// should be another one by now. "" it runs as it should.
	Declared string
	Shadowed string // its handlers that another one has, and who; "" none
	// QuarantinedMs is since when it has been in a crash loop, 0 it is not, and
	// RetryMs when it is started again; Problem says why.
	QuarantinedMs, RetryMs int64
}
