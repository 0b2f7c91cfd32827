// Package sdk is all that the author of a handler imports.
//
//	func main() {
//		sdk.Serve("report", sdk.Handler("daily", "Build the daily report.", daily))
//	}
//
//	type Daily struct {
//		Day    string `ax:"day" doc:"Day to report, YYYY-MM-DD."`
//		Format string `ax:"format,optional"`
//	}
//
//	func daily(ctx context.Context, job sdk.Job, in Daily) (sdk.Outputs, error) { … }
//
// Serve is the executor process: it owns the ledger of attempts, their output
// on its way to the log, and every process its handlers began. One stream joins
// it to the host. When that ends the attempts go on, and their timeouts too; the
// next host is told all that was not acknowledged. When none comes within the
// grace time, or on SIGTERM, the attempts are told so (ErrHostGone), whatever
// process is left is killed, what no host knows is written to a file for the
// next one, and the executor exits.
//
// An attempt's life in the ledger:
//
//	job ──> started ──> ended ──> stopped ──acknowledged──> forgotten
//	              └───────────────┘ at once when the handler returns first
//
// A timeout or a cancel ends an attempt at once; it is stopped when its
// handler has returned. A batch number that is known is never started again:
// with the same hash what is known of it is told again, with another hash it
// is refused.
//
// Implementation: one mutex guards the ledger and the queue of output. What
// happened to an attempt is not queued as events: the attempt is marked as
// having news, and the session's writer makes the report from its state when
// it is its turn, so that a short job costs one report and a new session is
// told everything by marking everything. Output is sent against credit, so a
// slow log holds back printing handlers and never a report; it is kept until
// credit says that it is in the log, and numbered, so that a session after a
// host's sudden end sends it again and the log takes it once.
package sdk
