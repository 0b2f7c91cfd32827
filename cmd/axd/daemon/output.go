package daemon

import (
	"fmt"
	"log/slog"
	"sync"

	"github.com/axctl/ax/logs"
	"github.com/axctl/ax/plugins/host"
)

// output writes what attempts print to segment files. A full disk costs output,
// never an attempt: what could not be written is counted, and the next chunk
// that can be written is preceded by a note that says so.
type output struct {
	w   *logs.Writer
	log *slog.Logger

	mu     sync.Mutex      // guards missed: chunks come from several executors
	missed map[int64]int64 // instance → bytes not written
}

func newOutput(w *logs.Writer, log *slog.Logger) *output {
	return &output{w: w, log: log, missed: map[int64]int64{}}
}

func (o *output) write(chunks []host.OutputChunk) {
	o.mu.Lock()
	defer o.mu.Unlock()
	batch := make([]logs.Chunk, 0, len(chunks))
	for _, c := range chunks {
		if n := o.missed[c.Instance]; n > 0 {
			batch = append(batch, logs.Chunk{
				Instance: c.Instance, Attempt: c.Attempt, Stream: logs.Note, AtMs: c.AtMs,
				Data: missedNote(n),
			})
		}
		batch = append(batch, logs.Chunk{Instance: c.Instance, Attempt: c.Attempt, Stream: stream(c.Stream), AtMs: c.AtMs, Data: c.Data})
	}
	if err := o.w.Append(batch); err != nil {
		if len(o.missed) == 0 {
			o.log.Error("output is not kept: attempts go on without it", "error", err, "hint", "free space in the data folder")
		}
		for _, c := range chunks {
			o.missed[c.Instance] += int64(len(c.Data))
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
