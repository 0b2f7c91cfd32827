package builtin_test

import (
	"fmt"
	"os/exec"
	"sync"
	"testing"

	"github.com/axctl/ax"
)

// burst is how many processes are to be started in one instant.
const burst = 100

// BenchmarkShellBurst runs a hundred shell tasks that are due at once, from
// the host to their ends; BenchmarkBareBurst is what the machine needs for the
// same processes alone. Their ratio is the handler's cost.
func BenchmarkShellBurst(b *testing.B) {
	h := running(b, nil)
	n := 0
	for b.Loop() {
		jobs := make([]ax.Job, burst)
		for i := range jobs {
			n++
			jobs[i] = job(fmt.Sprintf("i-%d-1", n), "shell", map[string]any{"command": "true"})
		}
		h.Dispatch(jobs)
		for done := 0; done < burst; {
			for _, r := range <-h.Reports() {
				if r.Kind == ax.ReportEnded {
					done++
					h.Acknowledge([]string{r.BatchNo})
				}
			}
		}
	}
}

func BenchmarkBareBurst(b *testing.B) {
	for b.Loop() {
		var wg sync.WaitGroup
		for range burst {
			wg.Go(func() {
				if err := exec.Command("/bin/sh", "-c", "true").Run(); err != nil {
					b.Error(err)
				}
			})
		}
		wg.Wait()
	}
}
