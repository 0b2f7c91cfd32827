// Package store opens stores by their address. It owns the address's form and
// the list of drivers; what a store is to do is said by the ports of the root
// package.
package store

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/axctl/ax"
	"github.com/axctl/ax/store/sqlite"
)

// Store is a store with all its ports. It is safe for concurrent use.
type Store interface {
	ax.Definitions
	ax.Operations
	ax.BackfillOperations
	ax.Fills
	ax.Claims
	ax.Dispatches
	ax.CancelIntents
	ax.Watcher
	ax.Hosts
	ax.Plugins
	ax.Retention
	ax.Upkeep
	ax.Queries
	ax.Auditor
	io.Closer
}

// Options says how to open a store.
type Options = sqlite.Options

// Open opens the store at url: "sqlite:PATH" or a bare path. Without
// o.Create a store that is not there is ErrNoStore.
func Open(ctx context.Context, url string, o Options) (Store, error) {
	scheme, rest, ok := strings.Cut(url, ":")
	if !ok || strings.ContainsAny(scheme, "/.") {
		scheme, rest = "sqlite", url
	}
	switch scheme {
	case "sqlite":
		if rest == "" {
			return nil, ax.WithHint(fmt.Errorf("store %q names no file", url), "write it like sqlite:ax.db")
		}
		return openSQLite(ctx, rest, o)
	case "postgres", "postgresql", "http", "https":
		return nil, ax.WithHint(fmt.Errorf("store %q: %s stores are not in this version", scheme+":…", scheme),
			"use a SQLite file, as in -store sqlite:ax.db")
	default:
		return nil, ax.WithHint(fmt.Errorf("store %q: unknown kind %q", url, scheme), "write it like sqlite:ax.db")
	}
}

// openSQLite keeps a nil *sqlite.Store from becoming a Store that is not nil.
func openSQLite(ctx context.Context, path string, o Options) (Store, error) {
	s, err := sqlite.Open(ctx, path, o)
	if err != nil {
		return nil, err
	}
	return s, nil
}
