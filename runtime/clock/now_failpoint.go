//go:build failpoint

package clock

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// OffsetEnv names the variable that shifts the wall clock in test builds: a
// duration, or a file that holds one and may change at any time. The word synced
// after the duration says that a time server keeps the clock so.
const OffsetEnv = "AX_TEST_CLOCK_OFFSET"

// Now returns the wall clock's time, shifted as OffsetEnv says.
func Now() time.Time {
	f := shift()
	if len(f) == 0 {
		return time.Now()
	}
	by, err := time.ParseDuration(f[0])
	if err != nil {
		panic(fmt.Sprintf("%s: %v", OffsetEnv, err))
	}
	return time.Now().Add(by)
}

// Synced reports whether OffsetEnv says that somebody keeps the clock as it is,
// or, where it says nothing, the kernel of its own.
func Synced() bool {
	if f := shift(); len(f) > 0 {
		return slices.Contains(f[1:], "synced")
	}
	return kernelSynced()
}

// shift returns the words of OffsetEnv.
func shift() []string {
	text := os.Getenv(OffsetEnv)
	if strings.Contains(text, "/") {
		b, err := os.ReadFile(text)
		if err != nil {
			panic(fmt.Sprintf("%s: %v", OffsetEnv, err))
		}
		text = string(b)
	}
	return strings.Fields(text)
}
