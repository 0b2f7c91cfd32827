package store_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/axctl/ax"
	"github.com/axctl/ax/store"
)

func TestOpen(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ax.db")
	var id string
	for _, url := range []string{path, "sqlite:" + path} {
		s, err := store.Open(t.Context(), url, store.Options{Create: true})
		if err != nil {
			t.Fatal(err)
		}
		info, err := s.Info(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if info.URL != "sqlite:"+path || id != "" && info.ID != id {
			t.Errorf("%s is %+v", url, info)
		}
		id = info.ID
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"postgres://ann:secret@db/ax": "not in this version",
		"https://host:7420":           "not in this version",
		"mysql:ax":                    `unknown kind "mysql"`,
		"sqlite:":                     "names no file",
		"./missing.db":                "no store at /",
	}
	for url, want := range tests {
		s, err := store.Open(t.Context(), url, store.Options{})
		var hint *ax.HintError
		if s != nil || err == nil || !strings.Contains(err.Error(), want) || !errors.As(err, &hint) {
			t.Errorf("%s: %v, %v, want an error that says %q and what to do", url, s, err, want)
			continue
		}
		if strings.Contains(err.Error()+hint.Hint, "secret") {
			t.Errorf("%s: the error tells the password", url)
		}
	}
}
