package host_test

import (
	"os"
	"strings"
	"testing"

	"github.com/axctl/ax"
	"github.com/axctl/ax/plugins/folder"
	"github.com/axctl/ax/plugins/host"
)

// A file that is not the pinned one is not started, and that is told; the
// pinned one is.
func TestPinned(t *testing.T) {
	t.Parallel()
	sum, err := folder.Sum(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	b := start(t, func(c *host.Config) {
		c.Executors[0].SHA256 = sum
		c.Executors = append(c.Executors, host.Command{Name: "swapped", Path: "/bin/sh", SHA256: strings.Repeat("0", 64)})
	}, "executor")
	b.until("the pinned one", func() bool { return b.offers("noop") })
	b.until("why the other does not run", func() bool {
		problem := b.state("swapped").Problem
		return strings.Contains(problem, "/bin/sh has sha256 ") && strings.Contains(problem, "its plugin block says")
	})
	if s := b.state("executor"); s.Problem != "" {
		t.Errorf("%+v", s)
	}
	b.until("the log", func() bool { return strings.Contains(b.log.String(), "its plugin block says") })
}

// state is what becomes of one executor.
func (b *bench) state(name string) host.State {
	for _, s := range b.States() {
		if s.Executor == name {
			return s
		}
	}
	return host.State{}
}

// A handler that was an executor's by right is not another one's while that is
// down; who has it is told with its file.
func TestReservedHandlers(t *testing.T) {
	t.Parallel()
	b := start(t, func(c *host.Config) {
		c.Executors = append([]host.Command{{Name: "owner", Path: "/no/such/owner", Declared: true, Handlers: []string{"noop"}}}, c.Executors...)
	}, "executor")
	b.until("who has it", func() bool { return b.state("executor").Shadowed["noop"] == "owner (/no/such/owner)" })
	if b.offers("noop") || !b.offers("sleep") {
		t.Error("the loser has other handlers than are its")
	}
}

// Fit tells a handler that is not there from a body that does not fit.
func TestFit(t *testing.T) {
	t.Parallel()
	b := start(t, nil, "executor")
	b.until("the executor", func() bool { return b.offers("noop") })
	large := `{"text":"` + strings.Repeat("x", 10_000) + `"}`
	for range 2 { // the second answer is remembered
		for body, want := range map[string]ax.Fit{`{"text":"x"}`: ax.FitWell, large: ax.FitWell, `{"other":1}`: ax.FitOther, `{"text":1}`: ax.FitOther} {
			if got := b.Fit(ax.HandlerSpec{Name: "sleep", Body: []byte(body)}); got != want {
				t.Errorf("%.40s: %v, want %v", body, got, want)
			}
		}
	}
	if got := b.Fit(ax.HandlerSpec{Name: "nothing", Body: []byte(`{}`)}); got != ax.FitNone {
		t.Errorf("a handler that is not there: %v", got)
	}
}
