package schedule

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/axctl/ax"
)

// TestCronErrors holds what is said about a bad text, and which piece of it is
// marked.
func TestCronErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text, marked string
		says         []string // in summary or detail
	}{
		// B050: step 0, in field and token
		{"15/0 * * * *", "15/0", []string{"Step 0 in the minute field", "every ="}},
		{"* */0 * * *", "*/0", []string{"Step 0 in the hour field", "every ="}},
		{"1-5/0 * * * *", "1-5/0", []string{"Step 0", "every ="}},
		{"0 0 * * */000", "*/000", []string{"Step 0 in the day of week field", "every ="}},
		// B052: steps beyond the field
		{"*/90 * * * *", "*/90", []string{"Step 90 is longer than the minute field", `every = "90m"`}},
		{"0/120 * * * *", "0/120", []string{`every = "120m"`}},
		{"0 */25 * * *", "*/25", []string{"hour field", `every = "25h"`}},
		{"0 0 */32 * *", "*/32", []string{"day of month field", `every = "768h"`}},
		{"0 0 1 */13 *", "*/13", []string{"month field", "every ="}},
		{"0 0 * * */8", "*/8", []string{"day of week field", `every = "192h"`}},
		{"*/99999999999999999999 * * * *", "*/99999999999999999999", []string{"longer than the minute field", "every ="}},
		// B095: dates that never come
		{"0 0 30 2 *", "30 2", []string{"never fires"}},
		{"0 0 31 2,4,6 *", "31 2,4,6", []string{"never fires"}},
		{" 0 0  31 4 *", "31 4", []string{"never fires"}},
		{"0 0 30 feb */2", "30 feb", []string{"never fires"}},
		// B099: junk
		{"5x * * * *", "5x", []string{`Bad value "5x" in the minute field`}},
		{"1-2-3 * * * *", "1-2-3", []string{"Bad range"}},
		{"*/15min * * * *", "*/15min", []string{"Bad step"}},
		{"0\u00a03 * * *", "\u00a0", []string{"U+00A0"}},
		{"＊ * * * *", "＊", []string{"U+FF0A"}},
		{"0 3 * * *\x00", "\x00", []string{"U+0000"}},
		{"0 3\n* * *", "\n", []string{"U+000A"}},
		{"\xff * * * *", "\xff", []string{"U+FFFD"}},
		{"0 3 * * * # nightly", "0 3 * * * # nightly", []string{"this has 7", "comment"}},
		{"*/ * * * *", "*/", []string{"Bad step"}},
		{"/5 * * * *", "", []string{"A value is missing"}},
		{"*/5/2 * * * *", "*/5/2", []string{"Bad step"}},
		{"** * * * *", "**", []string{"Bad value"}},
		{"*-5 * * * *", "*", []string{"Bad value"}},
		{"-5 * * * *", "", []string{"A value is missing in the minute field"}},
		{"0,+5 * * * *", "+5", []string{"Bad value"}},
		{"0 3,,4 * * *", "3,,4", []string{"Empty item in the hour field"}},
		{"0 3, * * *", "3,", []string{"Empty item"}},
		// values
		{"60 * * * *", "60", []string{"out of range", "The minute is 0 to 59."}},
		{"0 1-24 * * *", "24", []string{"out of range", "0 to 23"}},
		{"0 0 1,0 * *", "0", []string{"out of range", "1 to 31"}},
		{"0 0 * * 8", "8", []string{"0 to 7"}},
		{"0 0 * JANUARY *", "JANUARY", []string{"1 to 12, or jan to dec"}},
		{"mon * * * *", "mon", []string{"minute field"}},
		{"0 22-2 * * *", "22-2", []string{"reversed", "22-23,0-2"}},
		{"0 0 * * fri-mon", "fri-mon", []string{"reversed", "ends in Sunday"}},
		{"0 0 * * 5-0", "5-0", []string{"reversed", "7 or sun"}},
		{"0 0 L * *", "0 0 L * *", nil},
		{"0 0 15W * *", "15W", []string{"quartz"}},
		// shape
		{"* * * *", "* * * *", []string{"5 fields, this has 4"}},
		{"0 0 3 * * *", "0 0 3 * * *", []string{"this has 6", "cron6", "not built"}},
		{" 0 0 6 ? * 2-6", "0 0 6 ? * 2-6", []string{"this has 6", "quartz", "not built"}},
		{" \t\r\n", "", []string{"Empty cron"}},
		// what belongs elsewhere
		{"CRON_TZ=Asia/Tokyo 0 6 * * *", "CRON_TZ=Asia/Tokyo", []string{`timezone = "Asia/Tokyo"`}},
		{"TZ=UTC", "TZ=UTC", []string{`timezone = "UTC"`}},
		{"CRON_TZ=", "CRON_TZ=", []string{"timezone ="}},
		{"@every -5m", "@every -5m", []string{"every ="}},
		{"@every", "@every", []string{`every = "5m"`}},
		{"@reboot", "@reboot", []string{"no time", "systemd"}},
		{"@fortnightly", "@fortnightly", []string{"Unknown macro", "@weekly"}},
		{"@Daily", "@Daily", []string{"Unknown macro"}},
		{"@daily 5", "@daily 5", []string{"Nothing may follow @daily"}},
	} {
		t.Run(c.text, func(t *testing.T) {
			t.Parallel()
			if c.says == nil {
				c.marked, c.says = "L", []string{"day of month field", "quartz"}
			}
			_, err := Compile([]ax.ScheduleSpec{{Cron: c.text}})
			var fault *Error
			if !errors.As(err, &fault) {
				t.Fatalf("error is %v", err)
			}
			for _, says := range c.says {
				if !strings.Contains(fault.Error(), says) {
					t.Errorf("%q is not said in %q", says, fault)
				}
			}
			if got := c.text[fault.Column-1:][:fault.Len]; got != c.marked {
				t.Errorf("marks %q at %d, want %q", got, fault.Column, c.marked)
			}
		})
	}
}

