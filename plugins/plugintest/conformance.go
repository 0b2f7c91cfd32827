package plugintest

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/axctl/ax/plugins"
	pb "github.com/axctl/ax/plugins/proto"
	"github.com/axctl/ax/plugins/sdk"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
)

// Subject is a handler and the bodies it is proved with.
type Subject struct {
	Handler plugins.Handler
	Success string // ends soon, with success
	Failure string // ends soon, with an error of class failed; "" when it cannot
	Endless string // ends only with its context; "" when there is no such body
}

// Run is the conformance suite.
func Run(t *testing.T, s Subject) {
	tests := []struct {
		name  string
		test  func(*testing.T, Subject, *Executor)
		needs string
	}{
		{"schema", schemaIsSound, s.Success},
		{"success", success, s.Success},
		{"failure", failure, s.Failure},
		{"bad bodies", badBodies, s.Success},
		{"the same job again", sameJobAgain, s.Success},
		{"another job of the same number", otherJob, s.Success},
		{"acknowledged and forgotten", forgotten, s.Success},
		{"many at once", many, s.Success},
		{"fields of a newer protocol", newerFields, s.Success},
		{"drain", drain, s.Success},
		{"cancel", cancel, s.Endless},
		{"timeout", timeout, s.Endless},
		{"timeout ordered by the host", orderedTimeout, s.Endless},
		{"signals", signals, s.Endless},
		{"heartbeat", heartbeat, s.Endless},
		{"a new session", newSession, s.Endless},
		{"axd gone", hostGone, s.Endless},
	}
	for _, c := range tests {
		if c.needs == "" {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.test(t, s, Start(t, sdk.Options{Handlers: []plugins.Handler{s.Handler}}))
		})
	}
}

func name(s Subject) string { return s.Handler.Schema().Handler }

// schemaIsSound: what Describe sends is the handler's schema, and plan can
// check bodies with it.
func schemaIsSound(t *testing.T, s Subject, e *Executor) {
	d, err := e.client.Describe(context.Background(), &pb.DescribeRequest{})
	if err != nil {
		t.Fatal(err)
	}
	var schema plugins.Schema
	if err := json.Unmarshal(d.Handlers[0].Schema, &schema); err != nil {
		t.Fatal(err)
	}
	if schema.Hash() != s.Handler.Schema().Hash() || d.Handlers[0].Name != schema.Handler || d.Protocol != pb.Version {
		t.Errorf("described as %v", d)
	}
	known := map[string]bool{}
	for _, a := range schema.Attributes {
		if a.Name == "" || known[a.Name] || len(a.Types) == 0 || a.Doc == "" {
			t.Errorf("attribute %q: a name of its own, types and documentation are needed", a.Name)
		}
		known[a.Name] = true
		if a.Default != nil && (!a.Optional || !json.Valid(a.Default)) {
			t.Errorf("attribute %s: a default makes it optional and is JSON", a.Name)
		}
		for _, typ := range a.Types {
			if !slices.Contains(plugins.Types, typ) {
				t.Errorf("attribute %s: unknown type %q", a.Name, typ)
			}
		}
	}
	groups := slices.Clone(schema.OneOf)
	for name, needs := range schema.Needs {
		groups = append(groups, append([]string{name}, needs...))
	}
	for _, group := range groups {
		for _, name := range group {
			if !known[name] {
				t.Errorf("a rule names %q, which is no attribute", name)
			}
		}
	}
}

func success(t *testing.T, s Subject, e *Executor) {
	res := e.Do(e.Job(name(s), s.Success))
	if res.Status != "success" || res.Class != "" || res.Error != "" {
		t.Errorf("got %+v, want success", res)
	}
	r := res.Report
	if r.StartedMs == 0 || r.EndedMs < r.StartedMs || r.StoppedMs < r.EndedMs {
		t.Errorf("instants are out of order: started %d, ended %d, stopped %d", r.StartedMs, r.EndedMs, r.StoppedMs)
	}
	if got := int64(len(res.Stdout) + len(res.Stderr)); got > r.OutputBytes {
		t.Errorf("%d bytes of output came, the report says %d", got, r.OutputBytes)
	}
}

func failure(t *testing.T, s Subject, e *Executor) {
	res := e.Do(e.Job(name(s), s.Failure))
	if res.Status != "failed" || res.Class != string(plugins.Failed) || res.Error == "" {
		t.Errorf("got %+v, want a failure with its text", res)
	}
}

// badBodies: what the schema would have refused is a permanent error, never a
// crash and never ignored.
func badBodies(t *testing.T, s Subject, e *Executor) {
	for _, body := range []string{`{"no_such_attribute": 1}`, `[]`, `{`, `"text"`} {
		res := e.Do(e.Job(name(s), body))
		if res.Status != "failed" || res.Class != string(plugins.Permanent) {
			t.Errorf("body %s: got %+v, want a permanent error", body, res)
		}
	}
}

