package ax

// Edge is one row of the transition table: an instance may go From one status
// To another, and only Who may take it there.
type Edge struct {
	From Status // "" is birth: there was no row
	To   Status
	Who  string
	If   string
}

// Transitions is the law of instance states, as data. Every UPDATE of
// instance.status in every driver names exactly these from-states. Rows that
// need graphs, shards or hosts join it with them.
var Transitions = []Edge{
	{"", StatusPending, "claim", "task row compare-and-set won; unique slot key"},
	{"", StatusDispatched, "claim", "the same, active < max_active, a place of its pool is free"},
	{"", StatusSkipped, "claim", "the overlap rule says so, or start_within is over"},
	{"", StatusPending, "trigger, apply, resume", "a person's start; on_resume; the backlog of a version that ends"},
	{"", StatusPending, "retry", "a person's retry of an ended instance; unique slot key"},
	{"", StatusPending, "backfill", "backfill row compare-and-set won; the slot has no open instance; unique slot key"},
	{StatusPending, StatusDispatched, "dispatch", "active < max_active under the task row's lock"},
	{StatusPending, StatusSkipped, "claim, apply, dispatch", "replaced, deleted, disabled, start_within"},
	{StatusPending, StatusCancelled, "a person", "cancel"},
	{StatusDispatched, StatusPending, "dispatch", "the attempt ended and stopped, a retry is allowed; same attempt"},
	{StatusDispatched, StatusSuccess, "dispatch", "same attempt"},
	{StatusDispatched, StatusFailed, "dispatch", "same attempt"},
	{StatusDispatched, StatusTimeout, "dispatch", "same attempt"},
	{StatusDispatched, StatusCancelled, "dispatch", "same attempt"},
}

// MayMove reports whether the table has a row from one status to another.
func MayMove(from, to Status) bool {
	for _, e := range Transitions {
		if e.From == from && e.To == to {
			return true
		}
	}
	return false
}
