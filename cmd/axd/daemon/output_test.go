package daemon

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"

	"github.com/axctl/ax/logs"
	"github.com/axctl/ax/plugins/host"
)

// disk is an appender that may be full.
type disk struct {
	full bool
	kept []string
}

func (d *disk) Append(chunks []logs.Chunk) error {
	if d.full {
		return errors.New("no space")
	}
	for _, c := range chunks {
		d.kept = append(d.kept, fmt.Sprintf("%d.%d %s %s", c.Instance, c.Attempt, c.Stream, c.Data))
	}
	return nil
}

// What a full disk has cost is told to each attempt that lost output, once,
// whoever prints next.
func TestOutputThatIsNotKeptIsNoted(t *testing.T) {
	t.Parallel()
	d := &disk{full: true}
	o := newOutput(d, slog.New(slog.DiscardHandler))
	say := func(instance int64, attempt int, text string) {
		o.write([]host.OutputChunk{{Instance: instance, Attempt: attempt, Stream: "stdout", Data: []byte(text)}})
	}
	say(1, 1, "lost")
	say(2, 1, "lo")
	say(2, 1, "st too")
	o.write(nil)
	d.full = false
	say(3, 2, "kept")
	say(1, 1, "kept too")
	want := []string{
		"1.1 note " + string(missedNote(4)), "2.1 note " + string(missedNote(8)),
		"3.2 stdout kept", "1.1 stdout kept too",
	}
	slices.Sort(d.kept[:min(2, len(d.kept))])
	if !slices.Equal(d.kept, want) {
		t.Errorf("kept %q, want %q", d.kept, want)
	}
}
