package claim

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/axctl/ax"
	"github.com/axctl/ax/schedule"
)

// Bounds of the versions kept and of one read.
const (
	maxVersions  = 200_000
	versionsRead = 500
)

// version is a definition with its compiled schedule.
type version struct {
	ax.TaskVersion
	timetable *schedule.Schedule
	err       error // its schedule does not compile here
}

// fault returns why a version cannot be used; v is nil when it is not there.
func (v *version) fault() error {
	if v == nil {
		return errors.New("the definition is not in the store, or cannot be read")
	}
	return v.err
}

// versions reads, compiles and keeps definitions, so that no string is parsed
// when a slot is due.
type versions struct {
	store ax.Specs
	m     map[ax.VersionKey]*version
	queue []ax.VersionKey // wanted soon
}

func newVersions(store ax.Specs) *versions {
	return &versions{store: store, m: map[ax.VersionKey]*version{}}
}

func (vs *versions) get(k ax.VersionKey) *version { return vs.m[k] }

// address names a task in the log: by its id while its definition is not there.
func (vs *versions) address(k ax.VersionKey) string {
	if v := vs.m[k]; v != nil {
		return ax.Address(ax.KindTask, v.Name)
	}
	return strconv.FormatInt(k.ObjectID, 10)
}

// want notes that a version will be needed soon.
func (vs *versions) want(k ax.VersionKey) {
	if vs.m[k] == nil && len(vs.queue) < maxVersions {
		vs.queue = append(vs.queue, k)
	}
}

func (vs *versions) wanted() bool { return len(vs.queue) > 0 }

// preload reads a part of what is wanted soon.
func (vs *versions) preload(ctx context.Context) error {
	n := min(len(vs.queue), versionsRead)
	keys := vs.queue[:n]
	vs.queue = vs.queue[n:]
	return vs.load(ctx, keys)
}

// load makes versions be there, all at once; one that does not exist stays
// missing. So room is made first: a version that was forgotten to make it must
// not be taken for one that does not exist.
func (vs *versions) load(ctx context.Context, keys []ax.VersionKey) error {
	vs.shrink(len(keys))
	var missing []ax.VersionKey
	for _, k := range keys {
		if vs.m[k] == nil {
			missing = append(missing, k)
		}
	}
	for chunk := range slices.Chunk(missing, versionsRead) {
		read, err := vs.store.TaskVersions(ctx, chunk)
		if err != nil {
			return err
		}
		for _, tv := range read {
			v := &version{TaskVersion: tv}
			v.timetable, v.err = schedule.Compile(tv.Spec.Schedules)
			vs.m[tv.VersionKey] = v
		}
	}
	return nil
}

// shrink makes room for n versions by forgetting any half of those kept.
func (vs *versions) shrink(n int) {
	if len(vs.m)+n <= maxVersions {
		return
	}
	for k := range vs.m {
		if delete(vs.m, k); len(vs.m) <= maxVersions/2 {
			return
		}
	}
}
