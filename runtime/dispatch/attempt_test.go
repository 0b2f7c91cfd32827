package dispatch

import (
	"testing"
	"time"

	"github.com/axctl/ax"
)

// A job says what offset its zone has when it is due, from the embedded zones:
// an executor has no zone data, or another's.
func TestJobKnowsItsOffset(t *testing.T) {
	t.Parallel()
	d := &Dispatcher{cfg: Config{Incarnation: "inc"}}
	summer := time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
	winter := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
	for _, tc := range []struct {
		zone   string
		dueMs  int64
		offset int
	}{
		{"Europe/Berlin", summer, 7200},
		{"Europe/Berlin", winter, 3600},
		{"Asia/Kathmandu", winter, 20_700},
		{"America/New_York", winter, -18_000},
		{"", winter, 0},
	} {
		v := &ax.TaskVersion{Name: "a"}
		want := "UTC"
		if tc.zone != "" {
			v.Spec.Schedules = []ax.ScheduleSpec{{Every: 1000, Timezone: tc.zone}}
			want = tc.zone
		}
		job := d.job(ax.Handover{Ref: ax.Ref{ID: 7, DueMs: tc.dueMs}, Attempt: 2}, v)
		if job.Timezone != want || job.UTCOffset != tc.offset || job.BatchNo != "inc-7-2" || job.IdempotencyKey != "inc-7" {
			t.Errorf("%s: %+v", tc.zone, job)
		}
	}
}
