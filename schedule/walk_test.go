package schedule

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/robfig/cron/v3"
	"pgregory.net/rapid"

	"github.com/axctl/ax"
)

// drawn is a random cron text with its meaning, found without the parser: the
// values of each field, and the two rules that depend on how it is written.
type drawn struct {
	text             string
	values           [5]map[int]bool
	either, floating bool
}

func (d drawn) String() string { return d.text }

func (d drawn) matches(wall time.Time) bool {
	dom, dow := d.values[2][wall.Day()], d.values[4][int(wall.Weekday())]
	days := dom && dow
	if d.either {
		days = dom || dow
	}
	return days && d.values[0][wall.Minute()] && d.values[1][wall.Hour()] && d.values[3][int(wall.Month())]
}

// exprs draws expressions in which no field is rarely hit, so that a walk over
// a day or two has something to find.
func exprs() *rapid.Generator[drawn] {
	return rapid.Custom(func(t *rapid.T) drawn {
		var d drawn
		var texts []string
		for i, f := range cronGrammar {
			d.values[i] = map[int]bool{}
			var items []string
			if i >= 2 && rapid.IntRange(0, 2).Draw(t, "any") > 0 {
				items = append(items, "*")
				add(d.values[i], f, f.min, f.max, 1)
			}
			for len(items) == 0 || rapid.IntRange(0, 2).Draw(t, "more") == 0 {
				items = append(items, drawItem(t, f, d.values[i]))
			}
			texts = append(texts, strings.Join(items, ","))
		}
		d.text = strings.Join(texts, rapid.SampledFrom([]string{" ", "\t", "  "}).Draw(t, "blank"))
		d.either = texts[2][0] != '*' && texts[4][0] != '*'
		d.floating = strings.ContainsAny(texts[0]+texts[1], "*/")
		return d
	})
}

func add(set map[int]bool, f field, from, to, step int) {
	for v := from; v <= to; v += step {
		if f.max == 6 {
			set[v%7] = true
		} else {
			set[v] = true
		}
	}
}

func drawItem(t *rapid.T, f field, set map[int]bool) string {
	top := f.max
	if top == 6 {
		top = 7
	}
	lo := rapid.IntRange(f.min, top).Draw(t, "lo")
	hi := rapid.IntRange(lo, top).Draw(t, "hi")
	step := rapid.IntRange(1, f.max-f.min+1).Draw(t, "step")
	switch rapid.IntRange(0, 9).Draw(t, "form") {
	case 0:
		add(set, f, f.min, f.max, 1)
		return "*"
	case 1:
		add(set, f, f.min, f.max, step)
		return fmt.Sprintf("*/%d", step)
	case 2:
		if lo > f.max { // Sunday as 7 begins the week
			add(set, f, f.min, f.max, step)
		} else {
			add(set, f, lo, f.max, step)
		}
		return fmt.Sprintf("%d/%d", lo, step)
	case 3:
		add(set, f, lo, hi, step)
		return fmt.Sprintf("%d-%d/%d", lo, hi, step)
	case 4, 5:
		add(set, f, lo, hi, 1)
		if hi == 7 && f.max == 6 && lo > 0 && lo < 7 {
			return spell(t, f, lo) + "-Sun"
		}
		return fmt.Sprintf("%s-%s", spell(t, f, lo), spell(t, f, hi))
	default:
		add(set, f, lo, lo, 1)
		return spell(t, f, lo)
	}
}

// spell writes a value as a number, with a zero in front or as a name.
func spell(t *rapid.T, f field, v int) string {
	form := rapid.IntRange(0, 2).Draw(t, "spelling")
	switch {
	case form == 1 && f.names != nil && v <= f.max:
		name := f.names[v-f.min]
		if v%2 == 0 {
			name = strings.ToUpper(name)
		}
		return name
	case form == 2:
		return fmt.Sprintf("%02d", v)
	default:
		return fmt.Sprint(v)
	}
}

// walk lists the instants in (from, to] by going through all minutes (seconds,
// where an offset is not whole minutes) and asking package time what the
// clocks show. It knows nothing of the evaluator's tables and masks.
func walk(d drawn, loc *time.Location, from, to int64) []int64 {
	step := int64(60)
	for t := from - 4*3600; t <= to; t += 900 {
		if offset(loc, t)%60 != 0 {
			step = 1
		}
	}
	from -= floorMod(from, step)
	var found []int64
	for t := from + step; t <= to; t += step {
		here, earlier := offset(loc, t), offset(loc, t-step)
		switch wall := time.Unix(t, 0).In(loc); {
		case !d.floating && here > earlier && here-earlier < 3*3600 && skippedMatch(d, t+earlier, t+here):
			found = append(found, t)
		case wall.Second() != 0 || !d.matches(wall):
		case d.floating || !shownBefore(loc, t, step):
			found = append(found, t)
		}
	}
	return found
}

