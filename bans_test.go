package ax_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// bans are what no file may say, each with its reason.
var bans = []struct {
	pattern *regexp.Regexp
	files   func(path string) bool
	reason  string
}{
	{
		regexp.MustCompile(`\btime\.(Now|Since|Until)\(`),
		inPure,
		"pure packages take now as an argument",
	},
	{
		regexp.MustCompile(`\btime\.Sleep\(`),
		func(path string) bool { return strings.HasSuffix(path, "_test.go") },
		"tests wait for signals or use testing/synctest",
	},
	{
		regexp.MustCompile(`\bfmt\.Print(f|ln)?\(`),
		func(path string) bool {
			return !strings.HasPrefix(path, "cmd/") && !isProgram(path) && !strings.HasSuffix(path, "_test.go")
		},
		"libraries have no screen: return it, or use the logger",
	},
	{
		regexp.MustCompile(`(?m)^func init\(\)`),
		func(path string) bool { return !strings.HasSuffix(path, ".pb.go") },
		"what a program does is said in main, not by importing",
	},
	{
		regexp.MustCompile(`\bt\.Skip(f|Now)?\(|testing\.Short\(`),
		func(string) bool { return true },
		"a test that lacks what it needs fails and says what",
	},
	{
		regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X)\b`),
		func(string) bool { return true },
		"do it, or write it into the note",
	},
}

func inPure(path string) bool {
	for _, dir := range []string{"schedule/", "planner/", "runtime/wheel/", "runtime/rules/", "store/memory/", "why/"} {
		if strings.HasPrefix(path, dir) && !strings.HasSuffix(path, "_test.go") {
			return true
		}
	}
	return !strings.Contains(path, "/") && !strings.HasSuffix(path, "_test.go")
}

func isProgram(path string) bool {
	return strings.HasPrefix(path, "bench/") || strings.HasPrefix(path, "drills/") || strings.HasPrefix(path, "examples/")
}

func TestBans(t *testing.T) {
	t.Parallel()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == ".git" || d.Name() == "bin" || d.Name() == "tools") {
			return filepath.SkipDir
		}
		if filepath.Ext(path) != ".go" || d.IsDir() {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, ban := range bans {
			if !ban.files(path) || path == "bans_test.go" {
				continue
			}
			if at := ban.pattern.FindIndex(text); at != nil {
				line := 1 + bytes.Count(text[:at[0]], []byte("\n"))
				t.Errorf("%s:%d: %s: %s", path, line, text[at[0]:at[1]], ban.reason)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
