package cli

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

// screen is where results for people are written. It collects everything and
// writes once, so that a full disk or a closed pipe is one error.
type screen struct {
	out   io.Writer
	buf   bytes.Buffer
	color bool
	utf8  bool           // box lines may be drawn
	zone  *time.Location // of -zone; nil: each task's own
	short func(path string) string
}

// style is a colour or weight; the zero style is plain.
type style string

const (
	bold   style = "1"
	red    style = "31"
	green  style = "32"
	yellow style = "33"
)

// paint returns text in a style, where there are styles.
func (s *screen) paint(st style, text string) string {
	if !s.color || st == "" || text == "" {
		return text
	}
	return "\x1b[" + string(st) + "m" + text + "\x1b[0m"
}

// line writes one line. Blanks at its end are cut.
func (s *screen) line(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	s.buf.WriteString(strings.TrimRight(text, " "))
	s.buf.WriteByte('\n')
}

// flush writes all that was collected.
func (s *screen) flush() error {
	_, err := s.out.Write(s.buf.Bytes())
	s.buf.Reset()
	if err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	return nil
}

// at shows an instant with weekday and offset. own is the zone of the task it
// belongs to; nil is UTC.
func (s *screen) at(ms int64, own *time.Location) string {
	if ms == 0 {
		return "never"
	}
	return when(ms, s.place(own))
}

// place returns the zone to show times in.
func (s *screen) place(own *time.Location) *time.Location {
	switch {
	case s.zone != nil:
		return s.zone
	case own != nil:
		return own
	default:
		return time.UTC
	}
}

// table writes rows under a head in columns as wide as their widest cell.
func (s *screen) table(head []string, rows [][]string) {
	width := make([]int, len(head))
	for _, row := range append([][]string{head}, rows...) {
		for i, cell := range row {
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	write := func(row []string, st style) {
		var b strings.Builder
		for i, cell := range row {
			b.WriteString(cell)
			if i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell)+2))
			}
		}
		s.line("%s", s.paint(st, strings.TrimRight(b.String(), " ")))
	}
	write(head, bold)
	for _, row := range rows {
		write(row, "")
	}
}

// clean makes text from outside (a reason, an error, a name) safe to show on
// one line of a terminal: control characters and bytes that are no UTF-8 are
// written as Go escapes them.
func clean(text string) string {
	if strings.IndexFunc(text, unsafeRune) < 0 && utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case unsafeRune(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
		i += size
	}
	return b.String()
}

// unsafeRune reports characters that move a terminal's cursor, start an escape
// sequence or turn the direction of writing.
func unsafeRune(r rune) bool {
	return r < ' ' || r >= 0x7f && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}