func sameJobAgain(t *testing.T, s Subject, e *Executor) {
	j := e.Job(name(s), s.Success)
	first := e.Do(j)
	e.Send(&pb.Down{Jobs: []*pb.Job{j, j}})
	e.Until("the end told again", func(told []*pb.Report, _ Result) bool {
		last := told[len(told)-1]
		return ends(told) >= 2 && last.StartedMs == first.Report.StartedMs && last.StoppedMs == first.Report.StoppedMs
	}, j.BatchNo)
}

func ends(told []*pb.Report) (n int) {
	for _, r := range told {
		if r.Kind == pb.Kind_KIND_ENDED {
			n++
		}
	}
	return n
}

func otherJob(t *testing.T, s Subject, e *Executor) {
	j := e.Job(name(s), s.Success)
	e.Do(j)
	other := e.Job(name(s), s.Success)
	other.BatchNo, other.Hash = j.BatchNo, "another hash"
	e.Send(&pb.Down{Jobs: []*pb.Job{other}})
	e.Until("the refusal", func(told []*pb.Report, _ Result) bool {
		last := told[len(told)-1]
		return last.Kind == pb.Kind_KIND_REFUSED && last.Class == string(plugins.Permanent)
	}, j.BatchNo)
}

func forgotten(t *testing.T, s Subject, e *Executor) {
	j := e.Job(name(s), s.Success)
	e.Do(j)
	if in := e.Reconnect(); !slices.Equal(in.Ended, []string{j.BatchNo}) || len(in.Running) > 0 {
		t.Errorf("inventory before the acknowledgement: %v", in)
	}
	e.Send(&pb.Down{Acks: []string{j.BatchNo, "unknown"}})
	e.Do(e.Job(name(s), s.Success)) // so that the acknowledgement was taken in
	if in := e.Reconnect(); slices.Contains(in.Ended, j.BatchNo) {
		t.Errorf("inventory after the acknowledgement: %v", in)
	}
}

func many(t *testing.T, s Subject, e *Executor) {
	var jobs []*pb.Job
	for range 50 {
		jobs = append(jobs, e.Job(name(s), s.Success))
	}
	e.Send(&pb.Down{Jobs: jobs})
	for _, j := range jobs {
		if res := e.End(j.BatchNo); res.Status != "success" {
			t.Fatalf("%s: %+v", j.BatchNo, res)
		}
	}
}

func newerFields(t *testing.T, s Subject, e *Executor) {
	j := e.Job(name(s), s.Success)
	unknown := protowire.AppendTag(nil, 9999, protowire.BytesType)
	unknown = protowire.AppendString(unknown, "of a newer host")
	j.ProtoReflect().SetUnknown(unknown)
	m := &pb.Down{Jobs: []*pb.Job{j}}
	m.ProtoReflect().SetUnknown(unknown)
	e.Send(m)
	if res := e.End(j.BatchNo); res.Status != "success" {
		t.Errorf("got %+v", res)
	}
}

func drain(t *testing.T, s Subject, e *Executor) {
	e.Send(&pb.Down{Drain: true})
	res := e.Do(e.Job(name(s), s.Success))
	if res.Report.Kind != pb.Kind_KIND_REFUSED || res.Class != string(plugins.Transient) {
		t.Errorf("a job after drain: %+v", res)
	}
}

// begin starts the endless job and returns when it is said to run.
func begin(s Subject, e *Executor, j *pb.Job) {
	e.t.Helper()
	e.Send(&pb.Down{Jobs: []*pb.Job{j}})
	e.Until("the start", func(told []*pb.Report, _ Result) bool { return len(told) > 0 }, j.BatchNo)
}

func cancel(t *testing.T, s Subject, e *Executor) {
	j := e.Job(name(s), s.Endless)
	begin(s, e, j)
	e.Send(&pb.Down{Cancels: []*pb.Cancel{{BatchNo: "unknown"}, {BatchNo: j.BatchNo, Class: "cancelled", Detail: "by ann"}}})
	res := e.End(j.BatchNo)
	if res.Status != "cancelled" || res.Class != "cancelled" || res.Error != "by ann" {
		t.Errorf("got %+v", res)
	}
	e.Send(&pb.Down{Cancels: []*pb.Cancel{{BatchNo: j.BatchNo, Class: "cancelled", Detail: "by bob"}}, Jobs: []*pb.Job{j}})
	e.Until("the end told again", func(told []*pb.Report, _ Result) bool {
		return ends(told) >= 2 && told[len(told)-1].Error == "by ann"
	}, j.BatchNo)
}

