// Package runtime is the working part of axd: it turns due slots into
// instances and instances into finished work. Engine composes the parts and
// owns no decisions:
//
//	store ──scan──> claim (wheel) ──claimed rows──> dispatch ──jobs──> executors
//	  ^                                              │   ^                │
//	  └──────────── finish <── journal <─────────────┘   └─── reports ────┘
//
// Claim compares and sets task rows and lets instances be born; dispatch gives
// them to executors, makes their reports durable and writes their ends. Both
// hold hints only: whatever is in memory is rebuilt from rows, and every open
// row is found by a sweep (claim's scan, dispatch's sweep of waiting instances
// and its reconciliation of dispatched ones).
//
// While the store cannot be reached claims stop, running work goes on and its
// reports wait in the journal; all resumes by itself.
package runtime
