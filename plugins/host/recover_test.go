package host

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/axctl/ax"
	pb "github.com/axctl/ax/plugins/proto"
)

// What two inventories in a row do not list is lost; what was given after the
// first was asked for, or ended meanwhile, is not.
func TestInventoriesThatDoNotList(t *testing.T) {
	t.Parallel()
	h := New(Config{Executors: []Command{{Name: "x"}}})
	l := newLink(h.executors[0], &process{})
	give := func(b string) {
		h.entries[b] = &entry{job: &pb.Job{BatchNo: b}, known: true}
		h.entries[b].give(l)
	}
	lost := func() (batchNos []string) {
		for _, r := range h.outbox.take(10) {
			if r.Kind == ax.ReportLost {
				batchNos = append(batchNos, r.BatchNo)
			}
		}
		return batchNos
	}
	ask := func() {
		l.down.inventory = true
		if l.take() == nil {
			t.Fatal("nothing is asked")
		}
	}
	give("known")
	give("forgotten")
	give("back")
	ask()
	give("young")
	h.compare(l, &pb.Inventory{Running: []string{"known"}})
	if got := lost(); len(got) != 0 || len(l.missing) != 2 {
		t.Errorf("after one inventory: lost %v, missing %v", got, l.missing)
	}
	ask()
	h.compare(l, &pb.Inventory{Running: []string{"known", "young"}, Ended: []string{"back"}})
	if got := lost(); len(got) != 1 || got[0] != "forgotten" {
		t.Errorf("after two: lost %v", got)
	}
	ask()
	h.compare(l, &pb.Inventory{Running: []string{"known", "young", "back"}})
	if got := lost(); len(got) != 0 || len(l.missing) != 0 {
		t.Errorf("after three: lost %v, missing %v", got, l.missing)
	}
}

// A process that sleeps or is stopped is given up after two seconds; one that
// wants to run is not, however long it takes.
func TestQuiet(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		see  func(n int) look // at the n-th look, 20 a second
		at   time.Duration    // 0: never
		why  string
	}{
		{"hangs", func(int) look { return lookSleeps }, 2 * time.Second, "it sleeps"},
		{"stopped", func(int) look { return lookStopped }, 2 * time.Second, "a signal has stopped it"},
		{"starved", func(n int) look { return []look{lookWorks, lookWorks, lookSleeps}[n%3] }, 0, ""},
		{"starved, then hangs", func(n int) look {
			if n <= 60 {
				return lookWorks
			}
			return lookSleeps
		}, 4 * time.Second, "it sleeps"},
		{"stopped in the end", func(n int) look {
			if n <= 10 {
				return lookWorks
			}
			return lookStopped
		}, 2 * time.Second, "a signal has stopped it"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				began, n := time.Now(), 0
				var why error
				watchQuiet(ctx, func() look { n++; return c.see(n) }, func(err error) { why = err })
				switch {
				case c.at == 0 && why != nil:
					t.Errorf("given up after %s: %v", time.Since(began), why)
				case c.at != 0 && (why == nil || !strings.Contains(why.Error(), c.why) || time.Since(began) != c.at):
					t.Errorf("after %s: %v", time.Since(began), why)
				}
			})
		})
	}
}
