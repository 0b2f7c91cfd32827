// Package host starts executors, the processes in which handlers run, and
// keeps them running. It owns their processes and the one stream to each, and
// is the ax.Executors that dispatch hands jobs to.
//
// A process's life:
//
//	down ──start, handshake, describe, session──> up ──exit, broken stream──> down
//	  └──────────── fails ──> back-off ──> again    │ ^
//	                       replaced program: drains ┘ └ session, from an earlier host
//
// Executors outlive the host. Each has a folder with a record by which the next
// host knows it: pid, start of the process and of the kernel, socket, secret,
// sha256. Its process is watched and signalled through a pidfd only. A host that
// leaves closes its sessions; one that starts opens them again, and takes over
// attempts, reports and output. When a session breaks otherwise the process is
// killed, and it is down only when it was seen to exit and everything in its
// session (its whole process tree, but for what detached itself) is gone and its
// last words are read. Only then are its attempts reported lost, each once.
//
// What the host remembers is, for each job until it is acknowledged, whether
// it waits, was sent or is over, and which process has it. A job handed over
// twice is sent twice while its process lives, which knows it, and never to
// another one. A process that drains takes no jobs and is ended when the end of
// its last one is acknowledged.
//
// Implementation: one mutex guards jobs and queues. An executor is one command:
// its supervisor starts and changes processes. A link is one process with its
// one stream, a reader and a writer of it. One goroutine hands reports to
// dispatch and another one output to the log. Output moves against credit: 1 MiB
// for each process is on its way at most, so a slow log fills no memory.
package host