func timeout(t *testing.T, s Subject, e *Executor) {
	j := e.Job(name(s), s.Endless)
	j.TimeoutMs = 200
	res := e.Do(j)
	if res.Status != "timeout" || res.Class != "timeout" || res.Error != "timed out after 200ms" {
		t.Errorf("got %+v", res)
	}
	if took := res.Report.EndedMs - res.Report.StartedMs; took < 199 || took > 5000 {
		t.Errorf("the timeout of 200 ms was told after %d ms", took)
	}
}

func orderedTimeout(t *testing.T, s Subject, e *Executor) {
	j := e.Job(name(s), s.Endless)
	begin(s, e, j)
	e.Send(&pb.Down{Cancels: []*pb.Cancel{{BatchNo: j.BatchNo, Class: "timeout", Detail: "too late"}}})
	if res := e.End(j.BatchNo); res.Status != "timeout" || res.Class != "timeout" || res.Error != "too late" {
		t.Errorf("got %+v", res)
	}
}

// signals: an attempt either does as it is told, or says why not; both ways it
// can be cancelled after it, and unknown signals and attempts disturb nothing.
func signals(t *testing.T, s Subject, e *Executor) {
	j := e.Job(name(s), s.Endless)
	begin(s, e, j)
	e.Send(&pb.Down{Signals: []*pb.Signal{{BatchNo: "unknown", Signal: "pause"}}})
	if a := e.Signal(j.BatchNo, "dance"); a.Refused == "" {
		t.Errorf("an unknown signal: %v", a)
	}
	pause := e.Signal(j.BatchNo, "pause")
	if pause.Signal != "pause" || pause.AtMs == 0 {
		t.Errorf("a pause: %v", pause)
	}
	if again := e.Signal(j.BatchNo, "pause"); again.Refused != pause.Refused || pause.Refused == "" && again.AtMs != pause.AtMs {
		t.Errorf("a second pause: %v, after %v", again, pause)
	}
	if pause.Refused == "" {
		e.Reconnect()
		e.UntilLive("the pause told again", j.BatchNo, func(l Live) bool {
			last := l.Answers[len(l.Answers)-1]
			return len(l.Answers) >= 4 && last.Signal == "pause" && last.AtMs == pause.AtMs
		})
		if a := e.Signal(j.BatchNo, "resume"); a.Refused != "" {
			t.Errorf("to go on: %v", a)
		}
		e.Signal(j.BatchNo, "pause") // what is paused can be cancelled
	}
	e.Send(&pb.Down{Cancels: []*pb.Cancel{{BatchNo: j.BatchNo, Class: "cancelled"}}})
	if res := e.End(j.BatchNo); res.Status != "cancelled" {
		t.Errorf("got %+v", res)
	}
}

// heartbeat: without a sign of life an attempt is lost and gone; a pause is no
// silence.
func heartbeat(t *testing.T, s Subject, e *Executor) {
	j := e.Job(name(s), s.Endless)
	j.HeartbeatMs = 300
	begin(s, e, j)
	if e.Signal(j.BatchNo, "pause").Refused == "" {
		if a := e.Signal(j.BatchNo, "resume"); a.Refused != "" {
			t.Errorf("to go on: %v", a)
		}
	}
	res := e.End(j.BatchNo)
	if res.Status != "failed" || res.Class != "lost" || res.Error != "no sign of life for 300ms (heartbeat)" {
		t.Errorf("got %+v", res)
	}
}

// newSession: a running attempt goes on, is in the inventory and told again.
// A stranger's session is refused and disturbs nothing.
func newSession(t *testing.T, s Subject, e *Executor) {
	j := e.Job(name(s), s.Endless)
	begin(s, e, j)
	stranger, err := e.client.Session(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	_ = stranger.Send(&pb.Down{Hello: &pb.Hello{Secret: "guessed"}})
	if _, err := stranger.Recv(); status.Code(err) != codes.PermissionDenied {
		t.Errorf("a session with a wrong secret: %v", err)
	}
	if in := e.Reconnect(); !slices.Equal(in.Running, []string{j.BatchNo}) || len(in.Ended) > 0 {
		t.Errorf("inventory: %v", in)
	}
	e.Until("the start told again", func(told []*pb.Report, _ Result) bool {
		return len(told) >= 2 && told[1].Kind == pb.Kind_KIND_STARTED && told[1].StartedMs == told[0].StartedMs
	}, j.BatchNo)
	e.Send(&pb.Down{Cancels: []*pb.Cancel{{BatchNo: j.BatchNo}}})
	e.End(j.BatchNo)
}

// hostGone: Stop fails the test when the handler does not return.
func hostGone(t *testing.T, s Subject, e *Executor) {
	begin(s, e, e.Job(name(s), s.Endless))
	e.Stop()
}
