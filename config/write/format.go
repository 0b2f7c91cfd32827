// Package write produces HCL text: the canonical layout of what people write.
// It owns layout alone; what the text means is config's.
package write

import (
	"bytes"
	"regexp"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"

	"github.com/axctl/ax"
)

// maxPasses bounds how often the formatter is applied until nothing moves.
// One pass nearly always suffices; alignment after odd comments may take two.
const maxPasses = 5

// lineEnds are those of Windows, and what copying them twice makes of them.
var lineEnds = regexp.MustCompile(`\r+(\n|\z)`)

// Format returns src in canonical layout: two blanks a level, equals signs
// aligned, line ends LF, no byte order mark, one line end at the end, no run
// of more than one empty line. Formatting its answer changes nothing. Text
// that does not parse is answered with diagnostics and nil; filename is only
// used in those.
func Format(src []byte, filename string) ([]byte, ax.Diagnostics) {
	text := bytes.TrimPrefix(src, []byte("\xef\xbb\xbf"))
	text = lineEnds.ReplaceAll(text, []byte("\n"))
	if len(text) > 0 && !bytes.HasSuffix(text, []byte("\n")) {
		text = append(text, '\n') // a heredoc that ends the file needs it
	}
	if !utf8.Valid(text) {
		return nil, ax.Diagnostics{{
			Severity: ax.SeverityError,
			Summary:  "File is not UTF-8",
			Detail:   "Save it as UTF-8; UTF-16 and 8-bit encodings are not read.",
			Range:    &ax.Range{Filename: filename, Start: ax.Pos{Line: 1, Column: 1}, End: ax.Pos{Line: 1, Column: 1}},
		}}
	}
	if diags := check(text, filename); diags.HasErrors() {
		return nil, diags
	}
	for range maxPasses {
		next := layOut(text)
		if bytes.Equal(next, text) {
			break
		}
		text = next
	}
	return text, nil
}

func check(text []byte, filename string) ax.Diagnostics {
	_, found := hclsyntax.ParseConfig(text, filename, hcl.InitialPos)
	var out ax.Diagnostics
	for _, f := range found {
		d := ax.Diagnostic{Severity: ax.SeverityError, Summary: f.Summary, Detail: f.Detail}
		if f.Subject != nil {
			r := ax.Range{Filename: filename, Start: ax.Pos(f.Subject.Start), End: ax.Pos(f.Subject.End)}
			d.Range, d.Snippet = &r, r.Snippet(text, "")
		}
		out = append(out, d)
	}
	return out
}

// layOut is one pass: hclwrite's layout of each line, then the empty lines.
// Those are dropped as tokens, so that the text of a heredoc is left alone.
func layOut(text []byte) []byte {
	file, diags := hclwrite.ParseConfig(hclwrite.Format(text), "", hcl.InitialPos)
	if diags.HasErrors() {
		return text
	}
	var kept hclwrite.Tokens
	ends := 2 // as if after an empty line: none is wanted at the top
	for _, token := range file.BuildTokens(nil) {
		switch {
		case token.Type == hclsyntax.TokenNewline:
			ends++
			if ends > 2 {
				continue
			}
		case token.Type == hclsyntax.TokenEOF:
			continue
		case bytes.HasSuffix(token.Bytes, []byte("\n")): // a comment to the end of its line
			ends = 1
		default:
			ends = 0
		}
		kept = append(kept, token)
	}
	out := bytes.TrimRight(kept.Bytes(), "\n")
	if len(out) == 0 {
		return out
	}
	return append(out, '\n')
}
