// Package shell is the handler that runs commands and scripts. It owns the
// processes of its attempts: each attempt is a process group, and when Run
// returns none of its processes is left.
//
// The environment is built from nothing, so that no variable of the daemon
// reaches a task:
//
//	PATH              /usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
//	HOME USER LOGNAME of the user it runs as
//	SHELL             /bin/sh
//	LANG              C.UTF-8
//	AX_STACK AX_TASK  the task's stack and address
//	AX_INSTANCE AX_ATTEMPT AX_BATCH_NO AX_IDEMPOTENCY_KEY
//	AX_DUE            the slot's instant, RFC 3339, in the task's zone
//	AX_DATE           its date there; AX_PREV_DATE the calendar day before
//	AX_OUTPUT         a file for outputs, one key=value a line; it is there
//	                  once it is written to
//
// and then the task's own env, which may replace any but the AX_ ones.
//
// How it ends: the main process's exit code is the result. What it left
// running in its process group gets TERM and, two seconds later (kill_after, if
// that is shorter), KILL. At timeout or cancel the whole process group gets TERM,
// and all of the attempt KILL after kill_after. When axd is gone everything gets
// KILL. So a background child neither holds up the attempt nor outlives it, and
// the log says that it was killed.
//
// What left the process group is found in one of two ways. Where axd may make
// control groups (cgroup v2, Delegate=yes in the unit; axctl doctor says so) each
// attempt is one, and nothing gets out of it. Elsewhere it is found by the batch
// number in its environment; where it hid that too, it is killed as soon as no
// attempt runs.
//
// Paused, all of an attempt's control group is frozen; where it has none, its
// process group is stopped.
//
// Implementation: the main process is waited for without being reaped, so the
// group's number stays its own while the group is signalled; then everything
// in the group is reaped by number. The executor adopts orphans (child
// subreaper), so all that is left in the group is a child of the executor, and
// "no such child" means the group is empty.
package shell
