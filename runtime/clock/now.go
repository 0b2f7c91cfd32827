//go:build !failpoint

package clock

import "time"

// Now returns the wall clock's time.
func Now() time.Time { return time.Now() }