func offset(loc *time.Location, t int64) int64 {
	_, o := time.Unix(t, 0).In(loc).Zone()
	return int64(o)
}

// skippedMatch reports whether a reading in [from, to) matches.
func skippedMatch(d drawn, from, to int64) bool {
	for wall := from + floorMod(-from, 60); wall < to; wall += 60 {
		if d.matches(time.Unix(wall, 0).UTC()) {
			return true
		}
	}
	return false
}

// shownBefore reports whether the reading at t was shown less than 3 h earlier.
func shownBefore(loc *time.Location, t, step int64) bool {
	for ago := step; ago < 3*3600; ago += step {
		if t-ago+offset(loc, t-ago) == t+offset(loc, t) {
			return true
		}
	}
	return false
}

// changingZones returns one name for each zone whose offset changed since 1970,
// with the instants of the changes.
func changingZones(t testing.TB) map[string][]int64 {
	t.Helper()
	seen := map[[32]byte]bool{}
	zones := map[string][]int64{}
	for _, name := range ZoneNames() {
		z, err := loadZone(name)
		if err != nil {
			t.Fatal(err)
		}
		if seen[z.hash] {
			continue
		}
		seen[z.hash] = true
		until := time.Date(2045, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
		for _, c := range z.changes {
			if c.at > 0 && c.at < until {
				zones[name] = append(zones[name], c.at)
			}
		}
	}
	if len(zones) < 200 {
		t.Fatalf("only %d zones change", len(zones))
	}
	return zones
}

// compareWithWalk holds Next, Prev and Count against a walk of (from, to].
func compareWithWalk(t rapid.TB, d drawn, zoneName string, from, to int64) {
	s, err := Compile([]ax.ScheduleSpec{{Cron: d.text, Timezone: zoneName}})
	if err != nil {
		if strings.Contains(err.Error(), "never fires") {
			return
		}
		t.Fatalf("%q refused: %v", d.text, err)
	}
	want := walk(d, s.Location(), from, to)
	var got []int64
	at, ok := s.Next(from * 1000)
	for ok && at <= to*1000 {
		got = append(got, at/1000)
		prev, found := s.Prev(at + 1)
		if !found || prev != at {
			t.Fatalf("%q in %s: Prev after %d is %d", d.text, zoneName, at, prev)
		}
		at, ok = s.Next(at)
	}
	if !slices.Equal(got, want) {
		t.Fatalf("%q in %s after %s:\n got %s\nwant %s", d.text, zoneName, stamp(s, from), stamp(s, got...), stamp(s, want...))
	}
	for i := 1; i < len(got); i++ {
		if prev, found := s.Prev(got[i] * 1000); !found || prev != got[i-1]*1000 {
			t.Fatalf("%q in %s: Prev of %s is %s", d.text, zoneName, stamp(s, got[i]), stamp(s, prev/1000))
		}
	}
	limit := max(1, len(got))
	if n, over := s.Count(from*1000+1, to*1000, limit); n != len(got) || over {
		t.Fatalf("%q in %s: Count is %d (%t), want %d", d.text, zoneName, n, over, len(got))
	}
	if len(got) > 0 {
		if n, over := s.Count(got[0]*1000, to*1000, len(got)-1); n != len(got)-1 || !over {
			t.Fatalf("%q in %s: Count beyond its limit is %d (%t)", d.text, zoneName, n, over)
		}
	}
}

func stamp(s *Schedule, seconds ...int64) string {
	var texts []string
	for _, t := range seconds {
		texts = append(texts, time.Unix(t, 0).In(s.Location()).Format(time.RFC3339))
	}
	return strings.Join(texts, " ")
}

// TestWalkRandom draws everything: expression, zone, change and distance to it.
func TestWalkRandom(t *testing.T) {
	t.Parallel()
	zones := changingZones(t)
	names := make([]string, 0, len(zones))
	for name := range zones {
		names = append(names, name)
	}
	slices.Sort(names)
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom(names).Draw(t, "zone")
		change := rapid.SampledFrom(zones[name]).Draw(t, "change")
		from := change + rapid.Int64Range(-30*3600, 4*3600).Draw(t, "from")
		compareWithWalk(t, exprs().Draw(t, "expr"), name, from, from+36*3600)
	})
}

