package ax

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// ObjectKind says what a definition defines. Its values are stored.
type ObjectKind string

// The kinds built so far; dependency, calendar and channel are designed and join
// them here.
const (
	KindTask   ObjectKind = "task"
	KindPlugin ObjectKind = "plugin"
)

// Address returns how people name an object: its kind, a dot and its name,
// as in task.report or task.refresh["eu"].
func Address(kind ObjectKind, name string) string { return string(kind) + "." + name }

// Definition is one declared object as config hands it to planner. Source is
// where it was written; it is shown to people and never stored, so moving a
// block inside a file changes nothing.
type Definition struct {
	Kind   ObjectKind
	Name   string // with the for_each key, as in refresh["eu"]
	Task   *TaskSpec
	Plugin *PluginSpec
	Source Range
}

// Address returns the definition's address.
func (d Definition) Address() string { return Address(d.Kind, d.Name) }

// Canonical returns the definition as the canonical JSON that is stored, and
// its content hash (lower-case hex SHA-256 of that JSON). Equal definitions
// give equal bytes whatever file they stood in. It panics when the
// definition's kind has no body, which is a programmer's error.
func (d Definition) Canonical() (body []byte, hash string) {
	var spec any
	switch {
	case d.Kind == KindTask && d.Task != nil:
		spec = d.Task
	case d.Kind == KindPlugin && d.Plugin != nil:
		spec = d.Plugin
	default:
		panic(fmt.Sprintf("unknown definition kind %q", d.Kind))
	}
	body, err := json.Marshal(spec)
	if err != nil {
		panic(fmt.Sprintf("definition %s: %v", d.Address(), err))
	}
	sum := sha256.Sum256(body)
	return body, hex.EncodeToString(sum[:])
}

// Configuration is what one folder (or file) of HCL declares: everything its
// stack owns.
type Configuration struct {
	Stack       string
	Definitions []Definition
	// Origin is the absolute path of the folder or file it was read from.
	Origin string
	// Hash is a hash over all definitions and the stack's name; the order and
	// names of files do not change it.
	Hash string
}

// TaskSpec defines what to run and when. Field tags give the language's name
// (ax), default (default) and one line of documentation (doc); effective
// values are stored, so a later change of a built-in default never changes a
// stored definition. It has more than 15 fields because it is the one list of
// what a task may say.
type TaskSpec struct {
	Handler      HandlerSpec       `json:"handler" ax:"handler" doc:"What runs: the handler's name and its body."`
	Schedules    []ScheduleSpec    `json:"schedule,omitempty" ax:"schedule" doc:"When it is due; the union of all blocks. None: only by hand."`
	Enabled      bool              `json:"enabled" ax:"enabled" default:"true" doc:"The declared off switch."`
	Timeout      Duration          `json:"timeout" ax:"timeout" default:"1h" doc:"Longest run of one attempt; \"0s\" is none."`
	KillAfter    Duration          `json:"kill_after" ax:"kill_after" default:"10s" doc:"Time between TERM and KILL of the attempt's processes."`
	StartWithin  Duration          `json:"start_within,omitempty" ax:"start_within" doc:"Not started so long after due: skipped; none, or \"0s\", waits for ever. Attempts after the first are retry.within's."`
	Retry        RetrySpec         `json:"retry" ax:"retry" doc:"Whether and when a failed attempt is tried again."`
	Misfire      MisfireSpec       `json:"misfire" ax:"misfire" doc:"What becomes of slots missed in an outage."`
	Concurrency  int               `json:"concurrency" ax:"concurrency" default:"1" doc:"Instances at work at once, 1 to 10000."`
	Overlap      Overlap           `json:"overlap" ax:"overlap" default:"queue" doc:"What a firing at the concurrency limit does: queue, latest, skip, replace or allow."`
	Heartbeat    Duration          `json:"heartbeat,omitempty" ax:"heartbeat" doc:"Without a sign of life (output, progress) for so long an attempt is stopped and lost. Without it quiet is alive."`
	Pool         string            `json:"pool,omitempty" ax:"pool" doc:"The named places of a host that it fills; without it those of its handler."`
	Priority     int               `json:"priority,omitempty" ax:"priority" default:"0" doc:"Who of those that wait for a place of the pool goes first, -100 to 100: the higher; each minute of waiting counts for one."`
	Idempotent   bool              `json:"idempotent" ax:"idempotent" default:"true" doc:"false: never run again when an attempt's end is unknown."`
	ErrorClasses []ErrorClassSpec  `json:"error_class,omitempty" ax:"error_class" doc:"What failures of the handler are of another class than failed, in the order they are tried."`
	FreezeAfter  int               `json:"freeze_after,omitempty" ax:"freeze_after" default:"0" doc:"So many finally failed instances in a row freeze the task; 0 never."`
	Labels       map[string]string `json:"labels,omitempty" ax:"labels" doc:"For selection."`
	Owner        string            `json:"owner,omitempty" ax:"owner" doc:"Who to ask."`
	Description  string            `json:"description,omitempty" ax:"description" doc:"For people."`
}

