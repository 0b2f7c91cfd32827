//go:build !failpoint

package clock

import "time"

// Now returns the wall clock's time.
func Now() time.Time { return time.Now() }

// Synced reports whether the kernel says that somebody keeps its clock right.
func Synced() bool { return kernelSynced() }
