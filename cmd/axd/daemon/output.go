package daemon

import (
	"fmt"
	"log/slog"
	"sync"

	"github.com/axctl/ax/logs"
	"github.com/axctl/ax/plugins/host"
)

// output writes what attempts print to segment files. A full disk costs output,
// never an attempt: what could not be written is counted, and the first batch
// that can be written begins with a note for each attempt that says so.
type output struct {
	w   appender
	log *slog.Logger

	mu     sync.Mutex        // guards missed: chunks come from several executors
	missed map[attempt]int64 // bytes not written
}

// appender is a logs.Writer.
type appender interface{ Append([]logs.Chunk) error }

type attempt struct {
	instance int64
	number   int
}

// maxMissed is how many attempts are remembered to have lost output.
const maxMissed = 10_000

func newOutput(w appender, log *slog.Logger) *output {
	return &output{w: w, log: log, missed: map[attempt]int64{}}
}

func (o *output) write(chunks []host.OutputChunk) {
	if len(chunks) == 0 {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	batch := make([]logs.Chunk, 0, len(o.missed)+len(chunks))
	for a, n := range o.missed {
		batch = append(batch, logs.Chunk{
			Instance: a.instance, Attempt: a.number, Stream: logs.Note, AtMs: chunks[0].AtMs, Data: missedNote(n),
		})
	}
	for _, c := range chunks {
		batch = append(batch, logs.Chunk{Instance: c.Instance, Attempt: c.Attempt, Stream: stream(c.Stream), AtMs: c.AtMs, Data: c.Data, Seq: c.Seq})
	}
	if err := o.w.Append(batch); err != nil {
		if len(o.missed) == 0 {
			o.log.Error("output is not kept: attempts go on without it", "error", err, "hint", "free space in the data folder")
		}
		for _, c := range chunks {
			a := attempt{c.Instance, c.Attempt}
			if _, known := o.missed[a]; known || len(o.missed) < maxMissed {
				o.missed[a] += int64(len(c.Data))
			}
		}
		return
	}
	if len(o.missed) > 0 {
		o.log.Info("output is kept again")
		clear(o.missed)
	}
}

func stream(name string) logs.Stream {
	switch name {
	case "stdout":
		return logs.Stdout
	case "stderr":
		return logs.Stderr
	case "note":
		return logs.Note
	default:
		panic("unknown stream " + name)
	}
}

func missedNote(n int64) []byte {
	return fmt.Appendf(nil, "[ax: %d bytes of output were not kept: the log could not be written]\n", n)
}
