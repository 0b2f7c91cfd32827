package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/axctl/ax"
)

const (
	// maxFileBytes bounds one file; a hundred thousand tasks fit in it.
	maxFileBytes = 64 << 20
	// maxNesting bounds what the parser recurses into.
	maxNesting = 500
)

// source is one file of the configuration.
type source struct {
	name string // as people are told it
	text []byte // with LF line ends and without a byte order mark
	// declares says that the text may hold more than tasks, so it is parsed
	// before any task is decoded.
	declares bool
	body     *hclsyntax.Body
	// brokenAt is where the first syntax error is, -1 without one. What ends
	// before it is read as usual; what comes after may be misread.
	brokenAt int
}

// open finds and reads the files of path; false when there is nothing to load.
func (l *loader) open(path string) bool {
	info, err := os.Stat(path)
	if err != nil {
		l.fail("Cannot read the configuration", "%s", reason(path, err))
		return false
	}
	names := []string{path}
	l.folder = filepath.Dir(path)
	if info.IsDir() {
		l.folder, l.isFolder = path, true
		if names, err = configFiles(path); err != nil {
			l.fail("Cannot read the configuration", "%s", reason(path, err))
			return false
		}
		if len(names) == 0 {
			l.fail("No configuration in this folder", "%s has no *.hcl file. To delete what a stack owns, use destroy.", show(path))
			return false
		}
	}
	for _, name := range names {
		text, err := readText(name)
		if err != nil {
			l.fail("Cannot read a file", "%s", reason(name, err))
			continue
		}
		l.add(name, text)
	}
	return len(l.diagnostics) > 0 || l.notBlank(path)
}

// notBlank refuses a configuration that is nothing but blank. To delete all is
// a thing to be said; a file cut off by a full disk, or the rest of a plan file,
// must not say it.
func (l *loader) notBlank(path string) bool {
	for _, s := range l.sources {
		if len(bytes.TrimSpace(s.text)) > 0 {
			return true
		}
	}
	l.fail("The configuration is empty", "Nothing is written in %s. To delete what a stack owns, use destroy.", show(path))
	return false
}

// add makes a source of a clean text.
func (l *loader) add(name string, text []byte) {
	if len(text) > 0 && !bytes.HasSuffix(text, []byte("\n")) {
		text = append(text, '\n') // a heredoc that ends the file needs it
	}
	l.texts[name] = text
	l.sources = append(l.sources, &source{name: name, text: text, declares: mayDeclare(text), brokenAt: -1})
}

func (l *loader) fail(summary, format string, args ...any) {
	l.diagnostics = append(l.diagnostics, ax.Diagnostic{
		Severity: ax.SeverityError, Summary: summary, Detail: fmt.Sprintf(format, args...),
	})
}

// configFiles lists a folder's configuration files by name. Editors' and
// systems' droppings, test files and folders are none.
func configFiles(folder string) ([]string, error) {
	return filesOf(folder, func(name string) bool {
		return strings.HasSuffix(name, ".hcl") && !strings.HasSuffix(name, ".axtest.hcl")
	})
}

func filesOf(folder string, want func(name string) bool) ([]string, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() || strings.HasPrefix(e.Name(), ".") || !want(e.Name()) {
			continue
		}
		name := filepath.Join(folder, e.Name())
		if info, err := os.Stat(name); err == nil && info.IsDir() {
			continue // a link to a folder
		}
		names = append(names, name)
	}
	return names, nil
}

// readText reads a text file the way all configuration text is read.
func readText(name string) ([]byte, error) {
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular(): // reading a fifo would wait for ever
		return nil, errors.New("it is no regular file")
	case info.Size() > maxFileBytes:
		return nil, fmt.Errorf("it is larger than %d MiB", maxFileBytes>>20)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return cleanText(text)
}

// cleanText makes line ends LF and drops a byte order mark, so that a text
// means the same whatever system it was written on.
func cleanText(text []byte) ([]byte, error) {
	if bytes.HasPrefix(text, []byte{0xff, 0xfe}) || bytes.HasPrefix(text, []byte{0xfe, 0xff}) {
		return nil, errors.New("it is UTF-16; save it as UTF-8")
	}
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	if i := bytes.IndexByte(text, 0); i >= 0 {
		return nil, fmt.Errorf("line %d has a NUL byte: it is UTF-16 or no text; save it as UTF-8", line(text, i))
	}
	if !utf8.Valid(text) {
		i := 0
		for i < len(text) {
			r, n := utf8.DecodeRune(text[i:])
			if r == utf8.RuneError && n == 1 {
				break
			}
			i += n
		}
		return nil, fmt.Errorf("line %d is not UTF-8; save it as UTF-8", line(text, i))
	}
	if bytes.IndexByte(text, 0x0d) >= 0 {
		text = lineEnds.ReplaceAll(text, []byte("\n"))
	}
	return text, nil
}

// lineEnds are those of Windows, and what copying them twice makes of them.
var lineEnds = regexp.MustCompile(`\r+(\n|\z)`)

