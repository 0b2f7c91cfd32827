package config

import (
	"encoding/hex"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/axctl/ax"
)

// pluginFile is what the file of every plugin is called, before its name.
const pluginFile = "ax-handler-"

// Plugins reads only what a configuration says of its plugins. Faults of its
// tasks are no part of the answer.
func Plugins(path string, o Options) ([]ax.Definition, ax.Diagnostics) {
	l := newLoader(o)
	if !l.open(path) {
		return nil, l.finish()
	}
	l.parseDeclarations()
	d := l.declare()
	return d.definitions, l.finish()
}

// plugin decodes a plugin block.
func (d *decoder) plugin(b *hclsyntax.Block) {
	if !d.labelled(b, "name") || !d.named(b) {
		return
	}
	before := len(d.found)
	name := cty.NormalizeString(b.Labels[0])
	d.address = ax.Address(ax.KindPlugin, name)
	d.seen = append(d.seen, seen{d.address, b.DefRange()})
	spec := ax.PluginSpec{Path: pluginFile + name}
	d.within(b, func() {
		r := d.read(b.Body, pluginWords)
		r.pluginPath(&spec.Path)
		r.sha256(&spec.SHA256)
		r.text("version", &spec.Version)
		r.pluginEnv(&spec.Env)
	})
	if !d.found[before:].HasErrors() {
		d.definitions = append(d.definitions, ax.Definition{
			Kind: ax.KindPlugin, Name: name, Plugin: &spec, Source: sourceOf(b),
		})
	}
	d.address = ""
}

// pluginPath reads a path that stays inside the plugin folder.
func (r reader) pluginPath(into *string) {
	path := *into
	r.text("path", &path)
	if path == *into {
		return
	}
	if clean := filepath.Clean(path); !filepath.IsLocal(path) || clean == "." || strings.ContainsRune(path, 0) {
		r.errorf(r.body.Attributes["path"].Expr.Range(), "Invalid path", "%q is no file inside axd's plugin folder: the path is relative to that folder and does not leave it.", path)
	} else {
		*into = clean
	}
}

func (r reader) sha256(into *string) {
	text := ""
	r.text("sha256", &text)
	if text == "" {
		return
	}
	if sum, err := hex.DecodeString(text); err != nil || len(sum) != 32 {
		r.errorf(r.body.Attributes["sha256"].Expr.Range(), "Invalid value", `%q is no SHA-256: it has 64 hexadecimal digits, as sha256sum prints them.`, text)
		return
	}
	*into = strings.ToLower(text)
}

// pluginEnv reads names of environment variables; their order means nothing.
func (r reader) pluginEnv(into *[]string) {
	names, ok := r.list("env", false)
	if !ok {
		return
	}
	for _, name := range names {
		switch at := r.body.Attributes["env"].Expr.Range(); {
		case !envName(name):
			r.errorf(at, "Invalid value", "%q is no name of an environment variable. Values are not written here: axd passes on what its own environment has.", name)
		case strings.HasPrefix(name, "AX_") || strings.HasPrefix(name, "PLUGIN_"):
			r.errorf(at, "Invalid value", "%q is a name that axd itself uses towards plugins; it cannot be passed through.", name)
		}
	}
	slices.Sort(names)
	if names = slices.Compact(names); len(names) > 0 {
		*into = names
	}
}

// envName reports a name that every system takes for a variable's.
func envName(name string) bool {
	for i, b := range []byte(name) {
		letter := b == '_' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z'
		if !letter && (i == 0 || b < '0' || b > '9') {
			return false
		}
	}
	return name != ""
}
