package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/axctl/ax"
	"github.com/axctl/ax/schedule"
)

// task is an object of the store with its definition read: a task, or where all
// objects are meant something that only has versions.
type task struct {
	ax.Object
	Spec   ax.TaskSpec
	Zone   *time.Location // of its first schedule; UTC without one
	Broken error          // why this program cannot read the definition; doctor tells
}

// newTask reads an object's definition. One that cannot be read must not keep
// people from seeing the others.
func newTask(o ax.Object) task {
	t := task{Object: o, Zone: time.UTC}
	if o.Kind != ax.KindTask {
		return t
	}
	if t.Broken = json.Unmarshal(o.Definition, &t.Spec); t.Broken == nil {
		t.Zone = specZone(t.Spec)
	}
	return t
}

// timetable compiles the task's schedules.
func (t task) timetable() (*schedule.Schedule, error) {
	if t.Broken != nil {
		return nil, fmt.Errorf("definition of %s: %w", t.Address(), t.Broken)
	}
	timetable, err := schedule.Compile(t.Spec.Schedules)
	if err != nil {
		return nil, fmt.Errorf("schedule of %s: %w", t.Address(), err)
	}
	return timetable, nil
}

// specZone returns the zone a task's instants are shown in.
func specZone(spec ax.TaskSpec) *time.Location {
	if len(spec.Schedules) == 0 {
		return time.UTC
	}
	zone, err := schedule.Zone(spec.Schedules[0].Timezone)
	if err != nil {
		return time.UTC
	}
	return zone
}

// tasks returns the tasks of the store in the order of their addresses;
// deleted ones only when asked for.
func tasks(ctx context.Context, q ax.Queries, deleted bool) ([]task, error) {
	all, err := objects(ctx, q, deleted)
	return slices.DeleteFunc(all, func(t task) bool { return t.Kind != ax.KindTask }), err
}

// objects is tasks, with what is none too.
func objects(ctx context.Context, q ax.Queries, deleted bool) ([]task, error) {
	all, err := q.Objects(ctx, ax.ObjectFilter{})
	if err != nil {
		return nil, err
	}
	var out []task
	for _, o := range all {
		if deleted || !o.Deleted {
			out = append(out, newTask(o))
		}
	}
	return out, nil
}

// find returns the object with an address. The quotes of a for_each key may be
// missing, since shells take them away.
func find(all []task, address string) (task, error) {
	want := plainAddress(address)
	var found []task
	var names []string
	for _, t := range all {
		if plainAddress(t.Address()) == want {
			found = append(found, t)
		}
		names = append(names, t.Address())
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		near := nearest(address, names)
		for i, name := range near {
			near[i] = shellWord(name)
		}
		detail := "axctl show lists what there is."
		if len(near) > 0 {
			detail = "Did you mean " + strings.Join(near, " or ") + "?"
		}
		return task{}, ax.Diagnostic{
			Severity: ax.SeverityError,
			Summary:  fmt.Sprintf("No object %s in the store", address),
			Detail:   detail,
		}
	default:
		return task{}, ax.Diagnostic{
			Severity: ax.SeverityError,
			Summary:  fmt.Sprintf("%s is in more than one stack", address),
			Detail:   "It is in " + found[0].Stack + " and in " + found[1].Stack + ".",
		}
	}
}

// plainAddress is an address as a shell leaves it.
func plainAddress(address string) string {
	return strings.ReplaceAll(strings.ReplaceAll(address, `["`, "["), `"]`, "]")
}

