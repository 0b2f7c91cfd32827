package cli_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/axctl/ax/cmd/axctl/cli"
)

// Many people apply different definitions of one stack at once, to a store that
// is not there yet: each is applied whole or refused as stale, each that was
// applied has its serial, and what is stored is what one of them wrote.
func TestManyAppliesAtOnce(t *testing.T) {
	t.Parallel()
	const people = 6
	dir := t.TempDir()
	codes := make([]int, people)
	texts := make([]string, people)
	var wg sync.WaitGroup
	for i := range people {
		folder := filepath.Join(dir, fmt.Sprint(i))
		text := fmt.Sprintf("task \"a\" {\n  timeout = \"%dm\"\n  handler \"shell\" { command = \"true\" }\n}\n"+
			"task \"b\" {\n  timeout = \"%dm\"\n  handler \"shell\" { command = \"true\" }\n}\n", i+1, i+1)
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, "main.hcl"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		wg.Go(func() { codes[i], texts[i] = onSQLite(t, dir, "apply", "-auto-approve", folder) })
	}
	wg.Wait()
	applied := 0
	for i, code := range codes {
		switch {
		case code == cli.ExitDone && strings.Contains(texts[i], "Apply complete!"):
			applied++
		case code == cli.ExitStale && strings.Contains(texts[i], "Nothing was changed"):
		default:
			t.Errorf("person %d: exit code %d\n%s", i, code, texts[i])
		}
	}
	_, show := onSQLite(t, dir, "show", "-json")
	_, status := onSQLite(t, dir, "status")
	if applied == 0 || !strings.Contains(status, fmt.Sprintf("(serial %d)", applied)) {
		t.Errorf("%d were applied, but the store says\n%s", applied, status)
	}
	whole := 0
	for i := range people {
		if strings.Count(show, fmt.Sprintf(`"timeout": "%dm"`, i+1)) == 2 {
			whole++
		}
	}
	if whole != 1 {
		t.Errorf("a and b are not of one apply:\n%s", show)
	}
}

// onSQLite runs axctl in process on the real store of a folder.
func onSQLite(t *testing.T, dir string, args ...string) (code int, text string) {
	t.Helper()
	var out bytes.Buffer
	code = cli.Main(t.Context(), cli.Env{
		Args: args, Dir: dir, Environ: os.Environ(), Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out,
		User: "ada", Host: "host1", Version: "test", Now: time.Now, Open: open,
	})
	return code, out.String()
}

// A first apply that was killed while it made the store leaves a file with
// nothing in it; that is no store yet, and harms nobody.
func TestAnEmptyFileIsNoStore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	hello := "task \"a\" {\n  handler \"shell\" { command = \"true\" }\n}\n"
	for name, text := range map[string]string{"main.hcl": hello, "ax.db": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if code, text := onSQLite(t, dir, "show"); code != 1 || !strings.Contains(text, "axctl apply makes one") {
		t.Errorf("show: exit code %d\n%s", code, text)
	}
	if code, text := onSQLite(t, dir, "plan"); code != 0 {
		t.Errorf("plan: exit code %d\n%s", code, text)
	}
	if code, text := onSQLite(t, dir, "apply", "-auto-approve"); code != 0 {
		t.Errorf("apply: exit code %d\n%s", code, text)
	}
}

// A file that is something else is refused by every command and not touched.
func TestAForeignFileIsLeftAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	hello := "task \"a\" {\n  handler \"shell\" { command = \"true\" }\n}\n"
	letter := strings.Repeat("Dear Sir or Madam,\n", 1000)
	for name, text := range map[string]string{"main.hcl": hello, "ax.db": letter} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"plan"}, {"apply", "-auto-approve"}, {"show"}, {"trigger", "task.a"}} {
		if code, text := onSQLite(t, dir, args...); code != 1 || !strings.Contains(text, "ax.db") {
			t.Errorf("%v: exit code %d\n%s", args, code, text)
		}
	}
	after, err := os.ReadFile(filepath.Join(dir, "ax.db"))
	if err != nil || string(after) != letter {
		t.Errorf("the file was changed (%v)", err)
	}
}
