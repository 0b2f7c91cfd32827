package sqlite_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/axctl/ax/store/sqlite"
	"github.com/axctl/ax/store/storetest"
)

func TestContract(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t testing.TB, now func() time.Time) storetest.Store {
		s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "ax.db"), sqlite.Options{Create: true, Now: now})
		if err != nil {
			t.Fatal(err)
		}
		s.IndexAll()
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
		return s
	})
}
