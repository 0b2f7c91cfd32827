// Package schedule turns schedule blocks into instants. It owns the cron
// grammar, the time zone database and the answer to "when next?"; nothing else
// in ax computes a firing time. It is pure: no clock, no files, no machine's
// zone.
//
// A task's blocks compile once into a [Schedule]; after that [Schedule.Next]
// is integer arithmetic. Wall-clock times meet changes of offset like this:
//
//	               fixed times          * or a step in minute or hour
//	skipped        once, at the change  not at all
//	shown twice    the first time       both times
//
// A change of three hours or more is a re-setting of the clocks: nothing is
// made up for it and nothing is passed over.
//
// # Implementation
//
// The fields of a cron text are bit sets. A zone is a table of changes of
// offset, taken from the embedded database and repeated each 400 years, as the
// calendar is. Next finds the stretch of constant offset it is in, looks there
// for the first wall reading that matches (the days of a month are one mask,
// hours and minutes one more each), and goes on to the next stretch when the
// reading lies beyond its end. Every and at are arithmetic and a binary
// search. Prev is a bisection over Next, so that both have one truth.
package schedule
