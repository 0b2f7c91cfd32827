// Package ax holds the words of ax, as data: what users define (TaskSpec), what
// becomes of it (Instance and its transition table), what an apply writes
// (ChangeSet), and the ports through which the other packages meet. It has no
// behaviour: no clock, no cron, no SQL, no processes.
//
// # One request traced
//
// A person writes a task block and runs axctl apply. Package config reads the
// folder's HCL and checks all of it, the handler's body too, against the schema
// that the handler declares; from there on a definition is canonical JSON.
// planner.Diff compares that with what Definitions.ReadStack found and computes
// what the change does to time; Definitions.Apply writes the new version, the
// revision and the moved next_fire_time in one transaction.
//
// On the host axd notices the commit (Watcher.Changed), and runtime/claim puts
// the task's next_fire_time on its timing wheel. When it is due, claim computes
// the slot after it, reserves a place of its pool, and calls Claims.Claim:
// one transaction compares and sets the task's row and inserts the instance,
// born dispatched. Only now runtime/dispatch gives the Job to the executor
// process (plugins/host, through a stream of batches), under a batch number
// that is a function of the row. The executor acknowledges, runs the handler
// (plugins/sdk), and reports; dispatch makes the report durable in its journal
// and then final in the store (Dispatches.Finish), which frees the task's
// place, and acknowledges it. What the handler printed went to a segment file
// (logs) as it came. axctl instance reads the row and its life line.
//
//	  git                                    each host
//	*.hcl ──> axctl ── plan, apply ──┐    ┌──────── axd ─────────────────────────┐
//	          config, planner        ▼    │ wheel ─> claim ─> dispatch ─> plugins │
//	                              ┌───────┐│ (hint)  (compare   (places)  (executor│
//	                              │ store │┤          and set)           processes)│
//	                              └───────┘│ report <── journal <── Report         │
//	                          the only truth└──────────────────────────────────────┘
//
// # States of an instance
//
//	slot due ──claim──> pending ──dispatch──> dispatched ──report──> success | failed | timeout | cancelled
//	   │                  ▲                       │
//	   │ not run          └── retry: attempt+1 ───┘
//	   ▼
//	skipped(reason), or part of a skipped stretch
//
// Transitions is the law of these moves, as data.
//
// # What holds
//
// The store is the only truth: wheel, queues and counters in memory are hints
// that are rebuilt from rows. A slot's row and the move of next_fire_time are
// one transaction, so no slot is lost between them and none can have two.
// Final states are written once. An instance keeps the definition version it
// was born with.
//
// # Layers
//
// layers.txt says who may import whom, and layers_test.go proves it. Beyond the
// words, schedule, planner, why, runtime/wheel and runtime/rules are pure: time is
// an argument. Only cmd/axctl, cmd/axd/daemon, drills and bench open a store.
package ax
