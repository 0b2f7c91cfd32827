package ax

import (
	"context"
	"math"
)

// Signal is what a person asks of a running attempt, other than to end.
type Signal string

// The signals.
const (
	SignalPause  Signal = "pause"  // stand still, and hold what you have
	SignalResume Signal = "resume" // go on
)

// Signaller is how people signal running attempts.
type Signaller interface {
	// Signal stores the wish that the running attempt of an instance pauses or
	// goes on; the host that has it passes it on. A wish that is there, or
	// fulfilled, already changes nothing. ErrNotFound for an unknown id,
	// ErrConflict when nothing of it runs, when it is to be cancelled, and when
	// it is to go on and no pause was asked for.
	Signal(ctx context.Context, r SignalRequest) error
}

// SignalRequest asks to signal the running attempt of an instance.
type SignalRequest struct {
	InstanceID int64
	Signal     Signal
	NowMs      int64
	Who        string
}

// Live is what dispatch tells the store of attempts while they run, and what
// people ask of them meanwhile.
type Live interface {
	// SignalStates returns, of the host's running attempts, those that have not
	// answered a signal or are paused.
	SignalStates(ctx context.Context, host string) ([]SignalState, error)
	// Signalled writes what attempts answered. It is idempotent; what concerns
	// no running attempt, or none that was signalled, is passed over.
	Signalled(ctx context.Context, as []SignalAnswer) error
	// Progressed replaces how far attempts say that they are. What is older
	// than what is there, or of no instance, is passed over.
	Progressed(ctx context.Context, ps []Progress) error
}

// SignalState is what was asked last of a running attempt, and how it stands.
type SignalState struct {
	InstanceID int64
	Attempt    int
	Signal     Signal
	Who        string
	AskedMs    int64
	AnsweredMs int64  // 0: not yet
	Refused    string // why the attempt did not do it; "" it did
	PausedMs   int64  // it stands still since; 0 it does not
	PausedBy   string
}

// SignalAnswer is what an attempt answered to a signal.
type SignalAnswer struct {
	InstanceID int64
	Attempt    int
	Signal     Signal
	Refused    string // why it did not do it; "" it did
	AtMs       int64
	DeadlineMs int64 // when it must end, once it goes on; 0 nothing is known
	NowMs      int64
}

// Progress is how far an attempt says that it is.
type Progress struct {
	InstanceID int64
	Attempt    int
	AtMs       int64
	Percent    float64 // 0 to 100; NoPercent when it did not say
	Text       string  // one line, at most MaxProgressBytes
}

// Clean returns p as every store can keep it: its number in hundredths, its text
// bounded.
func (p Progress) Clean() Progress {
	if p.Percent < 0 || math.IsNaN(p.Percent) {
		p.Percent = NoPercent
	} else {
		p.Percent = math.Round(min(p.Percent, 100)*100) / 100
	}
	p.Text = CleanText(p.Text, MaxProgressBytes)
	return p
}

// NoPercent is Progress.Percent of an attempt that said no number.
const NoPercent = -1

// MaxProgressBytes bounds a progress text.
const MaxProgressBytes = 200

// SignalAsked is what the life line says of a signal when it was asked for.
const SignalAsked = "asked for"

// Cause returns how the life line names the signal.
func (s Signal) Cause() Cause {
	if s == SignalPause {
		return CausePause
	}
	return CauseResume
}

// Settled reports whether the attempt has answered.
func (s SignalState) Settled() bool { return s.AnsweredMs != 0 }

// Asks reports whether to ask for the signal changes nothing: it is asked for
// and not answered, or the attempt is as it wants.
func (s SignalState) Asks(signal Signal) bool {
	if !s.Settled() {
		return s.Signal == signal
	}
	return signal == SignalPause && s.PausedMs != 0
}

// Answered returns the state after an answer, and what the life line says of
// it: nothing when it is no news. The answer to a signal that another one has
// followed changes what the attempt does, and leaves open what was asked.
func (s SignalState) Answered(a SignalAnswer) (after SignalState, news string) {
	after = s
	switch {
	case a.Refused != "":
	case a.Signal == SignalPause && s.PausedMs == 0:
		after.PausedMs, after.PausedBy = a.AtMs, s.Who
		news = "it is paused"
	case a.Signal == SignalResume && s.PausedMs != 0:
		after.PausedMs, after.PausedBy = 0, ""
		news = "it goes on after " + Duration(max(a.AtMs-s.PausedMs, 0)).Rough()
	}
	if a.Signal == s.Signal && !s.Settled() {
		after.AnsweredMs, after.Refused = a.NowMs, CleanText(a.Refused, MaxErrorBytes)
		if a.Refused != "" {
			news = "refused: " + a.Refused
		}
	}
	return after, news
}
