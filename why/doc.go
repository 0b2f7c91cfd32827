// Package why explains a task: why it runs or does not run now, and why it did
// or did not fire at an instant. It owns the order in which causes are asked
// for, and their words. Gather reads what is needed through ax.Queries, so that
// it works while axd is down; Explain is pure, from those facts to a list of
// checks. The first check whose outcome is no is the answer; where there is
// none, the last check is.
//
//	now:      exists > runs > waits (hold, axd, handler, back-off, turn, place)
//	          else readable > scheduled > enabled > held > comes > axd > handler > due
//	instant:  existed > readable > slot of the version in force
//	          > instance (its life) or skipped stretch or what kept it from being claimed
//
// What is asked is decided by the same functions that the runtime decides with:
// schedule for slots, runtime/rules for turns.
package why
