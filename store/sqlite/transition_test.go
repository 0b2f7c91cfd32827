package sqlite

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/axctl/ax"
)

var (
	movesStatus = regexp.MustCompile(`UPDATE instance SET (?:[^W]*, )?status = (\?|'[a-z]+')`)
	fromStatus  = regexp.MustCompile(`WHERE .*\bstatus = '([a-z]+)'`)
)

// TestUpdatesFollowTheTable ties every UPDATE of instance.status in this driver
// to the transition table: it names its from-state, the table has the move, and
// each move of the table has an UPDATE.
func TestUpdatesFollowTheTable(t *testing.T) {
	t.Parallel()
	written := map[[2]ax.Status]bool{}
	for place, sql := range literals(t) {
		to := movesStatus.FindStringSubmatch(sql)
		if to == nil {
			if strings.Contains(sql, "UPDATE instance") && strings.Contains(strings.Split(sql, "WHERE")[0], "status =") {
				t.Errorf("%s: a change of status that this test cannot read: %s", place, sql)
			}
			continue
		}
		from := fromStatus.FindStringSubmatch(strings.ReplaceAll(sql, "\n", " "))
		if from == nil {
			t.Errorf("%s: the UPDATE names no from-state: %s", place, sql)
			continue
		}
		targets := []ax.Status{ax.Status(strings.Trim(to[1], "'"))}
		if to[1] == "?" { // the end of an attempt: any final status but skipped
			targets = []ax.Status{ax.StatusSuccess, ax.StatusFailed, ax.StatusTimeout, ax.StatusCancelled}
		}
		for _, s := range targets {
			written[[2]ax.Status{ax.Status(from[1]), s}] = true
			if !ax.MayMove(ax.Status(from[1]), s) {
				t.Errorf("%s: %s to %s is not in the table", place, from[1], s)
			}
		}
	}
	for _, e := range ax.Transitions {
		if e.From != "" && !written[[2]ax.Status{e.From, e.To}] {
			t.Errorf("the table has %s to %s, which nothing writes", e.From, e.To)
		}
	}
}

// literals returns the string literals of the driver by file:line.
func literals(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	set := token.NewFileSet()
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(set, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(lit.Value)
			if err != nil {
				t.Fatal(err)
			}
			found[set.Position(lit.Pos()).String()] = text
			return true
		})
	}
	return found
}
