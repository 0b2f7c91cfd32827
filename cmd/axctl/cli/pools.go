package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/axctl/ax"
)

// absentPools returns which of the pools that tasks chose no running axd has;
// none when nothing runs, or some axd does not tell its pools.
func absentPools(live []ax.Host, chosen []string) []string {
	for _, h := range live {
		if h.Pools == nil {
			return nil
		}
	}
	if len(live) == 0 {
		return nil
	}
	chosen = slices.DeleteFunc(slices.Clone(chosen), func(pool string) bool {
		return slices.ContainsFunc(live, func(h ax.Host) bool { _, ok := h.Pools[pool]; return ok })
	})
	slices.Sort(chosen)
	return slices.Compact(chosen)
}

// poolList writes pools as axd's -pools takes them.
func poolList(pools map[string]int) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(pools)) {
		all = append(all, fmt.Sprintf("%s=%d", clean(name), pools[name]))
	}
	return strings.Join(all, ", ")
}

// poolsOf tells the pools of hosts.
func poolsOf(live []ax.Host) string {
	var all []string
	for _, h := range live {
		all = append(all, fmt.Sprintf("%s has %s", clean(h.Name), poolList(h.Pools)))
	}
	return strings.Join(all, "; ")
}

// poolWarnings warns of pools that a configuration chooses and no running axd
// has, where that can be known.
func (c *call) poolWarnings(ctx context.Context, q ax.Queries, definitions []ax.Definition) (ax.Diagnostics, error) {
	hosts, err := q.Hosts(ctx)
	if err != nil {
		return nil, fmt.Errorf("read hosts: %w", err)
	}
	live := liveHosts(hosts, c.daemonRuns())
	first := map[string]ax.Definition{}
	for _, d := range slices.Backward(definitions) {
		if d.Task != nil && d.Task.Pool != "" {
			first[d.Task.Pool] = d
		}
	}
	var found ax.Diagnostics
	for _, pool := range absentPools(live, slices.Collect(maps.Keys(first))) {
		at := first[pool].Source
		found = append(found, ax.Diagnostic{
			Severity: ax.SeverityWarning,
			Summary:  fmt.Sprintf("No running axd has a pool %q", pool),
			Detail:   fmt.Sprintf("Instances of what chose it wait until one has: %s. axd -pools %s=N makes it.", poolsOf(live), pool),
			Address:  first[pool].Address(), Range: &at,
		})
	}
	return found, nil
}
