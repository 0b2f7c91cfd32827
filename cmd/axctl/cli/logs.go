package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/axctl/ax"
	"github.com/axctl/ax/logs"
)

type logsArgs struct {
	id      int64
	follow  bool
	attempt int
	grep    string
}

func logsCommand(c *call) *cobra.Command {
	var a logsArgs
	cmd := &cobra.Command{
		Use:   "logs ID",
		Short: "Print what an instance printed, also while it runs",
		Long: "logs prints the output of an instance, byte for byte; on a terminal, control\n" +
			"characters are shown as escapes. It reads the files of axd's data folder.",
		Example: "  axctl logs -f 8812",
		Args:    argumentCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := parseID("instance", args[0])
			if err != nil {
				return err
			}
			a.id = id
			return logsEnd(cmd.Context(), c.logs(cmd.Context(), a))
		},
	}
	cmd.Flags().BoolVarP(&a.follow, "follow", "f", false, "go on until the instance has ended")
	cmd.Flags().IntVar(&a.attempt, "attempt", 0, "only the attempt `N` (default all)")
	cmd.Flags().StringVar(&a.grep, "grep", "", "only lines that match `REGEXP`")
	return cmd
}

func (c *call) logs(ctx context.Context, a logsArgs) error {
	if c.globals.json && a.follow {
		return ax.Diagnostic{Severity: ax.SeverityError, Summary: "-json and -f do not go together", Detail: "A document has an end. Leave one of them out."}
	}
	var doc logDocument
	var sink logSink = &logText{out: c.env.Stdout, notes: c.env.Stderr, escape: c.env.Terminals.Stdout}
	if c.globals.json {
		sink = &doc
	}
	if a.grep != "" {
		re, err := regexp.Compile(a.grep)
		if err != nil {
			return ax.Diagnostic{Severity: ax.SeverityError, Summary: "-grep is no regular expression", Detail: sentence(err.Error())}
		}
		sink = &logGrep{next: sink, re: re}
	}
	s, err := c.open(ctx, OpenOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer s.Close()
	l, err := c.begun(ctx, s, a)
	if err != nil {
		return err
	}
	if a.attempt < 0 || a.attempt > l.Attempt && (!a.follow || l.Status.Final()) {
		return ax.Diagnostic{Severity: ax.SeverityError, Summary: fmt.Sprintf("Instance %d has no attempt %d", a.id, a.attempt), Detail: fmt.Sprintf("It has had %s.", plural(l.Attempt, "attempt"))}
	}
	reader, err := logReader(ctx, s, l)
	if err != nil {
		return err
	}
	q := logs.Query{Instance: a.id, Attempt: a.attempt}
	var found int64 // bytes of the last attempt
	pass := func(ch logs.Chunk) error {
		if ch.Attempt == l.Attempt && ch.Stream != logs.Note {
			found += int64(len(ch.Data))
		}
		return sink.chunk(ch)
	}
	if a.follow {
		err = reader.Follow(ctx, q, func() (bool, error) { return over(ctx, s, a.id) }, pass)
	} else {
		err = reader.Read(q, pass)
	}
	if end := sink.end(); err == nil {
		err = end
	}
	if err != nil {
		return err
	}
	if missing := missingBytes(l, found, c.nowMs()); missing > 0 && (a.attempt == 0 || a.attempt == l.Attempt) {
		fmt.Fprintf(c.env.Stderr, "ax: %d bytes that attempt %d printed are not here: the data folder could not keep them, or they were removed\n", missing, l.Attempt)
	}
	if c.globals.json {
		return c.printJSON(document{"chunks": list(doc.chunks)})
	}
	return nil
}

// writtenWithin is how long after its end the last of an output may be on its
// way to the disk.
const writtenWithin = 10 * time.Second

// missingBytes returns how much of what the last attempt printed, and what was
// not dropped as too much, is not among the bytes found.
func missingBytes(l ax.Life, found, nowMs int64) int64 {
	if !l.Status.Final() || l.StoppedMs == 0 || nowMs-l.StoppedMs < writtenWithin.Milliseconds() {
		return 0
	}
	return max(0, l.OutputBytes-l.OutputDropped-found)
}

// begun returns the instance's life. With -f it waits until the instance has
// been handed to a host, or has ended without that, and says so once when
// nobody is there to go on with it.
func (c *call) begun(ctx context.Context, s Store, a logsArgs) (ax.Life, error) {
	told := false
	for {
		l, err := life(ctx, s, a.id)
		if err != nil || !a.follow || l.Status.Final() {
			return l, err
		}
		if !told && !c.daemonRuns() {
			told = true
			fmt.Fprintf(c.env.Stderr, "ax: instance %d is %s, and no axd runs on this store; -f waits until one does\n", a.id, statusWord(l.Instance))
		}
		if l.Host != "" {
			return l, nil
		}
		if err := pause(ctx, pollInterval); err != nil {
			return l, err
		}
	}
}

// over reports whether nothing more can be printed: the instance has ended and
// its processes are gone.
func over(ctx context.Context, s Store, id int64) (bool, error) {
	l, err := life(ctx, s, id)
	return err == nil && l.Status.Final() && (l.StoppedMs != 0 || l.HandedMs == 0), err
}

// logReader finds the data folder of the host that ran the instance.
func logReader(ctx context.Context, s Store, l ax.Life) (*logs.Reader, error) {
	if l.Host == "" && len(l.Attempts) == 0 {
		return nil, ax.Diagnostic{
			Severity: ax.SeverityError,
			Summary:  fmt.Sprintf("Instance %d printed nothing", l.ID),
			Detail:   fmt.Sprintf("It was never started: it is %s.", statusWord(l.Instance)),
		}
	}
	name := l.Host
	if name == "" {
		name = l.Attempts[len(l.Attempts)-1].Host
	}
	hosts, err := s.Hosts(ctx)
	if err != nil {
		return nil, err
	}
	for _, h := range hosts {
		if h.Name == name {
			return logs.NewReader(h.DataDir), nil
		}
	}
	return nil, ax.WithHint(fmt.Errorf("host %q, which ran instance %d, is not in the store", name, l.ID),
		"Its data folder is not known; look for its logs there.")
}

// logsEnd explains why a reading ended early. To stop it, at any moment, is no
// fault that needs words.
func logsEnd(ctx context.Context, err error) error {
	var i *Interrupt
	switch {
	case err == nil:
		return nil
	case errors.As(context.Cause(ctx), &i):
		return exit(i.Code)
	case errors.Is(err, fs.ErrPermission):
		return ax.WithHint(err, "The logs belong to the user that axd runs as; run axctl logs as that user.")
	default:
		return err
	}
}

// pollInterval is how often a command that waits looks at the store.
const pollInterval = 200 * time.Millisecond

// pause waits for d, or returns why ctx ended.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// logSink takes the chunks of an output in order.
type logSink interface {
	chunk(logs.Chunk) error
	end() error
}

// logText writes the bytes as they were printed; for a terminal, control
// characters are escaped. What ax notes about an output goes to stderr.
type logText struct {
	out, notes io.Writer
	escape     bool
	part       []byte // of a character that a chunk cut in two
	stream     logs.Stream
	attempt    int // of the last chunk, 0 before the first
}

func (t *logText) chunk(ch logs.Chunk) error {
	if err := t.begin(ch.Attempt); err != nil {
		return err
	}
	if ch.Stream == logs.Note {
		_, err := fmt.Fprintf(t.notes, "ax: %s\n", clean(string(bytes.TrimSpace(ch.Data))))
		return err
	}
	if !t.escape {
		return t.write(ch.Data)
	}
	if ch.Stream != t.stream {
		if err := t.end(); err != nil {
			return err
		}
	}
	data := append(t.part, ch.Data...)
	whole := wholeRunes(data)
	t.part, t.stream = bytes.Clone(data[whole:]), ch.Stream
	return t.write(escapeLog(data[:whole]))
}

// begin notes where the output of another attempt begins.
func (t *logText) begin(attempt int) error {
	before := t.attempt
	t.attempt = attempt
	if before == 0 || before == attempt {
		return nil
	}
	if err := t.end(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(t.notes, "ax: attempt %d\n", attempt)
	return err
}

func (t *logText) write(data []byte) error {
	if _, err := t.out.Write(data); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}

func (t *logText) end() error {
	rest := t.part
	t.part = nil
	return t.write(escapeLog(rest))
}

// wholeRunes returns how much of data ends with a whole character.
func wholeRunes(data []byte) int {
	for back := 1; back <= min(utf8.UTFMax-1, len(data)); back++ {
		tail := data[len(data)-back:]
		if utf8.RuneStart(tail[0]) {
			if !utf8.FullRune(tail) {
				return len(data) - back
			}
			break
		}
	}
	return len(data)
}

// escapeLog keeps line ends and tabs, and escapes what else is no plain text.
func escapeLog(data []byte) []byte {
	var b bytes.Buffer
	for len(data) > 0 {
		i := bytes.IndexAny(data, "\n\t")
		if i < 0 {
			i = len(data)
		}
		b.WriteString(clean(string(bytes.TrimSuffix(data[:i], []byte("\r")))))
		if i == len(data) {
			break
		}
		b.WriteByte(data[i])
		data = data[i+1:]
	}
	return b.Bytes()
}

// maxGrepLine bounds a line that is searched; longer ones are searched in
// pieces.
const maxGrepLine = 1 << 20

// logGrep passes on only lines that match. Lines of the two streams and of
// different attempts are kept apart.
type logGrep struct {
	next logSink
	re   *regexp.Regexp
	part logs.Chunk // the beginning of a line
}

func (g *logGrep) chunk(ch logs.Chunk) error {
	if g.part.Attempt != ch.Attempt || g.part.Stream != ch.Stream {
		if err := g.end(); err != nil {
			return err
		}
	}
	data := append(g.part.Data, ch.Data...)
	g.part = ch
	for {
		i := bytes.IndexByte(data, '\n')
		if i < 0 && len(data) < maxGrepLine {
			g.part.Data = bytes.Clone(data)
			return nil
		}
		if i < 0 {
			i = len(data) - 1
		}
		if err := g.line(data[:i+1]); err != nil {
			return err
		}
		data = data[i+1:]
	}
}

func (g *logGrep) line(line []byte) error {
	if !g.re.Match(bytes.TrimRight(line, "\r\n")) {
		return nil
	}
	ch := g.part
	ch.Data = line
	return g.next.chunk(ch)
}

func (g *logGrep) end() error {
	line := g.part.Data
	g.part.Data = nil
	if len(line) == 0 {
		return nil
	}
	return g.line(line)
}

// logDocument collects chunks for -json.
type logDocument struct{ chunks []document }

func (d *logDocument) chunk(ch logs.Chunk) error {
	doc := document{"at": stamp(ch.AtMs, nil), "at_ms": ch.AtMs, "attempt": ch.Attempt, "stream": ch.Stream.String()}
	if utf8.Valid(ch.Data) {
		doc["text"] = string(ch.Data)
	} else {
		doc["base64"] = bytes.Clone(ch.Data)
	}
	d.chunks = append(d.chunks, doc)
	return nil
}

func (d *logDocument) end() error { return nil }
