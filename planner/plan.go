// Package planner compares what a configuration declares with what the store
// has, and says what would change and what that does to time. It owns the Plan,
// the data that the screen, JSON, saved files and apply all read, and the rules
// of effects: next_fire_time moves only where the schedule or the switch
// changed, never backwards, and what is due under a version that ends is
// accounted for by that version.
//
// Everything here is a pure function: no clock, no store, no file.
//
// Implementation: Diff pairs definitions and objects by address and makes a
// step of each pair whose hashes differ. A step holds both versions, compiled,
// and the row; timetable.go decides from it what moves, effects.go tells it.
// ChangeSet makes the same steps from the plan and the rows as they are at
// apply, so only what time has made stale is computed anew. Laws (tested):
// Diff(x, x) is empty, applying Diff(a, b) to a gives b, the order of input
// is irrelevant, and Decode(Encode(p)) is p.
package planner

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/axctl/ax"
)

// FormatVersion is the version of the plan as JSON. A reader takes every plan
// of the same major version that has no fields it does not know.
const FormatVersion = "1.0"

// DefaultNext is how many firings after the next one a plan lists.
const DefaultNext = 3

// Options says how to compare.
type Options struct {
	Destroy bool // as if the configuration declared nothing
	NextN   int  // firings listed after the next one; 0: DefaultNext, at most MaxNext
}

// MaxNext bounds Options.NextN.
const MaxNext = 1000

func (o Options) next() int { return min(cmp.Or(max(o.NextN, 0), DefaultNext), MaxNext) }

// Plan is what an apply would do to one stack. Its JSON is a contract. Instants
// are RFC 3339 with the offset of the schedule's zone, and ms since epoch UTC.
type Plan struct {
	FormatVersion string `json:"format_version"`
	StoreID       string `json:"store_id"` // "" when there was no store
	Stack         string `json:"stack"`
	BaseSerial    int64  `json:"base_serial"`
	Origin        string `json:"origin"`      // of the configuration
	BaseOrigin    string `json:"base_origin"` // of the stack's last apply, "" none
	ConfigHash    string `json:"config_hash"`
	// PlanHash covers actions, addresses and definitions, no instants and no
	// numbers: two plans that do the same have the same, whenever they are made.
	PlanHash string          `json:"plan_hash"`
	MadeAt   string          `json:"made_at"`
	MadeAtMs int64           `json:"made_at_ms"`
	Counts   Counts          `json:"counts"`
	Changes  []PlannedChange `json:"changes"` // by address
	Renames  []Rename        `json:"renames,omitempty"`
	Held     []HeldObject    `json:"held"`
	// Read is the read set: each object of the stack that was there, by
	// address, and its version. When one of them has moved, the plan is stale.
	Read map[string]int `json:"read"`
}

// Counts counts the objects of a plan. Changed, Deleted and Unchanged together
// are those of the stack as it was.
type Counts struct {
	Added     int `json:"added"`
	Changed   int `json:"changed"`
	Deleted   int `json:"deleted"`
	Unchanged int `json:"unchanged"`
}

// Empty reports whether the plan changes nothing.
func (p *Plan) Empty() bool { return len(p.Changes) == 0 }

// PlannedChange is what happens to one object.
type PlannedChange struct {
	Action      ax.Action       `json:"action"`
	Address     string          `json:"address"`
	Kind        ax.ObjectKind   `json:"kind"`
	Name        string          `json:"name"`
	Source      string          `json:"source,omitempty"`       // file:line
	FromVersion int             `json:"from_version,omitempty"` // 0: it is not there
	ToVersion   int             `json:"to_version"`             // FromVersion: only its row is set right
	Attributes  []AttributeDiff `json:"attributes,omitempty"`
	Effects     Effects         `json:"effects"`
	Definition  json.RawMessage `json:"definition,omitempty"` // canonical; none on delete
	Hash        string          `json:"hash,omitempty"`

	spec *ax.TaskSpec // Definition decoded, where it is at hand
}

