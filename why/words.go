package why

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/axctl/ax"
)

// by tells who wrote a version, when and from where.
func (e *explainer) by(v ax.VersionRow) string {
	r := v.Revision
	text := fmt.Sprintf("%s on %s at %s (v%d, serial %d", cmp.Or(r.Who, "somebody"), cmp.Or(r.Host, "an unknown host"), e.at(r.AtMs), v.Version, r.Serial)
	if r.Origin != "" {
		text += ", from " + r.Origin
	}
	if r.GitCommit != "" {
		text += ", commit " + r.GitCommit[:min(len(r.GitCommit), 12)]
	}
	return text + ")"
}

// since returns the version that began what is so in the latest one.
func (e *explainer) since(so func(ax.TaskSpec) bool) ax.VersionRow {
	begun := e.latest
	for _, v := range e.Versions {
		var spec ax.TaskSpec
		if v.Deleted || json.Unmarshal(v.Definition, &spec) != nil || !so(spec) {
			break
		}
		begun = v
	}
	return begun
}

func (e *explainer) hold(h ax.Hold) string {
	until := "until someone resumes it"
	if h.Kind == ax.HoldFrozen {
		until = "until someone unfreezes it"
	}
	if h.UntilMs != 0 {
		until = "until " + e.at(h.UntilMs)
	}
	return fmt.Sprintf("%s by %s since %s, %s: %s", h.Kind, h.Who, e.at(h.SinceMs), until, line(h.Reason))
}

// backfill tells a backfill in one line.
func (e *explainer) backfill(b ax.Backfill) string {
	decided := fmt.Sprintf("%d", b.Made+b.Passed)
	if b.Slots >= 0 {
		decided = fmt.Sprintf("%d of %d", b.Made+b.Passed, b.Slots)
	}
	state := string(b.State)
	if b.By != "" {
		state += " by " + b.By
	}
	return fmt.Sprintf("backfill %d by %s from %s to %s, %s, %s slots decided", b.ID, b.Who, e.at(b.FromMs), e.at(b.ToMs-1), state, decided)
}

// hosts tells of every axd that the store knows.
func (e *explainer) hosts() string {
	var all []string
	for _, h := range e.Hosts {
		end := "and has not stopped cleanly since"
		if h.LeftMs != 0 {
			end = "and stopped at " + e.at(h.LeftMs)
		}
		all = append(all, fmt.Sprintf("axd on %s (pid %d, data folder %s) started at %s %s", h.Name, h.PID, h.DataDir, e.at(h.StartedMs), end))
	}
	if len(all) == 0 {
		return "none ever did"
	}
	return strings.Join(all, "; ")
}

// lives tells several instances, at most three.
func (e *explainer) lives(rows []ax.InstanceRow) string {
	var all []string
	for _, in := range rows[:min(len(rows), 3)] {
		all = append(all, e.life(in))
	}
	if more := len(rows) - len(all); more > 0 {
		all = append(all, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(all, "; ")
}

// life tells an instance in one line.
func (e *explainer) life(in ax.InstanceRow) string {
	parts := []string{fmt.Sprintf("instance %d (%s, v%d) due %s", in.ID, in.Kind, in.Version, e.at(in.DueMs))}
	if late := in.ClaimedMs - in.DueMs; in.Kind == ax.InstanceSchedule && late >= 1000 {
		parts = append(parts, "claimed "+ax.Duration(late).Rough()+" later")
	}
	if in.StartedMs != 0 {
		parts = append(parts, fmt.Sprintf("started %s on %s", e.at(in.StartedMs), in.Host))
	} else if in.HandedMs != 0 {
		parts = append(parts, fmt.Sprintf("handed over %s to %s", e.at(in.HandedMs), in.Host))
	}
	if in.Attempt > 1 {
		parts = append(parts, fmt.Sprintf("attempt %d", in.Attempt))
	}
	return strings.Join(append(parts, e.state(in)), ", ")
}

// state tells how far an instance is.
func (e *explainer) state(in ax.InstanceRow) string {
	switch {
	case in.Status == ax.StatusPending && in.NotBeforeMs > e.NowMs:
		return "waiting until " + e.at(in.NotBeforeMs)
	case in.Status == ax.StatusPending:
		return "waiting"
	case in.Status == ax.StatusDispatched && in.StartedMs == 0:
		return "not begun"
	case in.Status == ax.StatusDispatched:
		return "running"
	}
	text := fmt.Sprintf("%s at %s", in.Status, e.at(in.EndedMs))
	if in.Reason != ax.ReasonNone {
		text = fmt.Sprintf("%s (%s) at %s", in.Status, in.Reason, e.at(in.EndedMs))
	}
	if in.Unkillable != "" {
		return text + ", its processes cannot be killed: " + line(in.Unkillable)
	}
	if in.HandedMs != 0 && in.StoppedMs == 0 {
		text += ", its processes not known to be gone"
	}
	return text
}

// poolList writes pools as axd's -pools takes them.
func poolList(pools map[string]int) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(pools)) {
		all = append(all, fmt.Sprintf("%s=%d", name, pools[name]))
	}
	return strings.Join(all, ", ")
}

// rulesOf writes schedule blocks in one line.
func rulesOf(specs []ax.ScheduleSpec) string {
	var all []string
	for _, s := range specs {
		text := fmt.Sprintf("cron %q", s.Cron)
		switch {
		case s.Every != 0:
			text = "every " + s.Every.String()
		case len(s.At) > 0:
			text = "at " + strings.Join(s.At[:min(len(s.At), 3)], ", ")
			if len(s.At) > 3 {
				text += fmt.Sprintf(" and %d more", len(s.At)-3)
			}
		}
		if text += " in " + cmp.Or(s.Timezone, "UTC"); s.From != "" {
			text += " from " + s.From
		}
		all = append(all, text)
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), "; ")
}

// line is the first line of a text, not too long, without a stop at its end.
func line(text string) string {
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	return strings.TrimRight(ax.CleanText(text, 200), ".")
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
