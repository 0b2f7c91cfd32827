package ax

import (
	"bytes"
	"fmt"
)

// Severity says whether a diagnostic refuses the input or only comments on it.
type Severity string

// The severities, as they are printed and as JSON has them.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
)

// Pos is a place in a text: 1-based line and column (columns count grapheme
// clusters, as editors do) and the byte offset from 0.
type Pos struct {
	Line   int `json:"line"`
	Column int `json:"column"`
	Byte   int `json:"byte"`
}

// Range is a stretch of a file. The zero Range means "no place".
type Range struct {
	Filename string `json:"filename"`
	Start    Pos    `json:"start"`
	End      Pos    `json:"end"`
}

// String returns file:line, or "" for the zero Range.
func (r Range) String() string {
	if r.Filename == "" {
		return ""
	}
	return fmt.Sprintf("%s:%d", r.Filename, r.Start.Line)
}

// Diagnostic tells a person about a fault in what they gave us: what was
// found, what was expected, where, and the nearest valid name if there is one.
type Diagnostic struct {
	Severity Severity `json:"severity"`
	Summary  string   `json:"summary"` // one line, no full stop
	Detail   string   `json:"detail,omitempty"`
	Address  string   `json:"address,omitempty"`
	Range    *Range   `json:"range,omitempty"`
	// Snippet is the source around Range, filled by config and config/write.
	Snippet *Snippet `json:"snippet,omitempty"`
}

// Snippet is the source text a diagnostic is about, in Terraform's shape.
type Snippet struct {
	Context              string `json:"context,omitempty"` // the enclosing block's header
	Code                 string `json:"code"`
	StartLine            int    `json:"start_line"`
	HighlightStartOffset int    `json:"highlight_start_offset"` // bytes into Code
	HighlightEndOffset   int    `json:"highlight_end_offset"`
}

// maxSnippetBytes bounds the code of a snippet; what is longer helps nobody.
const maxSnippetBytes = 2 << 10

// Snippet cuts the whole lines that r touches out of src, the text r.Filename
// was read as. It is nil when r lies outside src or the lines are too long to
// be shown. context is the header of the enclosing block, or "".
func (r Range) Snippet(src []byte, context string) *Snippet {
	start, end := r.Start.Byte, r.End.Byte
	if start < 0 || end < start || end > len(src) {
		return nil
	}
	from := bytes.LastIndexByte(src[:start], '\n') + 1
	to := len(src)
	if i := bytes.IndexByte(src[end:], '\n'); i >= 0 {
		to = end + i
	}
	// A range that ends with its line's break does not touch the next line.
	if end > start && src[end-1] == '\n' {
		to = end - 1
		end = to
	}
	if to-from > maxSnippetBytes {
		return nil
	}
	return &Snippet{
		Context: context, Code: string(src[from:to]), StartLine: r.Start.Line,
		HighlightStartOffset: start - from, HighlightEndOffset: max(end, start) - from,
	}
}

// Diagnostics are all that is to be said about one input, in source order.
type Diagnostics []Diagnostic

// HasErrors reports whether any of them refuses the input.
func (ds Diagnostics) HasErrors() bool {
	for _, d := range ds {
		if d.Severity == SeverityError {
			return true
		}
	}
	return false
}

// Error lets a single diagnostic travel as an error.
func (d Diagnostic) Error() string {
	if d.Detail == "" {
		return d.Summary
	}
	return d.Summary + ": " + d.Detail
}
