// Package host starts executors, the processes in which handlers run, and
// keeps them running. It owns their processes and the one stream to each, and
// is the ax.Executors that dispatch hands jobs to.
//
// An executor's life:
//
//	down ──start, handshake, describe, session──> up ──exit, broken stream──> down
//	  └──────────── fails ──> back-off ──> again
//
// Whatever ends the session, the process is killed, and it is down only when
// it was seen to exit and everything in its session (its whole process tree,
// but for what detached itself) is gone. Only then are its attempts reported
// lost, each once.
//
// What the host remembers is, for each job until it is acknowledged, whether
// it waits, was sent or is over. A job handed over twice is sent twice while
// its executor lives, which knows it, and never to an executor started since.
//
// Implementation: one mutex guards jobs and executors' queues; each executor
// has a supervisor that starts it, a reader and a writer of its stream; one
// goroutine hands reports to dispatch and another one output to the log.
// Output moves against credit: 1 MiB for each executor is on its way at most,
// so a slow log fills no memory. All processes are started from one OS thread
// that lives as long as Run, because the kernel's parent-death signal means
// the parent's thread.
package host
