package schedule

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"math"
	"slices"
	"time"

	"github.com/axctl/ax"
)

// Schedule is the compiled union of a task's schedule blocks. It is immutable
// and safe for concurrent use.
type Schedule struct {
	rules       []rule
	location    *time.Location
	fingerprint string
}

// rule is one compiled schedule block.
type rule interface {
	// next returns the first instant (ms) strictly after afterMs.
	next(afterMs int64) (int64, bool)
	// digest writes all that its instants depend on.
	digest(h hash.Hash)
}

// Instants before year 1 and after year 9999 have no RFC 3339 form: no
// schedule has one there.
const (
	minMs int64 = -62_135_596_800_000
	maxMs int64 = 253_402_300_799_999
)

// Compile checks specs and turns them into one Schedule, their union: instants
// that several blocks share fire once. It is called once for each version of a
// task, never in a loop. The error is an *Error, or several joined.
func Compile(specs []ax.ScheduleSpec) (*Schedule, error) {
	s := &Schedule{location: time.UTC}
	var faults []error
	var sums []string
	for i, spec := range specs {
		z, r, errs := compileSpec(spec)
		for _, e := range errs {
			e.Index = i
			faults = append(faults, e)
		}
		if len(errs) > 0 {
			continue
		}
		if i == 0 {
			s.location = z.location
		}
		s.rules = append(s.rules, r)
		h := sha256.New()
		r.digest(h)
		sums = append(sums, string(h.Sum(nil)))
	}
	if len(faults) == 1 {
		return nil, faults[0]
	}
	if len(faults) > 1 {
		return nil, errors.Join(faults...)
	}
	s.fingerprint = fingerprint(sums)
	return s, nil
}

// Next returns the first instant strictly after afterMs. It returns false when
// there is none up to the year 9999. It does not allocate.
func (s *Schedule) Next(afterMs int64) (ms int64, ok bool) {
	if afterMs >= maxMs {
		return 0, false
	}
	afterMs = max(afterMs, minMs-1)
	best := int64(math.MaxInt64)
	for _, r := range s.rules {
		if ms, ok := r.next(afterMs); ok {
			best = min(best, ms)
		}
	}
	if best > maxMs {
		return 0, false
	}
	return best, true
}

// Prev returns the last instant strictly before beforeMs, however long ago it
// was: two or three calls of Next when the schedule is regular, a hundred at
// worst. It does not allocate.
func (s *Schedule) Prev(beforeMs int64) (ms int64, ok bool) {
	if beforeMs <= minMs {
		return 0, false
	}
	beforeMs = min(beforeMs, maxMs+1)
	last, found := int64(0), false
	for back := time.Minute.Milliseconds(); !found; back *= 8 {
		from := beforeMs - 1 - back
		if last, found = s.nextBefore(from, beforeMs); !found && from < minMs {
			return 0, false
		}
	}
	// Nothing fires in [none, beforeMs). Halve what is between last and none,
	// after a try whether the very next one is too late already.
	none := beforeMs
	for {
		next, ok := s.nextBefore(last, none)
		if !ok {
			return last, true
		}
		last = next
		middle := last + (none-last)/2
		if next, ok = s.nextBefore(middle, none); ok {
			last = next
		} else {
			none = middle + 1
		}
	}
}

// nextBefore is Next as far as it is before beforeMs.
func (s *Schedule) nextBefore(afterMs, beforeMs int64) (int64, bool) {
	ms, ok := s.Next(afterMs)
	return ms, ok && ms < beforeMs
}

// Count counts the instants in [fromMs, toMs]. When there are more than limit
// it returns limit and true; it costs at most limit+1 calls of Next.
func (s *Schedule) Count(fromMs, toMs int64, limit int) (n int, over bool) {
	if fromMs > toMs {
		return 0, false
	}
	at, ok := s.Next(max(fromMs, minMs) - 1)
	for ok && at <= toMs {
		if n == limit {
			return n, true
		}
		n++
		at, ok = s.Next(at)
	}
	return n, false
}

// Fingerprint is a hash of the compiled rules and of the content of the zones
// they use. Specs that mean the same have the same fingerprint, however they
// are written, and a new tzdata changes it only where it changes a zone in use.
func (s *Schedule) Fingerprint() string { return s.fingerprint }

// Location returns the zone of the first spec, UTC when there is none.
func (s *Schedule) Location() *time.Location { return s.location }