func line(text []byte, at int) int { return 1 + bytes.Count(text[:at], []byte("\n")) }

// reason says what is wrong with a file, without the system call's name.
func reason(name string, err error) string {
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return fmt.Sprintf("%s: %v.", show(name), err)
}

// show makes a name fit for a message: control characters are escaped.
func show(name string) string {
	if strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return fmt.Sprintf("%q", name)
	}
	return name
}

// mayDeclare reports whether one of the shared blocks' names stands in text as
// a word. It may err towards yes: a comment can hold one.
func mayDeclare(text []byte) bool {
	for _, word := range []string{"variable", "locals", "defaults", "error_class", "plugin", "ax"} {
		rest := text
		for {
			i := bytes.Index(rest, []byte(word))
			if i < 0 {
				break
			}
			end := i + len(word)
			if (i == 0 || !wordByte(rest[i-1])) && (end == len(rest) || !wordByte(rest[end])) {
				return true
			}
			rest = rest[end:]
		}
	}
	return false
}

func wordByte(b byte) bool {
	return b == '_' || b == '-' || '0' <= b && b <= '9' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || b >= utf8.RuneSelf
}

// redefined is how hcl says that an attribute was set twice: a fault of the
// text after which it reads on undisturbed.
const redefined = "Attribute redefined"

// parse makes the syntax tree and reports its errors.
func (s *source) parse(d *decoder) {
	s.body = &hclsyntax.Body{}
	if nesting(s.text) > maxNesting {
		s.brokenAt = 0
		d.errorf(hcl.Range{Filename: s.name, Start: hcl.InitialPos, End: hcl.InitialPos}, "Expression nested too deeply",
			"The file has more than %d brackets in one another, signs in a row, or conditionals in one bracket.", maxNesting)
		return
	}
	file, found := hclsyntax.ParseConfig(s.text, s.name, hcl.InitialPos)
	if body, ok := file.Body.(*hclsyntax.Body); ok {
		s.body = body
	}
	for _, f := range found {
		if f.Severity == hcl.DiagError && f.Summary != redefined && f.Subject != nil && (s.brokenAt < 0 || f.Subject.Start.Byte < s.brokenAt) {
			s.brokenAt = f.Subject.Start.Byte
		}
	}
	d.hcl(s.crontab(d, found), nil)
}

// nesting returns how deep the parser would recurse at most: brackets in one
// another, signs in a row (!!!x), conditionals in one bracket (a ? b : c ? d : …).
// What stands in strings and comments counts only as long as the raw bytes look
// harmless.
func nesting(text []byte) int {
	raw := depths{open: []int{0}}
	for _, b := range text {
		switch b {
		case ' ', '\t', '\n':
		default:
			raw.count(b)
		}
	}
	if raw.deepest <= maxNesting {
		return raw.deepest
	}
	lexed := depths{open: []int{0}}
	tokens, _ := hclsyntax.LexConfig(text, "", hcl.InitialPos)
	for _, t := range tokens {
		switch t.Type {
		case hclsyntax.TokenNewline:
		case hclsyntax.TokenOBrace, hclsyntax.TokenOBrack, hclsyntax.TokenOParen, hclsyntax.TokenTemplateInterp, hclsyntax.TokenTemplateControl:
			lexed.count('{')
		case hclsyntax.TokenCBrace, hclsyntax.TokenCBrack, hclsyntax.TokenCParen, hclsyntax.TokenTemplateSeqEnd:
			lexed.count('}')
		case hclsyntax.TokenBang, hclsyntax.TokenMinus:
			lexed.count('!')
		case hclsyntax.TokenQuestion:
			lexed.count('?')
		default:
			lexed.count('x')
		}
	}
	return lexed.deepest
}

// depths counts what makes the parser recurse.
type depths struct {
	open    []int // the conditionals outside all brackets, then in each open one
	signs   int   // in a row
	deepest int
}

func (d *depths) count(b byte) {
	if b != '!' && b != '-' {
		d.signs = 0
	}
	switch b {
	case '[', '(', '{':
		d.open = append(d.open, 0)
		d.deepest = max(d.deepest, len(d.open)-1)
	case ']', ')', '}':
		d.open = d.open[:max(1, len(d.open)-1)]
	case '!', '-':
		d.signs++
		d.deepest = max(d.deepest, d.signs)
	case '?':
		last := len(d.open) - 1
		d.open[last]++
		d.deepest = max(d.deepest, d.open[last])
	}
}

// blocks returns the blocks that were read for sure.
func (s *source) blocks() []*hclsyntax.Block {
	if s.body == nil || s.brokenAt < 0 {
		return s.bodyBlocks()
	}
	var sound []*hclsyntax.Block
	for _, b := range s.body.Blocks {
		if b.Range().End.Byte <= s.brokenAt {
			sound = append(sound, b)
		}
	}
	return sound
}

func (s *source) bodyBlocks() []*hclsyntax.Block {
	if s.body == nil {
		return nil
	}
	return s.body.Blocks
}
