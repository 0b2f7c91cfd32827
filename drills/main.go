// Command drills breaks axd with real processes and then asks the store whether
// the promises held. Each drill is seeded: the same -seed gives the same faults
// at the same offsets. It prints the SQL it asked, and a report line each:
//
//	drill kill9: 100 faults, 0 lost, 0 doubled, worst recovery 312 ms
//
// The first promise that did not hold makes it exit 1, with the folder kept.
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// drill is one way to break it.
type drill struct {
	name  string
	what  string
	run   func(context.Context, *stage) (report, error)
	most  int  // of its rounds, where each takes many seconds; 0 no bound
	apart bool // it mounts something
}

// drills is the list: a new drill is one file and one line here.
var drills = []drill{
	{name: "failpoints", what: "let axd and axctl die at each failpoint in turn while 50 tasks fire each second", run: failpoints},
	{name: "kill9", what: "SIGKILL axd at random moments while 50 tasks fire each second", run: kill9},
	{name: "executor", what: "SIGKILL executors at random moments, stop one, and kill both, while 50 tasks fire each second", run: killExecutor},
	{name: "stop", what: "SIGSTOP axd for seconds, then let it go on", run: stopped, most: 20},
	{name: "clock", what: "set the clock both ways, let it be slow and fast, and start axd with another one", run: clockSteps, most: 200},
	{name: "upgrade", what: "handlers run, stand still and fall silent over three ends of axd: SIGTERM, SIGKILL, another binary", run: upgrade, most: 20},
	{name: "apply", what: "SIGKILL axctl apply at random moments", run: killApply},
	{name: "statements", what: "let axctl apply die before each statement it writes", run: statements},
	{name: "locked", what: "keep the store's write lock from axd, by axctl stopped inside a transaction for one", run: locked, most: 40},
	{name: "gone", what: "take the store's file away, or put another in its place, and bring it back", run: gone, most: 100},
	{name: "full", what: "fill the disk of the store and the data folder, and start axd on it", run: full, most: 60, apart: true},
	{name: "powercut", what: "kill everything and cut the tail of the store's log", run: powercut},
}

// report is what a drill found.
type report struct {
	faults        int
	lost, doubled int
	worst         time.Duration // the longest recovery
	note          string
}

func main() {
	axd := flag.String("axd", "bin/axd", "axd to break")
	axctl := flag.String("axctl", "bin/axctl", "axctl to use")
	ledger := flag.String("ledger", "bin/ledger", "program that the tasks run")
	name := flag.String("name", "all", "drill to run, or all")
	without := flag.String("without", "", "drill to leave out of all")
	rounds := flag.Int("rounds", 10, "faults a drill")
	with := flag.String("failpoint", "bin/failpoint", "folder of axd and axctl with failpoints")
	limits := figures{}
	flag.DurationVar(&limits.claim, "claim-within", time.Second, "the most from axd's exec to its first claim")
	flag.DurationVar(&limits.judge, "judge-within", 3*time.Second, "the most from axd's exec, or an executor's death, to the last attempt judged")
	seed := flag.Uint64("seed", uint64(time.Now().UnixNano()), "seed of the faults")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	set := stage{axd: *axd, axctl: *axctl, ledger: *ledger, failpointDir: *with, limits: limits, rounds: *rounds}
	var lines []string // the reports
	for _, d := range drills {
		if *name != "all" && *name != d.name || *name == "all" && *without == d.name {
			continue
		}
		var line string
		var err error
		if d.apart && os.Getenv(apartEnv) == "" {
			line, err = apart(ctx, d.name, *seed)
		} else {
			set.rounds = *rounds
			if d.most > 0 {
				set.rounds = min(*rounds, d.most)
			}
			fmt.Printf("drill %s: %s; %d rounds, seed %d\n", d.name, d.what, set.rounds, *seed)
			line, err = runDrill(ctx, d, set, *seed)
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "drill %s: %v\n", d.name, err)
			os.Exit(1)
		}
		lines = append(lines, line)
	}
	switch {
	case len(lines) > 1:
		fmt.Printf("\n%s; ROUNDS=%d SEED=%d\n%s\n", machine(), *rounds, *seed, strings.Join(lines, "\n"))
	case len(lines) == 0:
		fmt.Fprintf(os.Stderr, "no drill %q; there are:\n", *name)
		for _, d := range drills {
			fmt.Fprintf(os.Stderr, "  %-10s %s\n", d.name, d.what)
		}
		os.Exit(1)
	}
}

// runDrill runs a drill on a stage of its own and returns its report line, which
// it has printed.
func runDrill(ctx context.Context, d drill, set stage, seed uint64) (string, error) {
	dir, err := os.MkdirTemp("", "ax-drill-"+d.name+"-")
	if err != nil {
		return "", err
	}
	s, err := newStage(dir, set, rand.New(rand.NewPCG(seed, 1)))
	if err != nil {
		return "", err
	}
	rep, err := d.run(ctx, s)
	left := s.killAll()
	if err != nil {
		return "", fmt.Errorf("%w (seed %d; everything is kept in %s)", err, seed, dir)
	}
	line := fmt.Sprintf("drill %s: %d faults, %d lost, %d doubled, worst recovery %s%s",
		d.name, rep.faults, rep.lost, rep.doubled, rep.worst.Round(time.Millisecond), rep.note)
	fmt.Println(line)
	if rep.lost > 0 || rep.doubled > 0 || left > 0 {
		return "", fmt.Errorf("%d lost, %d doubled, %d processes left (seed %d; everything is kept in %s)", rep.lost, rep.doubled, left, seed, dir)
	}
	return line, os.RemoveAll(dir)
}

// spans are when each batch number was started and ended, ms since the epoch.
type spans struct{ starts, ends map[string][]int64 }

// over counts the batches at work at any of the instants.
func (s spans) over(instants []time.Time) (n int) {
	for batch, starts := range s.starts {
		for _, t := range instants {
			if ms := t.UnixMilli(); starts[0] < ms && len(s.ends[batch]) > 0 && s.ends[batch][0] > ms {
				n++
				break
			}
		}
	}
	return n
}

// ledgerOf reads when each batch number was started and ended.
func ledgerOf(path string) (spans, error) {
	s := spans{map[string][]int64{}, map[string][]int64{}}
	text, err := os.ReadFile(path)
	if err != nil {
		return s, err
	}
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		f := strings.Fields(line)
		if len(f) != 5 {
			return s, fmt.Errorf("ledger line %q", line)
		}
		ms, err := strconv.ParseInt(f[4], 10, 64)
		if err != nil {
			return s, fmt.Errorf("ledger line %q", line)
		}
		switch f[3] {
		case "start":
			s.starts[f[0]] = append(s.starts[f[0]], ms)
		case "end":
			s.ends[f[0]] = append(s.ends[f[0]], ms)
		default:
			return s, fmt.Errorf("ledger line %q", line)
		}
	}
	return s, nil
}