func TestFaultOfEachField(t *testing.T) {
	t.Parallel()
	_, faults := parseCron("60 24 0 13 8")
	var columns []int
	for _, f := range faults {
		columns = append(columns, f.Column)
	}
	if fmt.Sprint(columns) != "[1 4 7 9 12]" {
		t.Errorf("faults at %v", columns)
	}
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		spec ax.ScheduleSpec
		want []string // the marked text and a word of what is said
	}{
		{ax.ScheduleSpec{Cron: "0,*/45 * * * *"}, []string{`*/45: every = "45m"`}},
		{ax.ScheduleSpec{Cron: "5/7 */5 * * *"}, []string{"5/7: minute field", "*/5: hour field"}},
		{ax.ScheduleSpec{Cron: "0 0 */2 * *"}, []string{"*/2: starts again with each month"}},
		{ax.ScheduleSpec{Cron: "0 0 1 */5 *"}, []string{"*/5: month field"}},
		{ax.ScheduleSpec{Cron: "0 16 1-7 * mon"}, []string{"1-7 * mon: also when the day of week is mon"}},
		{ax.ScheduleSpec{Cron: "*/15 */6 * */3 *"}, nil},
		{ax.ScheduleSpec{Cron: "5/15 8-18/3 */10 * 1"}, []string{"*/10: day of month field"}},
		{ax.ScheduleSpec{Cron: "0 0 */31 * *"}, nil},
		{ax.ScheduleSpec{Cron: "@monthly"}, nil},
		{ax.ScheduleSpec{Cron: "nonsense"}, nil},
		{ax.ScheduleSpec{Every: 1000}, nil},
	} {
		warnings := Warnings(c.spec)
		if len(warnings) != len(c.want) {
			t.Errorf("%q: %+v, want %q", c.spec.Cron, warnings, c.want)
			continue
		}
		for i, w := range warnings {
			marked, says, _ := strings.Cut(c.want[i], ": ")
			if got := c.spec.Cron[w.Column-1:][:w.Len]; got != marked || !strings.Contains(w.Summary+w.Detail, says) {
				t.Errorf("%q marks %q and says %+v, want %q", c.spec.Cron, got, w, c.want[i])
			}
		}
	}
}

// FuzzCron holds that no text panics, hangs or is half understood.
func FuzzCron(f *testing.F) {
	for _, text := range []string{
		"* * * * *", "*/5 0-23/2 1,15 jan-dec fri-sun", "@daily", "@every 5m", "TZ=UTC", "CRON_TZ= * * * * *",
		"0 0 29 2 */7", "0 0 31 4 *", "60 24 0 13 8", "1,,2 * * * *", "5/0 * * * *", "0\u00a03 * * *", "\xff",
		strings.Repeat("1,", 5000) + " * * * *", strings.Repeat("* ", 5000), strings.Repeat("9", 10_000), strings.Repeat("/", 10_000),
		strings.Repeat("-", 10_000), "@" + strings.Repeat("x", 10_000), "TZ=" + strings.Repeat("x", 10_000), "*" + strings.Repeat("/1", 5000),
	} {
		f.Add(text)
	}
	from := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
	f.Fuzz(func(t *testing.T, text string) {
		started := time.Now()
		spec := ax.ScheduleSpec{Cron: text, Timezone: "America/New_York"}
		Warnings(spec)
		if s, err := Compile([]ax.ScheduleSpec{spec}); err == nil {
			next, ok := s.Next(from)
			if !ok || next <= from {
				t.Errorf("accepted, but the next is %d (%t)", next, ok)
			}
		} else {
			checkFault(t, text, err)
		}
		if spent := time.Since(started); len(text) <= 10_000 && spent > 100*time.Millisecond {
			t.Errorf("took %v", spent)
		}
	})
}

func checkFault(t *testing.T, text string, err error) {
	t.Helper()
	var fault *Error
	if !errors.As(err, &fault) {
		t.Fatalf("error is %v", err)
	}
	if fault.Summary == "" || fault.Detail == "" || len(fault.Error()) > 600 {
		t.Errorf("says %q", fault)
	}
	if fault.Column < 0 || fault.Column > 0 && fault.Column-1+fault.Len > len(text) {
		t.Errorf("marks %d+%d of %d", fault.Column, fault.Len, len(text))
	}
}
