//go:build failpoint

package failpoint

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
)

// plan is what AX_FAILPOINT says: the process's, as its environment is.
var plan = sync.OnceValue(func() *orders {
	text := os.Getenv(Env)
	if text == "" {
		return &orders{}
	}
	text, action, _ := strings.Cut(text, ",")
	name, number, counted := strings.Cut(text, "=")
	o := &orders{point: Point(name), signal: syscall.SIGKILL}
	o.left.Store(1)
	if counted {
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil || n < 1 {
			panic(fmt.Sprintf("%s=%s: the number of a hit is 1 or more", Env, text))
		}
		o.left.Store(n)
	}
	switch action {
	case "":
	case "stop":
		o.signal = syscall.SIGSTOP
	default:
		panic(fmt.Sprintf("%s: unknown action %q", Env, action))
	}
	if !slices.Contains(Points(), o.point) {
		panic(fmt.Sprintf("%s: there is no point %q", Env, o.point))
	}
	return o
})

type orders struct {
	point  Point
	signal syscall.Signal
	left   atomic.Int64 // hits until it is done
}

// Hit kills or stops this process if AX_FAILPOINT says so of this hit of p.
func Hit(p Point) {
	o := plan()
	if p != o.point || o.left.Add(-1) != 0 {
		return
	}
	fmt.Fprintf(os.Stderr, "failpoint %s: %v\n", p, o.signal)
	if err := syscall.Kill(os.Getpid(), o.signal); err != nil {
		panic(err)
	}
	if o.signal == syscall.SIGKILL {
		select {} // nothing more is done until it comes
	}
}
