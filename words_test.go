package ax_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"github.com/axctl/ax"
	"pgregory.net/rapid"
)

func TestDuration(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"0s": "0s", "90m": "1h30m", "2h": "2h", "120s": "2m", "1h0m5s": "1h0m5s", "250ms": "250ms", "36h": "36h",
	} {
		d, err := ax.ParseDuration(text)
		if err != nil || d.String() != want {
			t.Errorf("%s: %s, %v; want %s", text, d, err, want)
		}
	}
	for _, text := range []string{"", "30", "-5m", "1d", "1us", "1h 30m"} {
		if d, err := ax.ParseDuration(text); err == nil {
			t.Errorf("%q was read as %s", text, d)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		d := ax.Duration(rapid.Int64Range(0, 1<<40).Draw(t, "ms"))
		b, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		var back ax.Duration
		if err := json.Unmarshal(b, &back); err != nil || back != d {
			t.Fatalf("%s became %s, %v", d, back, err)
		}
	})
}

func TestRough(t *testing.T) {
	t.Parallel()
	for ms, want := range map[ax.Duration]string{
		0:           "0 s",
		12:          "12 ms",
		1000:        "1 s",
		1500:        "1.5 s",
		61_000:      "1 min 1 s",
		5_400_000:   "1 h 30 min",
		3_600_001:   "1 h",
		86_700_000:  "1 d",
		90_000_000:  "1 d 1 h",
		-1000:       "-1 s",
		-90_000_000: "-1 d 1 h",
	} {
		if got := ms.Rough(); got != want {
			t.Errorf("%d ms: %q, want %q", int64(ms), got, want)
		}
	}
}

// A batch number is unique by construction, names its row, and is refused when
// it was not made by BatchNo.
func TestBatchNo(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		id, attempt := rapid.Int64Min(1).Draw(t, "id"), rapid.IntRange(1, 1000).Draw(t, "attempt")
		inc, gotID, gotAttempt, ok := ax.ParseBatchNo(ax.BatchNo("k3x9", id, attempt))
		if !ok || inc != "k3x9" || gotID != id || gotAttempt != attempt {
			t.Fatalf("got %s %d %d %v", inc, gotID, gotAttempt, ok)
		}
	})
	for _, s := range []string{"", "a", "a-1", "a-1-x", "a-x-1", "a-1-2-3"} {
		if _, _, _, ok := ax.ParseBatchNo(s); ok {
			t.Errorf("%q is no batch number", s)
		}
	}
}

func TestCanonicalIsStable(t *testing.T) {
	t.Parallel()
	d := ax.Definition{Kind: ax.KindTask, Name: "a", Task: &ax.TaskSpec{
		Labels: map[string]string{"b": "2", "a": "1"}, Timeout: 3_600_000,
		Handler: ax.HandlerSpec{Name: "shell", Body: json.RawMessage(`{"command":"true"}`)},
	}}
	moved := d
	moved.Source = ax.Range{Filename: "elsewhere.hcl"}
	moved.Name = "renamed"
	b1, h1 := d.Canonical()
	b2, h2 := moved.Canonical()
	if string(b1) != string(b2) || h1 != h2 {
		t.Error("name and place are not content")
	}
	other := *d.Task
	other.Timeout++
	if _, h3 := (ax.Definition{Kind: ax.KindTask, Task: &other}).Canonical(); h3 == h1 {
		t.Error("a changed timeout has the same hash")
	}
}

// The table is whole: every status is reached, open ones are left, final ones
// never.
func TestTransitionTable(t *testing.T) {
	t.Parallel()
	for _, s := range ax.Statuses {
		var in, out int
		for _, e := range ax.Transitions {
			if e.To == s {
				in++
			}
			if e.From == s {
				out++
			}
		}
		if in == 0 {
			t.Errorf("%s is never reached", s)
		}
		if s.Final() != (out == 0) {
			t.Errorf("%s: final %v, and %d ways out", s, s.Final(), out)
		}
	}
	if ax.MayMove(ax.StatusSuccess, ax.StatusDispatched) || !ax.MayMove(ax.StatusDispatched, ax.StatusPending) {
		t.Error("MayMove disagrees with the table")
	}
}

// Every attribute of the language carries its name and its documentation.
func TestSpecTags(t *testing.T) {
	t.Parallel()
	for _, v := range []any{ax.TaskSpec{}, ax.ScheduleSpec{}, ax.RetrySpec{}, ax.MisfireSpec{}} {
		typ := reflect.TypeOf(v)
		var names []string
		for i := range typ.NumField() {
			f := typ.Field(i)
			name := f.Tag.Get("ax")
			if name == "" || f.Tag.Get("doc") == "" || slices.Contains(names, name) {
				t.Errorf("%s.%s: tags %q", typ.Name(), f.Name, f.Tag)
			}
			names = append(names, name)
		}
	}
}

// Two jobs hash alike only when they are the same work.
func TestJobHash(t *testing.T) {
	t.Parallel()
	job := ax.Job{BatchNo: "k-1-1", Stack: "s", Task: "task.a", Handler: "shell", Body: json.RawMessage(`{}`), Timezone: "UTC", DueMs: 1, Timeout: 2, KillAfter: 3}
	seen := map[string]string{job.Hash(): "the job"}
	for name, change := range map[string]func(*ax.Job){
		"batch": func(j *ax.Job) { j.BatchNo = "k-1-2" }, "stack": func(j *ax.Job) { j.Stack = "x" },
		"task": func(j *ax.Job) { j.Task = "task.b" }, "handler": func(j *ax.Job) { j.Handler = "http" },
		"body": func(j *ax.Job) { j.Body = json.RawMessage(`{"a":1}`) }, "zone": func(j *ax.Job) { j.Timezone = "X" },
		"due": func(j *ax.Job) { j.DueMs++ }, "timeout": func(j *ax.Job) { j.Timeout++ }, "kill": func(j *ax.Job) { j.KillAfter++ },
		"shifted": func(j *ax.Job) { j.Task, j.Handler = "task.as", "hell" },
	} {
		other := job
		change(&other)
		if same, dup := seen[other.Hash()]; dup {
			t.Errorf("%s hashes like %s", name, same)
		}
		seen[other.Hash()] = name
	}
}