// TestWalkEveryZone goes near two changes of every zone with expressions that
// are likely to meet them, its last change first.
func TestWalkEveryZone(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(2026, 11))
	for name, changes := range changingZones(t) {
		for _, change := range []int64{changes[len(changes)-1], changes[random.IntN(len(changes))]} {
			for _, text := range []string{
				fmt.Sprintf("%d,%d 0-3,23 * * *", random.IntN(60), random.IntN(60)),
				fmt.Sprintf("%d-59/7 * * * *", random.IntN(60)),
			} {
				compareWithWalk(t, meaning(text), name, change-3*3600, change+5*3600)
			}
		}
	}
}

// meaning reads the two forms of TestWalkEveryZone.
func meaning(text string) drawn {
	d := drawn{text: text, floating: strings.Contains(text, "/")}
	for i, f := range cronGrammar {
		d.values[i] = map[int]bool{}
		add(d.values[i], f, f.min, f.max, 1)
	}
	var a, b int
	if _, err := fmt.Sscanf(text, "%d,%d 0-3,23", &a, &b); err == nil {
		d.values[0] = map[int]bool{a: true, b: true}
		d.values[1] = map[int]bool{0: true, 1: true, 2: true, 3: true, 23: true}
	} else if _, err := fmt.Sscanf(text, "%d-59/7", &a); err == nil {
		d.values[0] = map[int]bool{}
		add(d.values[0], cronGrammar[0], a, 59, 7)
	}
	return d
}

// TestWeekdaysOverYears holds that no 23-hour day throws a weekly job off.
func TestWeekdaysOverYears(t *testing.T) {
	t.Parallel()
	weekday := 0
	for name := range changingZones(t) {
		weekday = (weekday + 1) % 7
		s := mustCompile(t, ax.ScheduleSpec{Cron: fmt.Sprintf("0 12 * * %d", weekday), Timezone: name})
		loc := s.Location()
		at := time.Date(2010, 1, 1, 0, 0, 0, 0, loc)
		for date := time.Date(2010, 1, 1, 0, 0, 0, 0, time.UTC); date.Year() < 2030; date = date.AddDate(0, 0, 1) {
			noon := time.Date(date.Year(), date.Month(), date.Day(), 12, 0, 0, 0, loc)
			if int(noon.Weekday()) != weekday || noon.Hour() != 12 || noon.Day() != date.Day() {
				continue // another day, or one that the zone left out
			}
			next, ok := s.Next(at.UnixMilli())
			if !ok || next != noon.UnixMilli() {
				t.Fatalf("%s, weekday %d: after %v comes %v, want %v", name, weekday, at, time.UnixMilli(next).In(loc), noon)
			}
			at = noon
		}
	}
}

// TestRobfigAgrees uses robfig/cron as an oracle in UTC, on what it and crontab
// read alike: no Sunday as 7, no stepped * beside another restricted day.
func TestRobfigAgrees(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := exprs().Draw(t, "expr")
		fields := strings.Fields(d.text)
		oracle, err := cron.ParseStandard(d.text)
		if err != nil {
			if !strings.Contains(fields[4], "7") && !strings.Contains(strings.ToLower(fields[4]), "-sun") {
				t.Fatalf("robfig refuses %q: %v", d.text, err)
			}
			return
		}
		if fields[2] != "*" && fields[4] != "*" && strings.Contains(fields[2]+fields[4], "*") {
			return
		}
		at := time.Unix(rapid.Int64Range(0, 1<<32).Draw(t, "from"), 0).UTC()
		s, err := Compile([]ax.ScheduleSpec{{Cron: d.text}})
		for range 5 {
			want := oracle.Next(at)
			if want.IsZero() {
				return // it gives up after five years
			}
			if err != nil {
				t.Fatalf("%q refused: %v", d.text, err)
			}
			next, ok := s.Next(at.UnixMilli())
			if !ok || next != want.UnixMilli() {
				t.Fatalf("%q after %v: %v, robfig has %v", d.text, at, time.UnixMilli(next).UTC(), want)
			}
			at = want
		}
	})
}

func mustCompile(t rapid.TB, specs ...ax.ScheduleSpec) *Schedule {
	t.Helper()
	s, err := Compile(specs)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
