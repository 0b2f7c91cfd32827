// Package memory is a store in memory: the model that real drivers are
// compared with, and what tests of the runtime run on. It owns the plainest
// reading of the ports: one mutex, maps and slices, every row whole. It starts
// no goroutine and reads no clock but the one it is given, so it works inside
// testing/synctest.
//
// A method checks everything before it writes anything, so an error leaves no
// trace.
package memory

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/axctl/ax"
)

// Store is a store in memory, with a field a table. It is safe for concurrent
// use.
type Store struct {
	now         func() time.Time
	id          string
	incarnation string
	createdMs   int64

	mu        sync.Mutex // guards everything below
	serial    int64
	applied   bool // an apply was committed
	foreign   bool // something that axctl does was committed since the last Changed
	stacks    map[string]*stack
	revisions map[string]ax.Revision // by apply id
	objects   map[int64]*object
	instances map[int64]*instance
	keys      map[ax.Ref]int64 // by ledger key (a Ref without ID)
	triggers  map[triggerKey]triggered
	stretches []ax.SkippedStretch
	backfills []*ax.Backfill // by id, from 1
	hosts     map[string]ax.Host
	offers    map[string]ax.HostOffer // by host
	tzdata    string                  // of the host that joined last
	clock     ax.ClockMark
	nextID    int64 // of the next instance
}

type triggerKey struct {
	objectID int64
	key      string
}

// triggered is what a trigger with a key made.
type triggered struct {
	ax.Ref
	atMs int64
}

type stack struct {
	serial int64
	last   ax.Revision
}

type object struct {
	ax.Object
	versions    []version
	maxActive   int
	overlap     ax.Overlap
	freezeAfter int
}

type version struct {
	ax.VersionRow
	spec ax.TaskSpec
}

type instance struct {
	ax.Instance
	attempts    []ax.Attempt
	transitions []ax.Transition
	signal      *ax.SignalState // the last, of any attempt
	progress    *ax.Progress
}

var (
	_ ax.Definitions        = (*Store)(nil)
	_ ax.Operations         = (*Store)(nil)
	_ ax.Claims             = (*Store)(nil)
	_ ax.Fills              = (*Store)(nil)
	_ ax.BackfillOperations = (*Store)(nil)
	_ ax.Dispatches         = (*Store)(nil)
	_ ax.CancelIntents      = (*Store)(nil)
	_ ax.Watcher            = (*Store)(nil)
	_ ax.Hosts              = (*Store)(nil)
	_ ax.Plugins            = (*Store)(nil)
	_ ax.Retention          = (*Store)(nil)
	_ ax.Upkeep             = (*Store)(nil)
	_ ax.Queries            = (*Store)(nil)
	_ ax.Auditor            = (*Store)(nil)
)

// New makes an empty store whose clock is now.
func New(now func() time.Time) *Store {
	return &Store{
		now: now, createdMs: now().UnixMilli(),
		id: uuid.NewString(), incarnation: strings.ReplaceAll(uuid.NewString(), "-", "")[:12],
		stacks: map[string]*stack{}, revisions: map[string]ax.Revision{},
		objects: map[int64]*object{}, instances: map[int64]*instance{},
		keys: map[ax.Ref]int64{}, triggers: map[triggerKey]triggered{}, hosts: map[string]ax.Host{}, offers: map[string]ax.HostOffer{}, nextID: 1,
	}
}

// Close does nothing; it lets a Store stand in for one that has files.
func (s *Store) Close() error { return nil }

// Changed reports whether anything was committed since the last call that
// axctl does in a process of its own: an apply, a trigger, a cancel, a hold.
func (s *Store) Changed(context.Context) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed := s.foreign
	s.foreign = false
	return changed, nil
}

// Join implements ax.Hosts.
func (s *Store) Join(_ context.Context, h ax.Host) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	h.Handlers, h.Pools = slices.Clone(h.Handlers), maps.Clone(h.Pools)
	h.LeftMs = 0
	s.tzdata = h.TZData
	s.hosts[h.Name] = h
	return nil
}

// Leave implements ax.Hosts.
func (s *Store) Leave(_ context.Context, name, boot string, nowMs int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h, ok := s.hosts[name]; ok && h.Boot == boot {
		h.LeftMs = nowMs
		s.hosts[name] = h
	}
	return nil
}

// canFire reports whether the object is a task whose slots may be claimed.
func (o *object) canFire() bool {
	return o.Kind == ax.KindTask && o.Row.Enabled && o.Row.Hold == nil && !o.Deleted
}

// tasks returns the task objects in order of id.
func (s *Store) tasks() []*object {
	var ts []*object
	for _, id := range slices.Sorted(maps.Keys(s.objects)) {
		if o := s.objects[id]; o.Kind == ax.KindTask {
			ts = append(ts, o)
		}
	}
	return ts
}

// byKey returns instances that match, in order of the ledger key.
func (s *Store) byKey(match func(*instance) bool) []*instance {
	var found []*instance
	for _, in := range s.instances {
		if match(in) {
			found = append(found, in)
		}
	}
	slices.SortFunc(found, func(a, b *instance) int { return compareKeys(a.Ref, b.Ref) })
	return found
}

func compareKeys(a, b ax.Ref) int {
	return cmp.Or(cmp.Compare(a.DueMs, b.DueMs), cmp.Compare(a.TaskID, b.TaskID), strings.Compare(a.SlotKey, b.SlotKey))
}

// key is the ledger key: a Ref without its id.
func key(r ax.Ref) ax.Ref { return ax.Ref{DueMs: r.DueMs, TaskID: r.TaskID, SlotKey: r.SlotKey} }

// instanceAt finds the row a Ref names.
func (s *Store) instanceAt(r ax.Ref) *instance {
	id, ok := s.keys[key(r)]
	if !ok || id != r.ID {
		return nil
	}
	return s.instances[id]
}

// bear adds a row under a fresh id.
func (s *Store) bear(in ax.Instance) *instance {
	in.ID = s.nextID
	s.nextID++
	in.Attempt = 1
	row := &instance{Instance: in}
	s.instances[in.ID] = row
	s.keys[key(in.Ref)] = in.ID
	return row
}

// note appends to the life line; from and to are equal when only something was
// noted.
func (in *instance) note(atMs int64, from, to ax.Status, actor string, cause ax.Cause, detail string) {
	in.transitions = append(in.transitions, ax.Transition{
		InstanceID: in.ID, AtMs: atMs, Attempt: in.Attempt, From: from, To: to,
		Actor: ax.CleanText(actor, ax.MaxErrorBytes), Cause: cause, Detail: ax.CleanText(detail, ax.MaxErrorBytes),
	})
}

// endWaiting takes a waiting row to a final status.
func (s *Store) endWaiting(in *instance, to ax.Status, reason ax.Reason, nowMs int64) {
	in.Status, in.Reason, in.EndedMs = to, reason, nowMs
	s.objects[in.TaskID].Row.Waiting--
}

// outputs returns what of an attempt's outputs is stored.
func outputs(o json.RawMessage) json.RawMessage {
	if len(o) == 0 || len(o) > ax.MaxOutputsBytes || !json.Valid(o) || strings.ContainsRune(string(o), 0) {
		return nil
	}
	return json.RawMessage(strings.ToValidUTF8(string(o), "\uFFFD"))
}
