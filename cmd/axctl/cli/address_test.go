package cli

import (
	"strings"
	"testing"

	"github.com/axctl/ax"
)

func TestFind(t *testing.T) {
	t.Parallel()
	var all []task
	for i, name := range []string{"report", `refresh["eu"]`, `refresh["us"]`, "twice", "twice"} {
		stack := "one"
		if i == 4 {
			stack = "two"
		}
		all = append(all, task{Object: ax.Object{ID: int64(i + 1), Kind: ax.KindTask, Name: name, Stack: stack}})
	}
	tests := []struct {
		address string
		id      int64
		says    string
	}{
		{"task.report", 1, ""},
		{`task.refresh["eu"]`, 2, ""},
		{"task.refresh[us]", 3, ""},
		{"report", 0, "Did you mean task.report?"},
		{"task.reprt", 0, "Did you mean task.report?"},
		{`task.refresh["ue"]`, 0, `'task.refresh["eu"]'`},
		{"task.nothing_like_it", 0, "axctl show lists"},
		{"tsk.report", 0, "Did you mean task.report?"},
		{"task.rep", 0, "Did you mean task.report?"},
		{"task.short", 0, "axctl show lists"}, // what all have in common makes nothing near
		{"task.twice", 0, "It is in one and in two."},
	}
	for _, tt := range tests {
		got, err := find(all, tt.address)
		if got.ID != tt.id || (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) {
			t.Errorf("find(%s) = %d, %v; want %d, %q", tt.address, got.ID, err, tt.id, tt.says)
		}
	}
}

func TestNearest(t *testing.T) {
	t.Parallel()
	names := []string{"apply", "plan", "pause", "instances", "instance"}
	tests := []struct{ got, want string }{
		{"aply", "apply"},
		{"PLAN", "plan"},
		{"instanc", "instance instances"},
		{"zzzzzz", ""},
	}
	for _, tt := range tests {
		if near := strings.Join(nearest(tt.got, names), " "); near != tt.want {
			t.Errorf("nearest(%q) = %q, want %q", tt.got, near, tt.want)
		}
	}
}

func TestShellWord(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"task.a":         "task.a",
		`task.a["eu"]`:   `'task.a["eu"]'`,
		`task.a["it's"]`: `'task.a["it'\''s"]'`,
	} {
		if got := shellWord(in); got != want {
			t.Errorf("shellWord(%s) = %s, want %s", in, got, want)
		}
	}
}
