package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/axctl/ax"
	"github.com/axctl/ax/plugins"
)

// lockName is the file beside a configuration that keeps what its plugins offer.
const lockName = "handlers.lock.json"

// maxLockBytes bounds the file that is read.
const maxLockBytes = 16 << 20

// lockFile is handlers.lock.json: the plugins of a folder, so that a plan checks
// bodies where there are no plugins, as in CI.
type lockFile struct {
	FormatVersion string                  `json:"format_version"`
	Plugins       map[string]lockedPlugin `json:"plugins"`
}

// lockedPlugin is a plugin as it was when the file was written.
type lockedPlugin struct {
	File     string           `json:"file"` // in the plugin folder
	SHA256   string           `json:"sha256"`
	Handlers []plugins.Schema `json:"handlers"` // by name
}

// readLock reads the file; one that is not there has no plugins.
func readLock(path string) (*lockFile, error) {
	l := &lockFile{}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil
	}
	var text []byte
	if err == nil && info.Size() > maxLockBytes {
		err = fmt.Errorf("%s is too large", path)
	}
	if err == nil {
		text, err = os.ReadFile(path)
	}
	if err == nil {
		err = json.Unmarshal(text, l)
	}
	if major, _, _ := strings.Cut(l.FormatVersion, "."); err == nil && major != "1" {
		err = fmt.Errorf("it has format %q, this axctl reads %s", l.FormatVersion, formatVersion)
	}
	for name, p := range l.Plugins {
		for _, s := range p.Handlers {
			if cerr := s.Check(); err == nil && cerr != nil {
				err = fmt.Errorf("plugin %s, handler %q: %w", name, s.Handler, cerr)
			}
		}
	}
	if err != nil {
		return nil, ax.WithHint(fmt.Errorf("read %s: %w", path, err), "Write it anew: axctl handlers lock -plugins DIR")
	}
	return l, nil
}

// encode writes the file so that equal content has equal bytes, and a change is
// a small diff.
func (l *lockFile) encode() ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(l); err != nil {
		return nil, fmt.Errorf("encode %s: %w", lockName, err)
	}
	return b.Bytes(), nil
}

// equal reports whether a plan would see no difference.
func (p lockedPlugin) equal(o lockedPlugin) bool { return p.difference(o) == "" }

// difference says what o has otherwise than p, "" nothing.
func (p lockedPlugin) difference(o lockedPlugin) string {
	var parts []string
	if p.File != o.File {
		parts = append(parts, fmt.Sprintf("its file is %s, not %s", o.File, p.File))
	}
	was, is := p.hashes(), o.hashes()
	for _, name := range slices.Sorted(maps.Keys(was)) {
		switch hash, there := is[name]; {
		case !there:
			parts = append(parts, fmt.Sprintf("handler %q is gone", name))
		case hash != was[name]:
			parts = append(parts, fmt.Sprintf("handler %q has another schema", name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(is)) {
		if _, there := was[name]; !there {
			parts = append(parts, fmt.Sprintf("handler %q is new", name))
		}
	}
	if p.SHA256 != o.SHA256 {
		parts = append(parts, fmt.Sprintf("its sha256 is %s, not %s", o.SHA256, p.SHA256))
	}
	return strings.Join(parts, "; ")
}

func (p lockedPlugin) hashes() map[string]string {
	m := map[string]string{}
	for _, s := range p.Handlers {
		m[s.Handler] = s.Hash()
	}
	return m
}