// AttributeDiff is one attribute that differs. Path is as the language writes
// it: schedule.cron, schedule[1].cron where there are several, handler for the
// handler's name and handler.command for what is in its body. Before or After
// is nil where there is none. A create lists what is not the default.
type AttributeDiff struct {
	Path   string          `json:"path"`
	Before json.RawMessage `json:"before,omitempty"`
	After  json.RawMessage `json:"after,omitempty"`
}

// Effects is what a change does to time.
type Effects struct {
	// The next firing before and after; "" and 0: none. They are equal when
	// the change moves nothing.
	NextFireBefore   string `json:"next_fire_before,omitempty"`
	NextFireBeforeMs int64  `json:"next_fire_before_ms,omitempty"`
	NextFireAfter    string `json:"next_fire_after,omitempty"`
	NextFireAfterMs  int64  `json:"next_fire_after_ms,omitempty"`
	// Moved says that next_fire_time is computed anew.
	Moved bool `json:"moved"`
	// Difference is "1 h earlier", where both are and differ.
	Difference string     `json:"difference,omitempty"`
	Then       []Firing   `json:"then,omitempty"` // the firings after the next one
	Backlog    *Backlog   `json:"backlog,omitempty"`
	InFlight   []InFlight `json:"in_flight,omitempty"`
	Notes      []string   `json:"notes,omitempty"`
	Warnings   []string   `json:"warnings,omitempty"`
}

// Firing is one coming firing.
type Firing struct {
	Due   string `json:"due"`
	DueMs int64  `json:"due_ms"`
}

// Backlog is what was due and not claimed: slots of an outage, a hold or a
// disabled stretch.
type Backlog struct {
	Version int    `json:"version"` // whose slots they are
	First   string `json:"first"`
	FirstMs int64  `json:"first_ms"`
	Last    string `json:"last"`
	LastMs  int64  `json:"last_ms"`
	Starts  int    `json:"starts"`  // slots that run, late
	Skipped int    `json:"skipped"` // slots that do not; -1 over 1,000
	// Reason is the skipped slots', and Policy the rule that decided; of a hold
	// that has ended and an outage after it, the outage's.
	Reason ax.Reason        `json:"reason"`
	Policy ax.MisfirePolicy `json:"policy"`
	// Left says that the schedule goes on, so axd accounts for the slots when
	// it runs, under the new version; Starts and Skipped are 0.
	Left bool `json:"left"`
}

// InFlight tells what becomes of an object's open instances.
type InFlight struct {
	Outcome Outcome `json:"outcome"`
	Count   int     `json:"count"`
	// Instances are the oldest of them, at most three.
	Instances []FlyingInstance `json:"instances"`
}

// FlyingInstance is an open instance.
type FlyingInstance struct {
	ID      int64     `json:"id"`
	Version int       `json:"version"` // that it ends on
	Status  ax.Status `json:"status"`
}

// Outcome is what becomes of an open instance.
type Outcome string

// The outcomes.
const (
	OutcomeEnds Outcome = "ends"    // runs to its end on its version
	OutcomeSkip Outcome = "skipped" // is waiting, and ends as skipped
)

// Rename is a delete and a create of equal definitions. They are told as what
// they are, and this says that it was probably one object.
type Rename struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// HeldObject is an object that people hold. No apply changes that.
type HeldObject struct {
	Address string      `json:"address"`
	Kind    ax.HoldKind `json:"kind"`
	Who     string      `json:"who"`
	Since   string      `json:"since"`
	SinceMs int64       `json:"since_ms"`
	Until   string      `json:"until,omitempty"` // "" until someone resumes it
	UntilMs int64       `json:"until_ms,omitempty"`
	Reason  string      `json:"reason,omitempty"`
}

// instant is ax.FormatInstant, "" for 0, which is none.
func instant(ms int64, loc *time.Location) string {
	if ms == 0 {
		return ""
	}
	return ax.FormatInstant(ms, loc)
}
