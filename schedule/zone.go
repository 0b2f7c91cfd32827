package schedule

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	_ "embed"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agext/levenshtein"
)

// The zones are our own copy of the IANA database as Go distributes it, not
// time.LoadLocation's, which asks ZONEINFO and the host's files first: two
// hosts would then disagree about a schedule. To update both files:
//
//go:generate sh -c "cp \"$(go env GOROOT)/lib/time/zoneinfo.zip\" . && echo \"$(sed -n s/^DATA=//p \"$(go env GOROOT)/lib/time/update.bash\") $(sha256sum < zoneinfo.zip | cut -d' ' -f1)\" > zoneinfo.version"

//go:embed zoneinfo.zip
var zoneinfo []byte

// zoneinfoVersion is the release and the SHA-256 of zoneinfo.zip; a test holds
// them together.
//
//go:embed zoneinfo.version
var zoneinfoVersion string

// TZDataVersion returns the release of the IANA time zone database that all
// schedules are computed with, such as 2025c.
func TZDataVersion() string {
	release, _, _ := strings.Cut(zoneinfoVersion, " ")
	return release
}

// ZoneNames returns the names of all zones, sorted.
func ZoneNames() []string {
	var names []string
	for name := range zoneFiles() {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Zone returns the zone of that name from the embedded database, never from
// the machine. The error is an *Error whose detail has the nearest name.
func Zone(name string) (*time.Location, error) {
	z, err := loadZone(name)
	if err != nil {
		return nil, err
	}
	return z.location, nil
}

// zoneFiles is the directory of zoneinfo.zip. Only data that never changes is
// kept for the whole process: this, and the zones made from it.
var zoneFiles = sync.OnceValue(func() map[string]*zip.File {
	r, err := zip.NewReader(bytes.NewReader(zoneinfo), int64(len(zoneinfo)))
	if err != nil {
		panic(fmt.Sprintf("embedded tzdata: %v", err))
	}
	files := make(map[string]*zip.File, len(r.File))
	for _, f := range r.File {
		if !strings.HasSuffix(f.Name, "/") {
			files[f.Name] = f
		}
	}
	return files
})

// zones shares each zone (a *zone by name) between all schedules: a hundred
// thousand tasks use a handful, of 10 kB each.
var zones sync.Map

// zone is a zone's history as a table. It is immutable.
type zone struct {
	location *time.Location
	hash     [sha256.Size]byte // of its data
	first    int64             // the offset before the first change
	changes  []change          // ascending
}

// change is an instant at which the offset changes. All are seconds; a wall
// reading is instant + offset.
type change struct {
	at     int64
	offset int64 // from then on
}

// stretch is a stretch of time, [start, end), with one offset.
type stretch struct {
	start, end int64
	offset     int64
	before     int64 // the offset before start; the same at the beginning of time
}

// The table reaches over 400 years of nothing but yearly rules, after which
// the Gregorian calendar repeats itself, weekdays included.
const (
	tableStart  int64 = -5_364_662_400            // 1800-01-01
	repeatStart int64 = 4_102_444_800             // 2100-01-01
	repeatAfter int64 = 146_097 * 86_400          // 400 years
	repeatEnd         = repeatStart + repeatAfter // 2500-01-01
	tableEnd          = repeatEnd + 2*366*86_400  // so that the last stretch in use has its end
	forever     int64 = 1 << 62
)

func loadZone(name string) (*zone, *Error) {
	if z, ok := zones.Load(name); ok {
		return z.(*zone), nil
	}
	f, ok := zoneFiles()[name]
	if !ok {
		return nil, unknownZone(name)
	}
	r, err := f.Open()
	if err != nil {
		panic(fmt.Sprintf("embedded tzdata: open %s: %v", name, err))
	}
	data, err := io.ReadAll(r)
	if err != nil {
		panic(fmt.Sprintf("embedded tzdata: read %s: %v", name, err))
	}
	location, err := time.LoadLocationFromTZData(name, data)
	if err != nil {
		panic(fmt.Sprintf("embedded tzdata: parse %s: %v", name, err))
	}
	z := newZone(location)
	z.hash = sha256.Sum256(data)
	shared, _ := zones.LoadOrStore(name, z)
	return shared.(*zone), nil
}

func newZone(location *time.Location) *zone {
	z := &zone{location: location}
	_, first := time.Unix(tableStart, 0).In(location).Zone()
	z.first = int64(first)
	offset := z.first
	for t := tableStart; t < tableEnd; {
		here := time.Unix(t, 0).In(location)
		if _, o := here.Zone(); int64(o) != offset {
			offset = int64(o)
			z.changes = append(z.changes, change{at: t, offset: offset})
		}
		_, end := here.ZoneBounds()
		if end.IsZero() {
			break
		}
		// ZoneBounds ends a year of a yearly rule after 365 days. On the last
		// day of a leap year that is not after t; nothing changes before the
		// year's true end.
		if t = max(t, end.Unix()); t == here.Unix() {
			t = time.Date(here.UTC().Year()+1, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
		}
	}
	return z
}

// at returns the stretch that holds the instant t.
func (z *zone) at(t int64) stretch {
	if len(z.changes) == 0 {
		return stretch{start: -forever, end: forever, offset: z.first, before: z.first}
	}
	moved := int64(0)
	if t >= repeatEnd {
		moved = ((t-repeatEnd)/repeatAfter + 1) * repeatAfter
		t -= moved
	}
	lo, hi := 0, len(z.changes) // changes[lo-1].at <= t < changes[hi].at
	for lo < hi {
		if mid := (lo + hi) / 2; z.changes[mid].at <= t {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	s := stretch{start: -forever, end: forever, offset: z.first, before: z.first}
	if lo > 0 {
		s.start, s.offset = z.changes[lo-1].at+moved, z.changes[lo-1].offset
	}
	if lo > 1 {
		s.before = z.changes[lo-2].offset
	}
	if lo < len(z.changes) {
		s.end = z.changes[lo].at + moved
	}
	return s
}

// instant maps a wall reading to the instant that shows it first, or, when it
// is skipped, to the first instant after the jump; skipped says so.
func (z *zone) instant(wall int64) (t int64, skipped bool) {
	s := z.at(wall - 2*day) // no offset is as long as that
	for {
		switch {
		case wall-s.offset >= s.end:
			s = z.at(s.end)
		case wall-s.offset < s.start:
			return s.start, true
		default:
			return wall - s.offset, false
		}
	}
}

// ParseInstant reads RFC 3339, or a local time of location, as a schedule reads
// it: a local time that a change to summer time skipped is the first instant
// after the change; one that comes twice is its first. It returns ms since epoch
// UTC of the years 1 to 9999. The error is an *Error.
func ParseInstant(text string, location *time.Location) (int64, error) {
	ms, err := newZone(location).parseInstant(text)
	if err != nil {
		return 0, err
	}
	return ms, nil
}

// localForms are the ways to write a local time, tried in this order.
var localForms = []string{
	"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02",
}

// parseInstant is ParseInstant for a zone.
func (z *zone) parseInstant(text string) (int64, *Error) {
	if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
		if t.Nanosecond()%int(time.Millisecond) != 0 || t.UnixMilli() < minMs || t.UnixMilli() > maxMs {
			return 0, &Error{
				Summary: fmt.Sprintf("Instant %.40q is not a whole millisecond of the years 1 to 9999", text),
			}
		}
		return t.UnixMilli(), nil
	}
	for _, form := range localForms {
		wall, err := time.Parse(form, text)
		if err != nil {
			continue
		}
		t, skipped := z.instant(wall.Unix())
		if s := z.at(t); skipped && isResetting(s) {
			return 0, &Error{
				Summary: fmt.Sprintf("%s never was in %s", text, z.location),
				Detail:  fmt.Sprintf("The clocks of %s skipped that time for good.", z.location),
			}
		}
		return t * 1000, nil
	}
	return 0, &Error{
		Summary: fmt.Sprintf("%.40q is no instant", text),
		Detail: "Write RFC 3339 with an offset, such as \"2026-03-01T06:00:00Z\", or a local time of the zone, " +
			"such as \"2026-03-01T06:00\".",
	}
}

func unknownZone(name string) *Error {
	e := &Error{
		Attribute: "timezone",
		Summary:   fmt.Sprintf("Unknown timezone %.60q", name),
		Detail:    "timezone takes a name of the IANA database, such as \"Europe/Berlin\".",
	}
	if strings.EqualFold(name, "local") || strings.EqualFold(name, "system") {
		e.Detail = "The zone of a machine is never used, since it differs from host to host. Name one, such as \"Europe/Berlin\"."
	} else if near := nearestZone(name); near != "" {
		e.Detail = fmt.Sprintf("Did you mean %q?", near)
	}
	return e
}

// nearestZone returns the zone whose name, or whose city, is nearest to name,
// or "" when none is near.
func nearestZone(name string) string {
	if len(name) > 60 { // longer than any zone's
		return ""
	}
	want := strings.ToLower(strings.ReplaceAll(name, " ", "_"))
	best, bestDistance := "", 2*min(2, 1+len(name)/6)+2 // one letter of a short name
	for _, zone := range ZoneNames() {
		lower := strings.ToLower(zone)
		d := 2 * levenshtein.Distance(want, lower, nil)
		if i := strings.LastIndexByte(lower, '/'); i >= 0 && !strings.Contains(want, "/") {
			d = min(d, 2*levenshtein.Distance(want, lower[i+1:], nil)+1) // after a whole name as near
		}
		if d < bestDistance {
			best, bestDistance = zone, d
		}
	}
	return best
}
