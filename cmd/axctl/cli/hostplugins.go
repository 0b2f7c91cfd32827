package cli

import (
	"fmt"
	"slices"
	"time"

	"github.com/axctl/ax"
)

// isLive reports whether a host runs.
func isLive(live []ax.Host, name string) bool {
	return slices.ContainsFunc(live, func(h ax.Host) bool { return h.Name == name })
}

// quarantineText says since when and until when.
func quarantineText(sinceMs, retryMs int64) string {
	next := "it is being started again now"
	if retryMs != 0 {
		next = "it is started again at " + when(retryMs, time.UTC) + ", and when its file changes"
	}
	return fmt.Sprintf("quarantined after a crash loop since %s; %s", when(sinceMs, time.UTC), next)
}

// pluginFindings tells what plugins of running hosts do not run, or not as they
// should.
func pluginFindings(offers []ax.HostOffer, live []ax.Host) []finding {
	var found []finding
	for _, o := range offers {
		if !isLive(live, o.Host) {
			continue
		}
		for _, p := range o.Plugins {
			found = append(found, pluginFinding(o.Host, p)...)
		}
	}
	return found
}

func pluginFinding(host string, p ax.HostPlugin) []finding {
	var found []finding
	name := "plugin " + p.Name
	if p.Name == "" {
		name = "the plugin folder"
	}
	subject := fmt.Sprintf("%s (%s) on %s", name, p.Path, host)
	if p.Declared != "" {
		found = append(found, finding{
			What:   fmt.Sprintf("%s runs on as it was started: %s", subject, p.Declared),
			Remedy: "put the file, or the plugin block, right (a new file needs its sha256 in the block): axd takes it up within seconds, and what runs is not disturbed",
		})
	}
	if p.Shadowed != "" {
		found = append(found, finding{
			What:   fmt.Sprintf("%s offers what another one has: %s", subject, p.Shadowed),
			Remedy: "take one of the files away, or give the one that is meant a plugin block, which comes first",
		})
	}
	switch {
	case p.QuarantinedMs != 0:
		found = append(found, finding{
			What:   fmt.Sprintf("%s is %s; it ended with: %s", subject, quarantineText(p.QuarantinedMs, p.RetryMs), p.Problem),
			Remedy: "mend it and put the new file in its place, which is taken up at once; what needs its handlers waits meanwhile",
		})
	case p.Problem != "":
		found = append(found, finding{
			What:   subject + ": " + p.Problem,
			Remedy: "what needs its handlers waits; axd takes it up by itself as soon as the file, the folder or the plugin block is put right",
		})
	}
	return found
}

// hostNotes tells how hosts that run keep attempts together, and what plugins of
// others were quarantined when their axd told last.
func hostNotes(offers []ax.HostOffer, live []ax.Host) []string {
	var notes []string
	for _, o := range offers {
		running := isLive(live, o.Host)
		if running && o.Containment != "" {
			notes = append(notes, fmt.Sprintf("containment on %s: %s", o.Host, o.Containment))
		}
		for _, p := range o.Plugins {
			if !running && p.QuarantinedMs != 0 {
				notes = append(notes, fmt.Sprintf("plugin %s (%s) on %s was quarantined when axd told last (%s), since %s: %s; whether it runs now is known when axd does",
					p.Name, p.Path, o.Host, when(o.AtMs, time.UTC), when(p.QuarantinedMs, time.UTC), p.Problem))
			}
		}
	}
	return notes
}

// dataFindings tells data folders that are not what axd has open.
func dataFindings(offers []ax.HostOffer, live []ax.Host) []finding {
	var found []finding
	for _, o := range offers {
		if o.DataProblem != "" && isLive(live, o.Host) {
			found = append(found, finding{
				What:   fmt.Sprintf("axd on %s: %s", o.Host, o.DataProblem),
				Remedy: "put the folder back, or start axd again: it makes a new one, without the logs of the old one",
			})
		}
	}
	return found
}
