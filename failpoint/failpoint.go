// Package failpoint names instants at which a process can be made to die or to
// stop, so that drills break ax where it hurts and not only where chance does.
//
// The points exist in builds with the tag failpoint only. Otherwise Hit is
// empty, is inlined to nothing, and neither it nor a name of a point is in the
// program. In such a build the variable AX_FAILPOINT chooses one:
//
//	AX_FAILPOINT=claim.commit          SIGKILL itself when it comes there
//	AX_FAILPOINT=claim.commit=3        the third time
//	AX_FAILPOINT=claim.commit=3,stop   SIGSTOP itself instead, until SIGCONT
//
// A call of the store that fails, is late or loses its answer needs no point:
// storetest.Faulty does that at the ports.
package failpoint

// Point is the name of an instant in the program.
type Point string

// The instants around one transaction are begin (before BEGIN), begun (after
// it), commit (all is written, before COMMIT) and committed (nobody has been
// told).
const (
	ClaimBegin        Point = "claim.begin"
	ClaimBegun        Point = "claim.begun"
	ClaimCommit       Point = "claim.commit"
	ClaimCommitted    Point = "claim.committed"
	DispatchBegin     Point = "dispatch.begin"
	DispatchBegun     Point = "dispatch.begun"
	DispatchCommit    Point = "dispatch.commit"
	DispatchCommitted Point = "dispatch.committed"
	StartedBegin      Point = "started.begin"
	StartedCommit     Point = "started.commit"
	StartedCommitted  Point = "started.committed"
	FinishBegin       Point = "finish.begin"
	FinishBegun       Point = "finish.begun"
	FinishCommit      Point = "finish.commit"
	FinishCommitted   Point = "finish.committed"
	ApplyBegin        Point = "apply.begin"
	ApplyBegun        Point = "apply.begun"
	ApplyCommit       Point = "apply.commit"
	ApplyCommitted    Point = "apply.committed"
	CancelBegin       Point = "cancel.begin"
	CancelBegun       Point = "cancel.begun"
	CancelCommit      Point = "cancel.commit"
	CancelCommitted   Point = "cancel.committed"
	PruneBegin        Point = "prune.begin"
	PruneBegun        Point = "prune.begun"
	PruneCommit       Point = "prune.commit"
	PruneCommitted    Point = "prune.committed"
	// Statement is before each statement that changes the store, in whichever
	// transaction.
	Statement Point = "store.statement"
	// Between the store, the executors and the report journal of a host.
	Hand          Point = "job.hand"       // the row is dispatched, the executors were not told
	Send          Point = "job.send"       // before the message with the job
	Sent          Point = "job.sent"       // after it
	JournalAppend Point = "journal.append" // a report came and is written nowhere
	JournalSync   Point = "journal.sync"   // written, before fsync
	JournalSynced Point = "journal.synced" // after it
	Acknowledge   Point = "report.ack"     // the end is in the store, the executor was not told
	Acknowledged  Point = "report.acked"   // it was
	Order         Point = "cancel.order"   // the intent was read, the executor was not told
	Ordered       Point = "cancel.ordered" // it was
	RecoverRead   Point = "recover.read"   // a start knows what was left and has done nothing
	RecoverTaken  Point = "recover.taken"  // it is taken over, the executors were not asked
	RecoverAsked  Point = "recover.asked"  // they were
)

// Points returns all points.
func Points() []Point {
	return []Point{
		ClaimBegin, ClaimBegun, ClaimCommit, ClaimCommitted,
		DispatchBegin, DispatchBegun, DispatchCommit, DispatchCommitted,
		StartedBegin, StartedCommit, StartedCommitted,
		FinishBegin, FinishBegun, FinishCommit, FinishCommitted,
		ApplyBegin, ApplyBegun, ApplyCommit, ApplyCommitted,
		CancelBegin, CancelBegun, CancelCommit, CancelCommitted,
		PruneBegin, PruneBegun, PruneCommit, PruneCommitted,
		Statement, Hand, Send, Sent, JournalAppend, JournalSync, JournalSynced,
		Acknowledge, Acknowledged, Order, Ordered,
		RecoverRead, RecoverTaken, RecoverAsked,
	}
}

// Env is the variable that chooses a point.
const Env = "AX_FAILPOINT"
