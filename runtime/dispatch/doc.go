// Package dispatch takes instances from pending to their end on one host: it
// gives them to executors, makes their reports durable, writes their ends, and
// decides on retries (by runtime/rules). It owns the host's places per handler,
// the attempts that run, the instances that wait, and the report journal. The
// store is authoritative: everything here is rebuilt from rows by Recover and by
// three sweeps (waiting instances, cancel intents, dispatched rows).
//
//	pending ──turn──> queued ──place──> handing ──stored──> handed ──started──> begun
//	   ^                                   │ blocked, held      │ end reported   │
//	   ├───────────────────────────────────┘                    v                v
//	   └── retry, once stopped ────────────────── ended (journaled, then written) ──> gone
//	                                                └── over (final, processes not gone yet) ──> gone
//
// # Implementation
//
// One goroutine (Run) owns all state. Store calls and the journal's fsync run
// beside it, at most one of each kind at a time; what comes meanwhile waits and
// makes the next batch. Claim's calls (Reserve, Take, Wait) come from another
// goroutine and go through a mutex and an inbox. An attempt's place is freed
// only when its processes are gone and the store has that.
package dispatch