// PoolName returns the pool whose places the task's attempts fill: the one it
// chose, else the one that has its handler's name.
func (s *TaskSpec) PoolName() string { return cmp.Or(s.Pool, s.Handler.Name) }

// MaxPriority bounds a task's priority, on both sides of 0.
const MaxPriority = 100

// PluginSpec says which program of a host's plugin folder a plugin is, and what
// it is given.
type PluginSpec struct {
	Path    string   `json:"path" ax:"path" doc:"The file, in axd's plugin folder; by default ax-handler-NAME."`
	SHA256  string   `json:"sha256,omitempty" ax:"sha256" doc:"Checked before each start; another file is not started."`
	Version string   `json:"version,omitempty" ax:"version" doc:"For people."`
	Env     []string `json:"env,omitempty" ax:"env" doc:"Names of axd's environment that are passed through."`
}

// HandlerSpec names a handler and carries its body.
type HandlerSpec struct {
	Name string `json:"name"`
	// Body is canonical JSON (sorted keys, no blanks) that the handler's
	// schema accepted.
	Body json.RawMessage `json:"body"`
}

// ScheduleSpec is one schedule block. Exactly one of Cron, Every and At is set.
type ScheduleSpec struct {
	Cron     string   `json:"cron,omitempty" ax:"cron" doc:"Unix cron: minute hour day month weekday, or @daily and its kin."`
	Every    Duration `json:"every,omitempty" ax:"every" doc:"A fixed interval counted from the anchor (from, else 1970-01-01T00:00 in timezone)."`
	At       []string `json:"at,omitempty" ax:"at" doc:"Instants, RFC 3339 or local in timezone."`
	Timezone string   `json:"timezone" ax:"timezone" default:"UTC" doc:"IANA zone name."`
	// From is RFC 3339, or local time in Timezone: no firing before it, and
	// the anchor of Every.
	From string `json:"from,omitempty" ax:"from" doc:"No firing before it; anchor of every."`
}

// ErrorClassSpec says which failures (class failed) are of another class. The
// label of the block is the class.
type ErrorClassSpec struct {
	Class      ErrorClass `json:"class"`
	ExitCodes  []int      `json:"exit_codes,omitempty" ax:"exit_codes" doc:"Exit codes, 1 to 255; 128 and the signal's number for a process that was killed."`
	HTTPStatus []int      `json:"http_status,omitempty" ax:"http_status" doc:"Statuses of a response, 100 to 599."`
	Match      string     `json:"match,omitempty" ax:"match" doc:"A regular expression (RE2) that the error's text has; tried after the codes."`
}

// MaxMatchBytes bounds ErrorClassSpec.Match.
const MaxMatchBytes = 1000

