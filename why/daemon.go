package why

import (
	"fmt"
	"slices"
	"strings"

	"github.com/axctl/ax"
	"github.com/axctl/ax/runtime/rules"
)

// daemon asks whether an axd works on the store.
func (e *explainer) daemon() bool {
	const question = "Does axd run on this store?"
	var live []string
	for _, h := range e.live() {
		live = append(live, fmt.Sprintf("on %s since %s (pid %d)", h.Name, e.at(h.StartedMs), h.PID))
	}
	switch {
	case len(live) > 0:
		e.yes(question, strings.Join(live, "; "))
		return true
	case e.Daemon:
		e.no(question, e.hosts(), Answer{
			Code:   DaemonApart,
			Text:   fmt.Sprintf("An axd holds the lock beside this store but has not joined it, so it works on another file: the store was replaced under it, or it just starts (%s).", e.hosts()),
			Remedy: "restart axd if that lasts",
		})
	default:
		e.no(question, e.hosts(), Answer{
			Code:   DaemonDown,
			Text:   fmt.Sprintf("No axd runs on this store, so nothing fires: %s.", e.hosts()),
			Remedy: "start axd",
		})
	}
	return false
}

// clock asks whether axd believes the clock of this machine.
func (e *explainer) clock() {
	const question = "Does axd believe the clock?"
	step := rules.ClockStep(e.Mark, e.Clock)
	switch {
	case e.Clock == ax.ClockMark{} || e.Mark == ax.ClockMark{}:
		e.unknown(question, "not looked at")
	case step == 0:
		e.yes(question, "it did at "+e.at(e.Mark.WallMs))
	default:
		way := "forward"
		if step < 0 {
			way, step = "back", -step
		}
		by := ax.Duration(step).Rough()
		e.no(question, "set "+way+" by "+by, Answer{
			Code: ClockDoubted,
			Text: fmt.Sprintf("The clock of this machine was set %s by %s since axd believed it last, when it said %s: axd claims nothing until it is confirmed.",
				way, by, e.at(e.Mark.WallMs)),
			Remedy: "axctl doctor tells what the kernel says of its clock; a minute without another step confirms it too",
		})
	}
}

// live returns the hosts whose axd runs.
func (e *explainer) live() []ax.Host {
	if !e.Daemon {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(e.Hosts), func(h ax.Host) bool { return h.LeftMs != 0 })
}

// size tells how many places a pool has where axd runs, as a tail of a sentence.
func (e *explainer) size(pool string) string {
	for _, h := range e.live() {
		if n, ok := h.Pools[pool]; ok {
			return fmt.Sprintf(" in its %s on %s", plural(n, "place"), h.Name)
		}
	}
	return ""
}

// pooled asks whether a running axd has the pool.
func (e *explainer) pooled() bool {
	const question = "Has axd its pool?"
	pool := e.current.spec.PoolName()
	var have []string
	for _, h := range e.live() {
		n, ok := h.Pools[pool]
		switch {
		case ok:
			e.yes(question, "%s on %s, %s", pool, h.Name, plural(n, "place"))
			return true
		case slices.ContainsFunc(e.offerOf(h).Handlers, func(o ax.OfferedHandler) bool { return o.Name == pool }):
			e.yes(question, "%s on %s, as its handler has", pool, h.Name)
			return true
		case h.Pools == nil:
			e.unknown(question, "axd on %s is of a version that does not tell its pools", h.Name)
			return true
		}
		have = append(have, fmt.Sprintf("%s has %s", h.Name, poolList(h.Pools)))
	}
	e.no(question, strings.Join(have, "; "), Answer{
		Code:   NoPool,
		Text:   fmt.Sprintf("No running axd has a pool %s, which %s chose: %s.", pool, e.Object.Address(), strings.Join(have, "; ")),
		Remedy: "axd -pools " + pool + "=N makes it, or choose one of these and apply",
	})
	return false
}
