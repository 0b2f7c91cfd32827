package planner_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/axctl/ax"
	"github.com/axctl/ax/planner"
)

// savedPlan has a create, an update with a backlog, and a delete.
func savedPlan(t *testing.T) *planner.Plan {
	t.Helper()
	w := newWorld(t, morning)
	w.apply(task("edited", every(time.Hour)), task("gone", every(time.Hour)), task("same"))
	w.hold("same")
	w.at("2026-03-03T08:00:00Z")
	html := func(s *ax.TaskSpec) { s.Handler.Body = json.RawMessage(`{"command":"a < b && echo \u003c"}`) }
	return w.plan(task("edited", every(time.Minute), html), task(`new["eu"]`, html), task("same"))
}

// The JSON is a contract: these names do not change within a major version.
func TestEncodedNames(t *testing.T) {
	t.Parallel()
	data, err := planner.Encode(savedPlan(t))
	if err != nil {
		t.Fatal(err)
	}
	var top map[string]json.RawMessage
	if err := json.Unmarshal(data, &top); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"format_version", "store_id", "stack", "base_serial", "origin", "base_origin", "config_hash", "plan_hash",
		"made_at", "made_at_ms", "counts", "changes", "held", "read",
	} {
		if _, ok := top[name]; !ok {
			t.Errorf("%s is missing", name)
		}
	}
	for _, part := range []string{
		`"format_version":"1.0"`, `"made_at":"2026-03-03T08:00:00Z","made_at_ms":1772524800000`,
		`"counts":{"added":1,"changed":1,"deleted":1,"unchanged":1}`,
		`"next_fire_before":"2026-03-02T09:00:00Z","next_fire_before_ms":1772442000000,"next_fire_after":"2026-03-03T08:01:00Z","next_fire_after_ms":1772524860000,"moved":true`,
		`"then":[{"due":"2026-03-03T08:02:00Z","due_ms":1772524920000}`,
		`"starts":1,"skipped":23,"reason":"misfire","policy":"once","left":false`,
		`"address":"task.same","kind":"paused","who":"bob"`,
	} {
		if !bytes.Contains(data, []byte(part)) {
			t.Errorf("%s is not in %s", part, data)
		}
	}
}

// What a program that lays JSON out anew has done to a plan does no harm.
func TestDecodeIndented(t *testing.T) {
	t.Parallel()
	p := savedPlan(t)
	data, err := planner.Encode(p)
	if err != nil {
		t.Fatal(err)
	}
	var laidOut bytes.Buffer
	if err := json.Indent(&laidOut, data, "", "    "); err != nil {
		t.Fatal(err)
	}
	again, err := planner.Decode(laidOut.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if text(again) != text(p) {
		t.Errorf("read as\n%s\nwas\n%s", text(again), text(p))
	}
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	data, err := planner.Encode(savedPlan(t))
	if err != nil {
		t.Fatal(err)
	}
	replace := func(old, new string) []byte {
		if !bytes.Contains(data, []byte(old)) {
			t.Fatalf("%s is not in %s", old, data)
		}
		return bytes.Replace(data, []byte(old), []byte(new), 1)
	}
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"nothing":          {nil, "no plan"},
		"HCL":              {[]byte(`task "a" {}`), "no plan"},
		"other JSON":       {[]byte(`{"values":{}}`), "no format_version"},
		"a later format":   {replace(`"format_version":"1.0"`, `"format_version":"2.0"`), "format 2.0, this axctl reads 1.0"},
		"an unknown field": {replace(`"stack"`, `"tower":1,"stack"`), "tower"},
		"cut off":          {data[:len(data)/2], "no plan"},
		"two plans":        {append(bytes.Clone(data), data...), "no plan"},
		"another command":  {replace(`"command":"a `, `"command":"rm `), "its definition is not that of its hash"},
		"another count":    {replace(`"deleted":1`, `"deleted":0`), "counts"},
		"another action":   {replace(`"action":"delete"`, `"action":"destroy"`), `unknown action "destroy"`},
		"another name":     {replace(`"name":"edited"`, `"name":"other"`), "not its own"},
		"another version":  {replace(`"from_version":1`, `"from_version":7`), "does not follow"},
		"another stack":    {replace(`"stack":"s"`, `"stack":"t"`), "plan_hash"},
		"no stack":         {replace(`"stack":"s"`, `"stack":""`), "no stack"},
		"a fire in the past": {
			replace(`"next_fire_after_ms":1772524860000`, `"next_fire_after_ms":1772000000000`), "in the past",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := planner.Decode(c.data)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("error %v, want %q", err, c.want)
			}
			var hint *ax.HintError
			if !errors.As(err, &hint) || !strings.Contains(hint.Hint, "axctl plan -out") {
				t.Errorf("%v does not say what to do", err)
			}
		})
	}
}

// A plan of a newer program, with an attribute that this one does not know, is
// read but not applied.
func TestDefinitionOfANewerProgram(t *testing.T) {
	t.Parallel()
	w := newWorld(t, morning)
	p := w.plan(task("a"))
	c := &p.Changes[0]
	c.Definition = bytes.Replace(c.Definition, []byte(`"enabled"`), []byte(`"moon":"full","enabled"`), 1)
	var read planner.Plan
	if err := json.Unmarshal([]byte(text(p)), &read); err != nil {
		t.Fatal(err)
	}
	if _, err := read.ChangeSet(w.state(), "x", ax.Revision{}, w.nowMs); err == nil || !strings.Contains(err.Error(), "moon") {
		t.Errorf("error %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	w := newWorld(f, morning)
	data, err := planner.Encode(w.plan(task("a", every(time.Hour))))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(`{"format_version":"1.0","changes":[{"definition":null}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := planner.Decode(data)
		if err != nil {
			return
		}
		again, err := planner.Encode(p)
		if err != nil {
			t.Fatal(err)
		}
		if q, err := planner.Decode(again); err != nil || text(q) != text(p) {
			t.Fatalf("a plan that was read cannot be read again: %v", err)
		}
	})
}
