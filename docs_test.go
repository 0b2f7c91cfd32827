package ax_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestCasesAreShown proves that every test and file docs/cases.md names exists.
func TestCasesAreShown(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("docs/cases.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for _, line := range strings.Split(string(text), "\n") {
		fault, shown, ok := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
		if !strings.HasPrefix(line, "| B") || !ok {
			continue
		}
		rows++
		names := regexp.MustCompile("`[^`]+`").FindAllString(shown, -1)
		if len(names) == 0 {
			t.Errorf("%s: nothing shows it", fault)
		}
		for _, name := range names {
			if name = strings.Trim(name, "`"); !exists(t, name) {
				t.Errorf("%s: there is no %s", fault, name)
			}
		}
	}
	if rows < 40 {
		t.Errorf("only %d rows were read", rows)
	}
}

// exists reports whether a file, or a test written as folder:Name, is there.
func exists(t *testing.T, name string) bool {
	t.Helper()
	dir, test, isTest := strings.Cut(name, ":")
	if !isTest {
		_, err := os.Stat(name)
		return err == nil
	}
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "\nfunc "+test+"(") {
			return true
		}
	}
	return false
}
