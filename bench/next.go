package main

import (
	"context"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/axctl/ax"
	"github.com/axctl/ax/schedule"
	"github.com/robfig/cron/v3"
)

func benchNext(_ context.Context, _ *bench) error {
	const rounds = 7
	for _, c := range []struct{ expr, zone string }{
		{"* * * * *", "UTC"},
		{"*/5 9-17 * * 1-5", "UTC"},
		{"30 2 * * *", "Europe/Berlin"},
		{"0 9 1 * *", "America/New_York"},
		{"0 0 29 2 *", "UTC"},
	} {
		ours, err := schedule.Compile([]ax.ScheduleSpec{{Cron: c.expr, Timezone: c.zone}})
		if err != nil {
			return err
		}
		theirs, err := cron.ParseStandard("CRON_TZ=" + c.zone + " " + c.expr)
		if err != nil {
			return err
		}
		from := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
		var a, b []time.Duration
		for range rounds { // in turn, so that a drifting machine hits both
			a = append(a, perCall(func(n int) {
				for at, i := from.UnixMilli(), 0; i < n; i++ {
					next, _ := ours.Next(at)
					if at = next; i%200 == 199 {
						at = from.UnixMilli()
					}
				}
			}))
			b = append(b, perCall(func(n int) {
				for at, i := from, 0; i < n; i++ {
					if at = theirs.Next(at); i%200 == 199 {
						at = from
					}
				}
			}))
		}
		x, y := percentile(a, 0.5), percentile(b, 0.5)
		rows(func(w *tabwriter.Writer) {
			fmt.Fprintf(w, "  %-20s %-18s\tax %s\trobfig %s\tratio %.2f\n", c.expr, c.zone, round(x), round(y), float64(x)/float64(y))
		})
	}
	return nil
}

// perCall returns what one of n calls takes, n chosen to run for some 30 ms.
func perCall(f func(n int)) time.Duration {
	n := 1000
	for {
		begin := time.Now()
		f(n)
		took := time.Since(begin)
		if took > 30*time.Millisecond {
			return took / time.Duration(n)
		}
		n *= 4
	}
}
