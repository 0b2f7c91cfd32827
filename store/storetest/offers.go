package storetest

import (
	"fmt"

	"github.com/axctl/ax"
)

func testOffers(f *fixture) {
	offers := func() []ax.HostOffer {
		f.Helper()
		got, err := f.Offers(f.ctx)
		f.ok(err)
		return got
	}
	one := ax.HostOffer{
		Host: "h1", Boot: "b1", AtMs: f.nowMs, Containment: "process groups", DataProblem: "it is gone",
		Handlers: []ax.OfferedHandler{
			{Name: "daily", Executor: "report", SchemaHash: "1f", Schema: []byte(`{"handler":"daily"}`)},
			{Name: "shell", Executor: "shell", SchemaHash: "2f", Schema: []byte(`{"handler":"shell"}`)},
		},
		Plugins: []ax.HostPlugin{
			{Path: "/plugins", Problem: "may be written"},
			{Name: "bad", Path: "/plugins/ax-handler-bad", Problem: "no\x00good", QuarantinedMs: f.nowMs - 5, RetryMs: f.nowMs + 5},
			{Name: "report", Path: "/plugins/ax-handler-report", SHA256: "3f", Declared: "env differs", Shadowed: "daily is other's"},
		},
	}
	f.fails(f.Offer(f.ctx, one), ax.ErrConflict) // of a host that never joined
	equal(f, "offers of nobody", len(offers()), 0)
	f.ok(f.Join(f.ctx, ax.Host{Name: "h1", Boot: "b1", StartedMs: f.nowMs}))
	f.ok(f.Join(f.ctx, ax.Host{Name: "h0", Boot: "b0", StartedMs: f.nowMs}))
	equal(f, "offers before the first", len(offers()), 0)
	f.ok(f.Offer(f.ctx, one))
	f.fails(f.Offer(f.ctx, ax.HostOffer{Host: "h0", Boot: "an earlier one", AtMs: f.nowMs}), ax.ErrConflict)
	want := one
	want.Plugins[1].Problem = "no\uFFFDgood"
	equal(f, "offers", fmt.Sprintf("%+v", offers()), fmt.Sprintf("%+v", []ax.HostOffer{want}))
	f.ok(f.Leave(f.ctx, "h1", "b1", f.nowMs))
	equal(f, "offers after a stop", len(offers()), 1)

	f.ok(f.Join(f.ctx, ax.Host{Name: "h1", Boot: "b2", StartedMs: f.nowMs})) // started again, and told nothing yet
	want.Boot = "b2"
	equal(f, "offers of a new boot", fmt.Sprintf("%+v", offers()), fmt.Sprintf("%+v", []ax.HostOffer{want}))
	f.fails(f.Offer(f.ctx, one), ax.ErrConflict) // comes late, from the boot before
	one.Boot = "b2"
	one.Handlers, one.Plugins, one.AtMs = one.Handlers[:1], nil, f.nowMs+1
	f.ok(f.Offer(f.ctx, one))
	equal(f, "the newer offer", fmt.Sprintf("%+v", offers()), fmt.Sprintf("%+v", []ax.HostOffer{one}))
}

func testDeclaredPlugins(f *fixture) {
	define := func(name, version string) ax.Change {
		body, hash := ax.Definition{
			Kind: ax.KindPlugin, Name: name, Plugin: &ax.PluginSpec{Path: "x", Version: version, Env: []string{"A"}},
		}.Canonical()
		return ax.Change{Action: ax.ActionCreate, Kind: ax.KindPlugin, Name: name, Definition: body, Hash: hash}
	}
	f.apply(define("q", "1"), define("p", "2"), f.create("t", spec()))
	_, err := f.Apply(f.ctx, f.changeSet("other", define("p", "3"), define("gone", "4")))
	f.ok(err)
	var gone ax.Object
	st, err := f.ReadStack(f.ctx, "other")
	f.ok(err)
	for _, o := range st.Objects {
		if o.Name == "gone" {
			gone = o
		}
	}
	_, err = f.Apply(f.ctx, f.changeSet("other", ax.Change{
		Action: ax.ActionDelete, Kind: ax.KindPlugin, Name: "gone", ObjectID: gone.ID, BaseVersion: 1,
	}))
	f.ok(err)
	declared, err := f.DeclaredPlugins(f.ctx)
	f.ok(err)
	got := ""
	for _, p := range declared {
		got += fmt.Sprintf("%s/%s v%d %+v\n", p.Stack, p.Name, p.Version, p.Spec)
	}
	equal(f, "plugins", got, `main/p v1 {Path:x SHA256: Version:2 Env:[A]}
other/p v1 {Path:x SHA256: Version:3 Env:[A]}
main/q v1 {Path:x SHA256: Version:1 Env:[A]}
`)
}
