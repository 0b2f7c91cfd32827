// Package claim turns due slots into instances. It owns a timing wheel of the
// tasks that are due soon and a cache of compiled definitions; the task rows in
// the store are authoritative. A claim is a compare-and-set on the row as it was
// read, so a wheel that is wrong (early, late, of another version) costs a
// reload and nothing else.
//
//	scan ──> wheel ──due──> decide (rules) ──> reserve a place ──> Claims.Claim
//	  ^                                                              │
//	  └────────────── lost, unknown: reload <────────────────────────┤
//	                                                                 v
//	                              born dispatched: Take · born pending: Wait
//
// # Implementation
//
// One goroutine owns all state and makes its store calls itself: while one
// commits, the slots that become due make the next batch. A scan has no lower
// bound on lateness. Live slots go before backlogs, which are written at most
// maxSlots rows a wake, next_fire_time moving only as far as rows were written.
// A task whose schedule does not move forward is quarantined, never spun on.
package claim