// fingerprint combines the rules' digests, in no order and each once, as the
// union does.
func fingerprint(sums []string) string {
	slices.Sort(sums)
	h := sha256.New()
	for _, sum := range slices.Compact(sums) {
		h.Write([]byte(sum))
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

func compileSpec(spec ax.ScheduleSpec) (*zone, rule, []*Error) {
	z, err := loadZone(zoneName(spec))
	if err != nil {
		// What else is wrong is told too, as far as it needs no zone.
		faults := []*Error{err}
		if spec.Cron != "" {
			_, more := parseCron(spec.Cron)
			faults = append(faults, more...)
		}
		return nil, nil, faults
	}
	var faults []*Error
	from := minMs
	if spec.From != "" {
		if from, err = z.parseInstant(spec.From); err != nil {
			err.Attribute = "from"
			faults = append(faults, err)
		}
	}
	r, more := compileKind(spec, z, from)
	if faults = append(faults, more...); len(faults) > 0 {
		return nil, nil, faults
	}
	return z, r, nil
}

func compileKind(spec ax.ScheduleSpec, z *zone, from int64) (rule, []*Error) {
	kinds := 0
	for _, set := range []bool{spec.Cron != "", spec.Every != 0, len(spec.At) > 0} {
		if set {
			kinds++
		}
	}
	switch {
	case kinds > 1:
		return nil, []*Error{{
			Summary: "More than one kind of schedule",
			Detail:  "A schedule block has exactly one of cron, every and at. Several schedule blocks in one task fire as their union.",
		}}
	case spec.Cron != "":
		fields, faults := parseCron(spec.Cron)
		if len(faults) > 0 {
			return nil, faults
		}
		return &cronRule{cronFields: fields, zone: z, fromMs: from}, nil
	case spec.Every != 0:
		return compileEvery(spec, z, from)
	case len(spec.At) > 0:
		return compileAt(spec, z, from)
	default:
		return nil, []*Error{{
			Summary: "No kind of schedule",
			Detail:  "A schedule block has exactly one of cron, every (longer than 0s) and at.",
		}}
	}
}

func zoneName(spec ax.ScheduleSpec) string {
	if spec.Timezone == "" {
		return "UTC"
	}
	return spec.Timezone
}

// everyRule fires each every ms, counted from anchor in both directions, but
// not before fromMs.
type everyRule struct {
	anchor, every, fromMs int64
}

func compileEvery(spec ax.ScheduleSpec, z *zone, from int64) (rule, []*Error) {
	if spec.Every < 0 {
		return nil, []*Error{{
			Attribute: "every",
			Summary:   fmt.Sprintf("Interval %s is negative", spec.Every),
			Detail:    "every is a duration longer than 0s, such as \"90m\".",
		}}
	}
	anchor := from
	if spec.From == "" {
		anchor, _ = z.instant(0) // 1970-01-01T00:00 on the zone's clocks
		anchor *= 1000
	}
	return &everyRule{anchor: anchor, every: int64(spec.Every), fromMs: from}, nil
}

func (r *everyRule) next(afterMs int64) (int64, bool) {
	afterMs = max(afterMs, r.fromMs-1)
	wait := r.every - floorMod(afterMs-r.anchor, r.every)
	if wait > maxMs-afterMs {
		return 0, false
	}
	return afterMs + wait, true
}

func (r *everyRule) digest(h hash.Hash) {
	fmt.Fprintf(h, "every %d %d %d", r.every, floorMod(r.anchor, r.every), r.fromMs)
}

func floorMod(a, b int64) int64 {
	if m := a % b; m < 0 {
		return m + b
	} else {
		return m
	}
}

// atRule fires at fixed instants, in ascending order, each once.
type atRule struct {
	instants []int64
}

func compileAt(spec ax.ScheduleSpec, z *zone, from int64) (rule, []*Error) {
	r := &atRule{}
	var faults []*Error
	for i, text := range spec.At {
		ms, err := z.parseInstant(text)
		if err != nil {
			err.Attribute, err.Item = "at", i
			faults = append(faults, err)
			continue
		}
		if ms >= from {
			r.instants = append(r.instants, ms)
		}
	}
	slices.Sort(r.instants)
	r.instants = slices.Compact(r.instants)
	return r, faults
}

func (r *atRule) next(afterMs int64) (int64, bool) {
	i, found := slices.BinarySearch(r.instants, afterMs)
	if found {
		i++
	}
	if i == len(r.instants) {
		return 0, false
	}
	return r.instants[i], true
}

func (r *atRule) digest(h hash.Hash) {
	h.Write([]byte("at"))
	_ = binary.Write(h, binary.LittleEndian, r.instants) // a hash takes all
}
