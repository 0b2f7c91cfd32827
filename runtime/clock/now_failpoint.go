//go:build failpoint

package clock

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// OffsetEnv names the variable that shifts the wall clock in test builds: a
// duration, or a file that holds one and may change at any time.
const OffsetEnv = "AX_TEST_CLOCK_OFFSET"

// Now returns the wall clock's time, shifted as OffsetEnv says.
func Now() time.Time {
	text := os.Getenv(OffsetEnv)
	if strings.Contains(text, "/") {
		b, err := os.ReadFile(text)
		if err != nil {
			panic(fmt.Sprintf("%s: %v", OffsetEnv, err))
		}
		text = strings.TrimSpace(string(b))
	}
	if text == "" {
		return time.Now()
	}
	by, err := time.ParseDuration(text)
	if err != nil {
		panic(fmt.Sprintf("%s: %v", OffsetEnv, err))
	}
	return time.Now().Add(by)
}
