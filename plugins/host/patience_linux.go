package host

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// How long a process of an earlier host has to answer: it is known to run, so one
// that sleeps and does not answer hangs. One that wants to run and is not let, or
// waits for a disk, is slow: it has as long as one that starts.
const (
	quietLimit = 2 * time.Second
	quietLook  = 50 * time.Millisecond
)

// look is what a process is seen to do.
type look int

const (
	lookSleeps  look = iota
	lookWorks        // a thread of it runs, wants to, or waits for a disk
	lookStopped      // a signal has stopped it
)

// watchQuiet calls giveUp when the process that see looks at has slept, or was
// stopped, most of the time for quietLimit. It counts looks: what the process
// said while this one was stopped has yet to be read.
func watchQuiet(ctx context.Context, see func() look, giveUp func(why error)) {
	const enough = int(quietLimit / quietLook)
	ticker := time.NewTicker(quietLook)
	defer ticker.Stop()
	for works, seen := 0, 1; ; seen++ {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		last := see()
		if last == lookWorks {
			works++
		}
		switch {
		case seen < enough:
		case works > enough/2:
			works, seen = 0, 0
		case last == lookStopped:
			giveUp(fmt.Errorf("a signal has stopped it, and it was not continued within %s", quietLimit))
			return
		default:
			giveUp(fmt.Errorf("it sleeps, and has said nothing within %s", quietLimit))
			return
		}
	}
}

// lookAt looks at the threads of a process.
func lookAt(pid int) look {
	threads, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/stat")
	seen := lookSleeps
	for _, path := range threads {
		b, err := os.ReadFile(path)
		state := bytes.TrimSpace(b[bytes.LastIndexByte(b, ')')+1:])
		if err != nil || len(state) == 0 {
			continue
		}
		switch state[0] {
		case 'R', 'D':
			return lookWorks
		case 'T', 't':
			seen = lookStopped
		}
	}
	return seen
}
