package memory_test

import (
	"testing"
	"time"

	"github.com/axctl/ax/store/memory"
	"github.com/axctl/ax/store/storetest"
)

func TestContract(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(_ testing.TB, now func() time.Time) storetest.Store { return memory.New(now) })
}
