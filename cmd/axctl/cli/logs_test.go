package cli

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/axctl/ax"
	"github.com/axctl/ax/logs"
)

func chunk(attempt int, stream logs.Stream, text string) logs.Chunk {
	return logs.Chunk{Instance: 1, Attempt: attempt, Stream: stream, Data: []byte(text)}
}

// feed gives chunks to a sink and ends it.
func feed(t interface{ Fatal(...any) }, sink logSink, chunks ...logs.Chunk) {
	for _, ch := range chunks {
		if err := sink.chunk(ch); err != nil {
			t.Fatal(err)
		}
	}
	if err := sink.end(); err != nil {
		t.Fatal(err)
	}
}

func TestLogTextIsRawForPipesAndEscapedForTerminals(t *testing.T) {
	t.Parallel()
	chunks := []logs.Chunk{
		chunk(1, logs.Stdout, "caf\xc3"),
		chunk(1, logs.Stdout, "\xa9\n\x1b[2Jx\r\n"),
		chunk(1, logs.Stderr, "\xff\x00\t."),
		chunk(1, logs.Note, "10 bytes dropped"),
	}
	var out, notes bytes.Buffer
	feed(t, &logText{out: &out, notes: &notes}, chunks...)
	if got, want := out.String(), "café\n\x1b[2Jx\r\n\xff\x00\t."; got != want {
		t.Errorf("raw: %q, want %q", got, want)
	}
	if notes.String() != "ax: 10 bytes dropped\n" {
		t.Errorf("notes: %q", notes.String())
	}
	out.Reset()
	feed(t, &logText{out: &out, notes: &notes, escape: true}, chunks...)
	if got, want := out.String(), "café\n\\u001b[2Jx\n\\xff\\u0000\t."; got != want {
		t.Errorf("escaped: %q, want %q", got, want)
	}
}

// That an output is not where it should be is not passed over in silence, but
// only once it should be there.
func TestMissingBytes(t *testing.T) {
	t.Parallel()
	life := func(status ax.Status, stoppedMs int64) ax.Life {
		var l ax.Life
		l.Status, l.StoppedMs, l.OutputBytes, l.OutputDropped = status, stoppedMs, 100, 30
		return l
	}
	now := int64(1_000_000)
	for _, c := range []struct {
		name        string
		life        ax.Life
		found, want int64
	}{
		{"nothing is there", life(ax.StatusSuccess, 1), 0, 70},
		{"a part is there", life(ax.StatusFailed, 1), 69, 1},
		{"all is there", life(ax.StatusSuccess, 1), 70, 0},
		{"it still runs", life(ax.StatusDispatched, 0), 0, 0},
		{"its processes are not gone", life(ax.StatusTimeout, 0), 0, 0},
		{"it ended a moment ago", life(ax.StatusSuccess, now-writtenWithin.Milliseconds()+1), 0, 0},
	} {
		if got := missingBytes(c.life, c.found, now); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

// However an output is cut into chunks, a terminal sees the same.
func TestEscapingDoesNotDependOnChunks(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		cut := rapid.IntRange(0, len(text)).Draw(t, "cut")
		var whole, parts, notes bytes.Buffer
		feed(t, &logText{out: &whole, notes: &notes, escape: true}, chunk(1, logs.Stdout, text))
		feed(t, &logText{out: &parts, notes: &notes, escape: true}, chunk(1, logs.Stdout, text[:cut]), chunk(1, logs.Stdout, text[cut:]))
		if !strings.Contains(text, "\r") && whole.String() != parts.String() {
			t.Fatalf("%q and %q", whole.String(), parts.String())
		}
		if !utf8.Valid(parts.Bytes()) {
			t.Fatalf("no text: %q", parts.String())
		}
	})
}

func TestGrepFindsLinesAcrossChunks(t *testing.T) {
	t.Parallel()
	var out, notes bytes.Buffer
	sink := &logGrep{next: &logText{out: &out, notes: &notes}, re: regexp.MustCompile(`^err`)}
	feed(
		t, sink,
		chunk(1, logs.Stdout, "ok\ner"), chunk(1, logs.Stdout, "ror one\nno err\nerr"),
		chunk(2, logs.Stdout, "or two\nerror three"),
	)
	if got, want := out.String(), "error one\nerrerror three"; got != want {
		t.Errorf("grep: %q, want %q", got, want)
	}
}

func TestGrepBoundsALine(t *testing.T) {
	t.Parallel()
	var out, notes bytes.Buffer
	sink := &logGrep{next: &logText{out: &out, notes: &notes}, re: regexp.MustCompile(`x`)}
	big := strings.Repeat("x", maxGrepLine/2+1)
	feed(t, sink, chunk(1, logs.Stdout, big), chunk(1, logs.Stdout, big), chunk(1, logs.Stdout, big))
	if out.Len() != 3*len(big) {
		t.Errorf("%d bytes, want %d", out.Len(), 3*len(big))
	}
	if len(sink.part.Data) != 0 {
		t.Errorf("%d bytes are kept", len(sink.part.Data))
	}
}
