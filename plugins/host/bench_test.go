package host_test

import (
	"context"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/axctl/ax"
	"github.com/axctl/ax/plugins/host"
)

// BenchmarkNoop runs jobs that do nothing through a real executor process, as
// dispatch does: handed over in batches of 64, at most 1,024 on their way, each
// end acknowledged. It reports the CPU time that both processes took for a job.
func BenchmarkNoop(b *testing.B) {
	h := host.New(host.Config{
		Dir: b.TempDir(), Host: "h", Boot: "b",
		Executors: []host.Command{{Name: "executor", Path: os.Args[0], Env: []string{roleKey + "=executor", "ZZPROF=" + os.Getenv("ZZPROF")}}},
	})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- h.Run(ctx) }()
	<-h.Ready()
	own := cpu(b, syscall.RUSAGE_SELF)
	b.ResetTimer()
	sent, done := 0, 0
	for done < b.N {
		for sent < b.N && sent-done < 1024 {
			var jobs []ax.Job
			for len(jobs) < 64 && sent < b.N {
				jobs = append(jobs, job("i-"+strconv.Itoa(sent)+"-1", "noop", "{}"))
				sent++
			}
			h.Dispatch(jobs)
		}
		var acks []string
		for _, r := range <-h.Reports() {
			if r.Kind == ax.ReportEnded {
				acks = append(acks, r.BatchNo)
				done++
			}
		}
		h.Acknowledge(acks)
	}
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
	own = cpu(b, syscall.RUSAGE_SELF) - own
	children := cpu(b, syscall.RUSAGE_CHILDREN)
	cancel()
	if err := <-ended; err != nil {
		b.Fatal(err)
	}
	children = cpu(b, syscall.RUSAGE_CHILDREN) - children
	b.ReportMetric(float64(own.Microseconds())/float64(b.N), "µs-host/job")
	b.ReportMetric(float64(children.Microseconds())/float64(b.N), "µs-executor/job")
}

// cpu returns the processor time used so far: of children, only of those that
// have ended.
func cpu(b *testing.B, who int) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(who, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
