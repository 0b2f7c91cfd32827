package why

import "fmt"

// Outcome is how a check ended.
type Outcome string

// The outcomes.
const (
	Yes     Outcome = "yes"
	No      Outcome = "no"
	Unknown Outcome = "unknown" // the store does not tell
)

// Check is one question that was asked, with what answers it.
type Check struct {
	Question string
	Outcome  Outcome
	Evidence string // "" none
}

// Code names an answer for programs. Its values are printed.
type Code string

// The codes of what a task is doing or kept from doing.
const (
	Deleted      Code = "deleted"
	Unreadable   Code = "unreadable"  // this program cannot read the definition
	NoSchedule   Code = "no_schedule" // it starts only by hand
	Disabled     Code = "disabled"
	Held         Code = "held"
	Exhausted    Code = "exhausted"      // its schedule has no slot left
	NextDiffers  Code = "next_differs"   // next_fire_time is not what the schedule says
	DaemonDown   Code = "axd_down"       // no axd runs on the store
	DaemonApart  Code = "axd_apart"      // an axd runs beside the store and has not joined it
	ClockDoubted Code = "clock_doubted"  // the clock was set, and axd waits until it is confirmed
	NoHandler    Code = "no_handler"     // the running axd does not offer its handler
	NoPool       Code = "no_pool"        // the running axd has no pool of the name it chose
	PluginDown   Code = "plugin_down"    // the plugin that has its handler does not run
	BodyRefused  Code = "body_refused"   // the handler that axd offers does not accept its body
	Unclaimed    Code = "due_unclaimed"  // a slot is due and axd has not claimed it
	Comes        Code = "comes"          // all is well: its next slot lies ahead
	BackOff      Code = "back_off"       // the next attempt waits for its time
	Turn         Code = "turn"           // others of the task go first
	Unstopped    Code = "unstopped"      // an ended attempt's processes still hold the place
	Unkillable   Code = "unkillable"     // killed processes do not end, and hold the place
	Place        Code = "place"          // every place of its pool may be taken
	Starting     Code = "starting"       // nothing keeps it: axd is about to hand it over
	Running      Code = "running"        // its handler works
	Paused       Code = "paused"         // its attempt was paused, and holds its place
	Handed       Code = "handed"         // given to an executor that has not begun
	Stopping     Code = "stopping"       // a cancel was asked for
	Orphaned     Code = "axd_of_it_gone" // the axd that it was handed to does not run
	BeforeBirth  Code = "not_yet_created"
	DeletedThen  Code = "deleted_then"
	DisabledThen Code = "disabled_then"
	NotASlot     Code = "not_a_slot"
	BeforeFrom   Code = "before_from"
	ClockSkips   Code = "clock_skips"   // the clocks skipped its reading: it fired at the change
	ClockRepeats Code = "clock_repeats" // the reading came twice: it fired the first time
	OtherVersion Code = "other_version" // a slot of a version that was not in force
	HeldThen     Code = "held_then"
	Misfired     Code = "misfired" // missed in an outage, and the policy did not run it
	NoRecord     Code = "no_record"
	Forgotten    Code = "forgotten" // retention has deleted what became of it
)

// The codes of how an instance ended.
const (
	Succeeded        Code = "success"
	SucceededLate    Code = "success_late" // claimed more than a minute after it was due
	Failed           Code = "failed"
	TimedOut         Code = "timeout"
	Lost             Code = "lost"
	Cancelled        Code = "cancelled"
	CancelledForNew  Code = "cancelled_by_overlap" // overlap = replace: a newer firing took over
	SkippedOverlap   Code = "skipped_overlap"
	SkippedReplaced  Code = "skipped_replaced"
	SkippedTooLate   Code = "skipped_start_within" // it was not started in time
	SkippedOtherwise Code = "skipped"
)

// Codes lists all codes.
var Codes = []Code{
	Deleted, Unreadable, NoSchedule, Disabled, Held, Exhausted,
	NextDiffers, DaemonDown, DaemonApart, NoHandler, NoPool, PluginDown, BodyRefused, ClockDoubted, Unclaimed, Comes,
	BackOff, Turn, Unstopped, Unkillable, Place, Starting, Running, Paused, Handed,
	Stopping, Orphaned, BeforeBirth, DeletedThen, DisabledThen, NotASlot,
	BeforeFrom, ClockSkips, ClockRepeats, OtherVersion, HeldThen, Misfired,
	NoRecord, Forgotten, Succeeded, SucceededLate, Failed, TimedOut, Lost,
	Cancelled, CancelledForNew, SkippedOverlap, SkippedReplaced, SkippedTooLate, SkippedOtherwise,
}

// Answer is the first cause, in one sentence, and what to do about it.
type Answer struct {
	Code   Code
	Text   string
	Remedy string // "" nothing is to be done
}

// Explanation is the list of checks and the answer they give.
type Explanation struct {
	Answer Answer
	Checks []Check
}

// answered reports whether a check has given the answer.
func (x *Explanation) answered() bool { return x.Answer.Code != "" }

func (x *Explanation) yes(question, evidence string, args ...any) {
	x.Checks = append(x.Checks, Check{question, Yes, sprint(evidence, args)})
}

func (x *Explanation) unknown(question, evidence string, args ...any) {
	x.Checks = append(x.Checks, Check{question, Unknown, sprint(evidence, args)})
}

// no adds a check that is a cause; the first one of an explanation answers it.
func (x *Explanation) no(question, evidence string, a Answer) {
	x.Checks = append(x.Checks, Check{question, No, evidence})
	x.settle(a)
}

// settle answers, unless a check before has.
func (x *Explanation) settle(a Answer) {
	if !x.answered() {
		x.Answer = a
	}
}

func sprint(format string, args []any) string {
	if len(args) == 0 {
		return format
	}
	return fmt.Sprintf(format, args...)
}