// RetrySpec says when a failed attempt is tried again.
type RetrySpec struct {
	Max         int          `json:"max" ax:"max" default:"3" doc:"Attempts after the first, 0 to 1000."`
	Initial     Duration     `json:"initial" ax:"initial" default:"10s" doc:"Wait before the first retry."`
	Factor      float64      `json:"factor" ax:"factor" default:"2" doc:"Growth of the wait; 1 is a fixed interval."`
	MaxInterval Duration     `json:"max_interval" ax:"max_interval" default:"5m" doc:"Longest wait."`
	Jitter      float64      `json:"jitter" ax:"jitter" default:"0.2" doc:"Part of the wait that is spread, 0 to 1."`
	On          []ErrorClass `json:"on" ax:"on" doc:"Error classes that are retried."`
	Within      Duration     `json:"within,omitempty" ax:"within" doc:"No retry starts later than this after the slot was due."`
}

// MisfireSpec says what becomes of slots that were missed in an outage.
type MisfireSpec struct {
	Policy   MisfirePolicy `json:"policy" ax:"policy" default:"once" doc:"once (the newest), all or skip."`
	Grace    Duration      `json:"grace" ax:"grace" default:"1m" doc:"A slot older than this is a misfire."`
	Max      int           `json:"max" ax:"max" default:"100" doc:"Most slots that all runs, 1 to 10000."`
	OnResume MisfirePolicy `json:"on_resume" ax:"on_resume" default:"skip" doc:"The same choice for slots of a hold or a disabled stretch."`
}

// MisfirePolicy decides on a backlog of slots as a whole.
type MisfirePolicy string

// The misfire policies.
const (
	MisfireOnce MisfirePolicy = "once" // the newest slot runs
	MisfireAll  MisfirePolicy = "all"  // the newest Max slots run, in due order
	MisfireSkip MisfirePolicy = "skip" // none runs
)

// MisfirePolicies lists them as the language spells them.
var MisfirePolicies = []MisfirePolicy{MisfireOnce, MisfireAll, MisfireSkip}

// Overlap decides what a firing does when its task is at its concurrency.
type Overlap string

// The overlap policies; runtime/rules gives their exact meaning.
const (
	OverlapQueue   Overlap = "queue"   // one waits, the newcomer is skipped beyond it
	OverlapLatest  Overlap = "latest"  // one waits, the newcomer takes its place
	OverlapSkip    Overlap = "skip"    // the newcomer is skipped
	OverlapReplace Overlap = "replace" // the oldest is cancelled, the newcomer waits for its end
	OverlapAllow   Overlap = "allow"   // up to MaxWaiting wait
)

// Overlaps lists them as the language spells them.
var Overlaps = []Overlap{OverlapQueue, OverlapLatest, OverlapSkip, OverlapReplace, OverlapAllow}

// MaxWaiting is how many instances of a task may wait under OverlapAllow.
const MaxWaiting = 1000

// ErrorClass says what kind of end an attempt had that was no success.
type ErrorClass string

// The error classes.
const (
	ClassTransient ErrorClass = "transient" // network, 502, 504: soon better
	ClassResource  ErrorClass = "resource"  // 429, 503, full: better later
	ClassFailed    ErrorClass = "failed"    // the handler said so: exit code, status
	ClassPermanent ErrorClass = "permanent" // never better: never retried
	ClassTimeout   ErrorClass = "timeout"   // ran longer than its timeout
	ClassLost      ErrorClass = "lost"      // its end is unknown
	ClassCancelled ErrorClass = "cancelled" // a person or a rule stopped it
)

// RetryClasses lists the classes that retry.on may name.
var RetryClasses = []ErrorClass{ClassTransient, ClassResource, ClassFailed, ClassTimeout, ClassLost}

// MappedClasses lists the classes that error_class may give a failure, in the
// order in which their match is tried: the more careful first.
var MappedClasses = []ErrorClass{ClassPermanent, ClassResource, ClassTransient}

// DefaultRetryOn is retried without a retry block; RetryBlockOn with a block
// that does not say on.
var (
	DefaultRetryOn = []ErrorClass{ClassTransient, ClassResource, ClassLost}
	RetryBlockOn   = RetryClasses
)