// shellWord quotes an address for a shell where it needs that.
func shellWord(word string) string {
	if strings.ContainsAny(word, "[]\"' $`\\*?!&;|<>()") {
		return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	return word
}

// unread returns objects, deleted ones too, with no definition read: to parse
// ten thousand to find one takes most of a second.
func unread(ctx context.Context, q ax.Queries, f ax.ObjectFilter) ([]task, error) {
	stored, err := q.Objects(ctx, f)
	all := make([]task, len(stored))
	for i, o := range stored {
		all[i].Object = o
	}
	return all, err
}

// resolve opens nothing: it finds one task in the store by its address.
func resolve(ctx context.Context, q ax.Queries, address string, deleted bool) (task, error) {
	return lookUp(ctx, q, address, func(in []task) (task, error) { return resolveAmong(in, address, deleted) })
}

// lookUp lets pick choose among the objects that have an address. Where that
// fails it may choose among all, whose names are told to people.
func lookUp(ctx context.Context, q ax.Queries, address string, pick func([]task) (task, error)) (task, error) {
	in, err := unread(ctx, q, addressed(address))
	if err != nil {
		return task{}, err
	}
	t, err := pick(in)
	if err != nil {
		if in, err = unread(ctx, q, ax.ObjectFilter{}); err != nil {
			return task{}, err
		}
		if t, err = pick(in); err != nil {
			return task{}, err
		}
	}
	return newTask(t.Object), nil
}

// addressed selects what has an address, with the quotes of a for_each key back
// in their place.
func addressed(address string) ax.ObjectFilter {
	kind, name, _ := strings.Cut(plainAddress(address), ".")
	if base, key, ok := strings.Cut(name, "["); ok && strings.HasSuffix(key, "]") {
		name = base + `["` + strings.TrimSuffix(key, "]") + `"]`
	}
	return ax.ObjectFilter{Kind: ax.ObjectKind(kind), Name: name}
}

// resolveAmong is resolve among objects that need not be read.
func resolveAmong(all []task, address string, deleted bool) (task, error) {
	in := live(all)
	if deleted {
		in = all
	}
	if t, err := find(in, address); err == nil && t.Kind != ax.KindTask {
		return task{}, ax.Diagnostic{
			Severity: ax.SeverityError,
			Summary:  fmt.Sprintf("%s is a %s, and this is asked of a task", t.Address(), t.Kind),
			Detail:   fmt.Sprintf("axctl history %s tells its versions.", shellWord(t.Address())),
		}
	}
	all = slices.DeleteFunc(all, func(t task) bool { return t.Kind != ax.KindTask })
	if deleted {
		return find(all, address)
	}
	return findLive(all, address)
}

// findLive is find among the tasks that are not deleted; of a deleted one it
// says so.
func findLive(all []task, address string) (task, error) {
	t, err := find(live(all), address)
	if err == nil {
		return t, nil
	}
	if gone, lost := find(all, address); lost == nil {
		return task{}, ax.Diagnostic{
			Severity: ax.SeverityError,
			Summary:  fmt.Sprintf("%s is deleted", gone.Address()),
			Detail:   fmt.Sprintf("axctl history %s tells when and by whom.", shellWord(gone.Address())),
		}
	}
	return task{}, err
}

// live returns the tasks that are not deleted.
func live(all []task) []task {
	return slices.DeleteFunc(slices.Clone(all), func(t task) bool { return t.Deleted })
}

// completeAddress offers the addresses of the store to a shell, for the first
// argument.
func (c *call) completeAddress(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	const noFiles = cobra.ShellCompDirectiveNoFileComp
	if len(args) > 0 || c.begin() != nil {
		return nil, noFiles
	}
	s, err := c.open(cmd.Context(), OpenOptions{ReadOnly: true})
	if err != nil {
		return nil, noFiles
	}
	defer s.Close()
	all, err := unread(cmd.Context(), s, ax.ObjectFilter{Kind: ax.KindTask})
	if err != nil {
		return nil, noFiles
	}
	var names []string
	for _, t := range live(all) {
		names = append(names, t.Address())
	}
	return names, noFiles
}

// zones maps the tasks of instances to the zones their instants are shown in.
func zones(ctx context.Context, q ax.Queries, rows []ax.InstanceRow) (map[int64]*time.Location, error) {
	out := map[int64]*time.Location{}
	if len(rows) == 0 {
		return out, nil
	}
	var f ax.ObjectFilter
	for _, r := range rows {
		if _, met := out[r.TaskID]; !met {
			out[r.TaskID] = nil
			f.IDs = append(f.IDs, r.TaskID)
		}
	}
	all, err := q.Objects(ctx, f)
	for _, o := range all {
		out[o.ID] = newTask(o).Zone
	}
	return out, err
}
