// Package clock reads the clocks of this machine.
package clock

import (
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Elapsed returns the time since the kernel started, sleep included. Nobody can
// set it.
func Elapsed() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic("CLOCK_BOOTTIME: " + err.Error()) // there since Linux 2.6.39
	}
	return time.Duration(ts.Nano())
}

// Kernel names this start of the kernel, "" where it cannot be read.
func Kernel() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// State is what the kernel says of its wall clock.
type State struct {
	// Synced: somebody (NTP, PTP, a hypervisor's clock) keeps it right, and has
	// said so lately.
	Synced bool
	// Offset is what the clock is being slewed by; MaxError bounds how wrong it
	// is, as far as the one who keeps it knows.
	Offset, MaxError time.Duration
}

// Read asks the kernel (adjtimex). It needs no privilege; a sandbox may forbid
// it all the same.
func Read() (State, error) {
	var t unix.Timex
	status, err := unix.Adjtimex(&t)
	if err != nil {
		return State{}, err
	}
	unit := time.Microsecond
	if t.Status&unix.STA_NANO != 0 {
		unit = time.Nanosecond
	}
	return State{
		Synced: status != unix.TIME_ERROR && t.Status&unix.STA_UNSYNC == 0,
		Offset: time.Duration(t.Offset) * unit, MaxError: time.Duration(t.Maxerror) * time.Microsecond,
	}, nil
}

// kernelSynced reports whether the kernel says that somebody keeps its clock
// right.
func kernelSynced() bool {
	s, err := Read()
	return err == nil && s.Synced
}
