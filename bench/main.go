// Command bench measures ax and prints ratios between two things measured in
// the same run: absolute figures swing by a factor of two on shared machines.
// Nothing here judges but the soak.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/axctl/ax/plugins/sdk"
)

// line is one line of the bench.
type line struct {
	name string
	what string
	run  func(context.Context, *bench) error
}

// lines is the list, in the order in which they run.
var lines = []line{
	{"next", "Schedule.Next against robfig/cron on the same expressions", benchNext},
	{"plan", "validate, plan and apply of 10,000 tasks against bare parsing and inserting", benchPlan},
	{"loop", "the store-only loop: claim and finish in batches, no executor", benchLoop},
	{"throughput", "due to recorded, no-op handler, offered more than it can do", benchThroughput},
	{"half", "lateness at half of that load", benchHalf},
	{"spread", "one due each 10 ms", benchSpread},
	{"burst", "10,000 due in one instant", benchBurst},
	{"shell", "100 shell commands due in one instant against bare fork and exec", benchShell},
	{"idle", "10,000 daily tasks, nothing due", benchIdle},
	{"start", "start with 100,000 tasks, to the first claim", benchStart},
	{"past", "a million past instances: start, pages of instances, what holds the writer, bytes a firing", benchPast},
}

// soak is no part of all: it takes minutes, and it judges.
var soak = line{"soak", "a million firings with retention on; fails when anything grows or is late", benchSoak}

// bench carries what lines share.
type bench struct {
	dir  string
	axd  string
	ctl  string
	old  int // past instances in the store of the throughput lines
	secs time.Duration

	firings, rate int // of the soak

	loopRate       float64 // firings/s of the store-only loop, 0 not measured yet
	loopBurst      time.Duration
	throughputRate float64
	fdatasync      time.Duration
}

func main() {
	if len(os.Args) == 3 && os.Args[1] == "executor" {
		sdk.Serve("bench",
			sdk.Handler("noop", "Does nothing.", func(context.Context, sdk.Job, struct{}) (sdk.Outputs, error) { return nil, nil }),
			sdk.Handler("talk", "Prints a line.", func(_ context.Context, job sdk.Job, _ struct{}) (sdk.Outputs, error) {
				_, err := fmt.Fprintln(job.Output.Stdout, job.Task, job.Due, strings.Repeat("the quick brown fox ", 5))
				return nil, err
			}))
		return
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run() error {
	b := &bench{}
	name := flag.String("run", "all", "line to run, or all; several with commas")
	flag.StringVar(&b.axd, "axd", "bin/axd", "axd to measure")
	flag.StringVar(&b.ctl, "axctl", "bin/axctl", "axctl to measure")
	flag.IntVar(&b.old, "old", 2_000_000, "past instances in the store of loop and throughput")
	flag.DurationVar(&b.secs, "for", 10*time.Second, "length of the timed part of a line")
	flag.IntVar(&b.firings, "firings", 1_000_000, "instances that the soak fires")
	flag.IntVar(&b.rate, "rate", 2000, "instances a second that the soak fires")
	profile := flag.String("cpuprofile", "", "write a CPU profile of this process to `file`")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	if *profile != "" {
		f, err := os.Create(*profile)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	var err error
	for _, path := range []*string{&b.axd, &b.ctl} { // the lines change folders
		if *path, err = filepath.Abs(*path); err != nil {
			return err
		}
	}
	if b.dir, err = os.MkdirTemp("", "ax-bench-"); err != nil {
		return err
	}
	defer os.RemoveAll(b.dir)
	if b.fdatasync, err = fdatasync(b.dir, 200); err != nil {
		return err
	}
	fmt.Printf("machine: %d cores, %s, %s; fdatasync median %s\n", runtime.NumCPU(), cpuModel(), runtime.Version(), round(b.fdatasync))
	wanted := strings.Split(*name, ",")
	for _, l := range append(lines, soak) {
		if *name == "all" && l.name == soak.name || *name != "all" && !slices.Contains(wanted, l.name) {
			continue
		}
		fmt.Printf("\n%s: %s\n", l.name, l.what)
		if err := l.run(ctx, b); err != nil {
			return fmt.Errorf("%s: %w", l.name, err)
		}
	}
	return nil
}

// rows prints aligned cells.
func rows(print func(w *tabwriter.Writer)) {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	print(w)
	_ = w.Flush()
}

// fdatasync returns the median time of n appends made durable.
func fdatasync(dir string, n int) (time.Duration, error) {
	f, err := os.Create(filepath.Join(dir, "sync"))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	took := make([]time.Duration, n)
	block := make([]byte, 4096)
	for i := range took {
		begin := time.Now()
		if _, err := f.Write(block); err != nil {
			return 0, err
		}
		if err := syscall.Fdatasync(int(f.Fd())); err != nil {
			return 0, err
		}
		took[i] = time.Since(begin)
	}
	return percentile(took, 0.5), nil
}

// percentile returns the p-th part of d, sorting it.
func percentile[T int64 | time.Duration | float64](d []T, p float64) T {
	if len(d) == 0 {
		return 0
	}
	slices.Sort(d)
	return d[min(len(d)-1, int(p*float64(len(d))))]
}

func mean(d []time.Duration) time.Duration {
	if len(d) == 0 {
		return 0
	}
	var sum time.Duration
	for _, x := range d {
		sum += x
	}
	return sum / time.Duration(len(d))
}

func round(d time.Duration) time.Duration {
	switch {
	case d > time.Second:
		return d.Round(10 * time.Millisecond)
	case d > time.Millisecond:
		return d.Round(10 * time.Microsecond)
	default:
		return d.Round(10 * time.Nanosecond)
	}
}

func cpuModel() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	for _, l := range strings.Split(string(text), "\n") {
		if k, v, ok := strings.Cut(l, ":"); ok && strings.TrimSpace(k) == "model name" {
			return strings.TrimSpace(v)
		}
	}
	return runtime.GOARCH
}
