package schedule

import (
	"testing"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/axctl/ax"
)

// benchCases are the expressions that Next is measured with.
var benchCases = []struct{ name, expr, zone string }{
	{"minutely", "* * * * *", "UTC"},
	{"five", "*/5 * * * *", "UTC"},
	{"daily", "30 4 * * *", "UTC"},
	{"weekdays", "15 9-17 * * 1-5", "UTC"},
	{"monthly", "0 0 31 * *", "UTC"},
	{"yearly", "0 0 1 1 *", "UTC"},
	{"leap", "0 9 29 2 *", "UTC"},
	{"minutely in Berlin", "* * * * *", "Europe/Berlin"},
	{"daily in Berlin", "30 4 * * *", "Europe/Berlin"},
	{"leap in Berlin", "0 9 29 2 *", "Europe/Berlin"},
}

// BenchmarkNext goes on from firing to firing, ours and robfig's on the same
// expression in one run.
func BenchmarkNext(b *testing.B) {
	start := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range benchCases {
		b.Run(c.name+"/ax", func(b *testing.B) {
			b.ReportAllocs()
			s, err := Compile([]ax.ScheduleSpec{{Cron: c.expr, Timezone: c.zone}})
			if err != nil {
				b.Fatal(err)
			}
			at, n := start.UnixMilli(), 0
			for b.Loop() {
				if n++; n == 1000 {
					at, n = start.UnixMilli(), 0
				}
				at, _ = s.Next(at)
			}
		})
		b.Run(c.name+"/robfig", func(b *testing.B) {
			b.ReportAllocs()
			s, err := cron.ParseStandard("TZ=" + c.zone + " " + c.expr)
			if err != nil {
				b.Fatal(err)
			}
			at, n := start, 0
			for b.Loop() {
				if n++; n == 1000 {
					at, n = start, 0
				}
				at = s.Next(at)
			}
		})
	}
}

// BenchmarkBacklog is what settling a long outage of a minute schedule costs.
func BenchmarkBacklog(b *testing.B) {
	b.ReportAllocs()
	s, err := Compile([]ax.ScheduleSpec{{Cron: "* * * * *", Timezone: "Europe/Berlin"}})
	if err != nil {
		b.Fatal(err)
	}
	const year = 365 * 86_400_000
	now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
	for b.Loop() {
		s.Prev(now)
		s.Count(now-year, now, 1000)
	}
}

func BenchmarkCompile(b *testing.B) {
	b.ReportAllocs()
	specs := []ax.ScheduleSpec{{Cron: "15 9-17 * * mon-fri", Timezone: "Europe/Berlin"}}
	for b.Loop() {
		if _, err := Compile(specs); err != nil {
			b.Fatal(err)
		}
	}
}
