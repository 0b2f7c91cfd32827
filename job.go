package ax

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"time"
)

// HandoverWithin is the time in which an attempt that was handed over must have
// begun; until it has, that is its deadline.
const HandoverWithin = 30 * time.Second

// Job is one attempt as it is handed to an executor.
type Job struct {
	BatchNo        string
	InstanceID     int64
	Attempt        int
	Stack          string
	Task           string // address
	Handler        string
	Body           json.RawMessage
	DueMs          int64
	Timezone       string // of the task's first schedule, else UTC; dates are in it
	UTCOffset      int    // of Timezone at DueMs, seconds east; executors look up no zone
	Timeout        Duration
	KillAfter      Duration
	Heartbeat      Duration // without a sign of life for so long it is lost; 0: never
	IdempotencyKey string   // the same for all attempts of an instance
	// Boot is the start of axd that handed it over, for Recover; "" not known.
	Boot string
}

// Hash identifies the work: an executor that gets one batch number with two
// hashes must refuse the second.
func (j Job) Hash() string {
	h := sha256.New()
	for _, s := range []string{j.BatchNo, j.Stack, j.Task, j.Handler, string(j.Body), j.Timezone} {
		_ = binary.Write(h, binary.BigEndian, int64(len(s)))
		h.Write([]byte(s))
	}
	_ = binary.Write(h, binary.BigEndian, []int64{j.DueMs, int64(j.Timeout), int64(j.KillAfter)})
	if j.Heartbeat != 0 { // so that a job without one has the hash it always had
		_ = binary.Write(h, binary.BigEndian, int64(j.Heartbeat))
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// Executors runs jobs in executor processes; plugins/host implements it and
// dispatch consumes it. No method blocks on a handler. Executors outlive the
// axd that started them; the next one takes them over.
type Executors interface {
	Signals
	// Fit says whether a job of the handler, with this body, can be handed over
	// now. It is cheap and safe for concurrent use; an instance that does not
	// fit waits.
	Fit(h HandlerSpec) Fit
	// Dispatch hands jobs over. What becomes of each comes as Reports: at
	// least one with an end (ended, refused or lost) for every job.
	Dispatch(jobs []Job)
	// Cancel asks to stop attempts: TERM, then KILL after kill_after. Unknown
	// batch numbers are passed over.
	Cancel(orders []CancelOrder)
	// Acknowledge says that ends are durable: the executor forgets the batch.
	Acknowledge(batchNos []string)
	// Recover says which attempts earlier boots of this host left open; it is
	// called once, before any Dispatch. What becomes of each comes as Reports, as
	// if it had been dispatched: from the executor that has it, or, when it is
	// sure that none has, as lost; as unbegun when it is sure that none ever had
	// it, and then it is not known here any more. All others that executors have
	// are stopped.
	Recover(jobs []Job)
	// Reports delivers batches in the order they came. It is never closed
	// while Run of the implementation is running.
	Reports() <-chan []Report
}

// Fit is how a host's executors and a handler block fit together.
type Fit int

// The fits.
const (
	FitNone  Fit = iota // no running executor has the handler
	FitOther            // one has it, and its schema does not accept the body
	FitWell
)

// Signals passes on what people ask of running attempts.
type Signals interface {
	// Signal asks attempts to pause or to go on; each answers by a report of
	// kind signal, or ends. Unknown batch numbers are passed over.
	Signal(orders []SignalOrder)
}

// SignalOrder asks an attempt to pause or to go on.
type SignalOrder struct {
	BatchNo string
	Signal  Signal
}

// CancelOrder asks to stop an attempt, and why.
type CancelOrder struct {
	BatchNo string
	Class   ErrorClass // cancelled or timeout
	Detail  string
}

// ReportKind says what a report tells.
type ReportKind string

// The kinds of report.
const (
	ReportStarted ReportKind = "started" // acknowledged and begun
	ReportEnded   ReportKind = "ended"   // it has a result; gone too when StoppedMs is set
	ReportStopped ReportKind = "stopped" // the processes of an ended attempt are gone
	ReportRefused ReportKind = "refused" // never begun: unknown handler, bad body, other hash
	// ReportUnkillable: its processes do not end though they were killed; Error
	// names them. It comes at any time before it is stopped.
	ReportUnkillable ReportKind = "unkillable"
	ReportLost       ReportKind = "lost" // its executor is verified gone without a result
	// ReportUnbegun: verified, no executor has begun it, and none will unless it is
	// dispatched again. It is no end, and not journaled.
	ReportUnbegun ReportKind = "unbegun"
	// These two are about a running attempt, and are not journaled.
	ReportProgress ReportKind = "progress" // how far it is
	ReportSignal   ReportKind = "signal"   // its answer to a signal; Error says why it refused
)

// Report is what an executor, or its host, says of an attempt. It is as wide as
// what all kinds tell.
type Report struct {
	BatchNo       string          `json:"batch_no"`
	Kind          ReportKind      `json:"kind"`
	Executor      string          `json:"executor,omitempty"`
	Status        Status          `json:"status,omitempty"` // with ended: success, failed, timeout, cancelled
	ErrorClass    ErrorClass      `json:"error_class,omitempty"`
	Error         string          `json:"error,omitempty"`
	StartedMs     int64           `json:"started_ms,omitempty"`
	EndedMs       int64           `json:"ended_ms,omitempty"`
	StoppedMs     int64           `json:"stopped_ms,omitempty"`
	Outputs       json.RawMessage `json:"outputs,omitempty"`
	OutputBytes   int64           `json:"output_bytes,omitempty"`
	OutputDropped int64           `json:"output_dropped,omitempty"`
	// What a failure's class may be found by, 0 none: see rules.Classify.
	ExitCode   int       `json:"exit_code,omitempty"`
	HTTPStatus int       `json:"http_status,omitempty"`
	Progress   *Progress `json:"-"` // with progress, without instance and attempt
	Signal     Signal    `json:"-"` // with signal
	AtMs       int64     `json:"-"` // with signal
}
