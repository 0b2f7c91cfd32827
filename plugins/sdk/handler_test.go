package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/axctl/ax/plugins"
)

type everything struct {
	Text     string            `ax:"text" doc:"A text."`
	Mode     string            `ax:"mode" default:"fast" enum:"fast,slow"`
	Flag     bool              `ax:"flag,optional"`
	Count    int               `ax:"count" default:"3"`
	Ratio    *float64          `ax:"ratio"`
	Wait     time.Duration     `ax:"wait" default:"1m30s"`
	Words    []string          `ax:"words,optional"`
	Codes    []uint16          `ax:"codes" default:"[0]"`
	Labels   map[string]string `ax:"labels,optional"`
	Document json.RawMessage   `ax:"document,optional"`
	Value    any               `ax:"value,optional"`
	_        int
}

func TestSchemaOfStruct(t *testing.T) {
	t.Parallel()
	h := Handler("all", "All types.", func(context.Context, Job, everything) (Outputs, error) { return nil, nil })
	want := plugins.Schema{Handler: "all", Doc: "All types.", Attributes: []plugins.Attribute{
		{Name: "text", Types: []plugins.Type{plugins.String}, Doc: "A text."},
		{Name: "mode", Types: []plugins.Type{plugins.String}, Optional: true, Default: json.RawMessage(`"fast"`), Enum: []string{"fast", "slow"}},
		{Name: "flag", Types: []plugins.Type{plugins.Bool}, Optional: true},
		{Name: "count", Types: []plugins.Type{plugins.Number}, Optional: true, Default: json.RawMessage(`3`), Format: plugins.Integer},
		{Name: "ratio", Types: []plugins.Type{plugins.Number}, Optional: true},
		{Name: "wait", Types: []plugins.Type{plugins.Duration}, Optional: true, Default: json.RawMessage(`"1m30s"`)},
		{Name: "words", Types: []plugins.Type{plugins.StringList}, Optional: true},
		{Name: "codes", Types: []plugins.Type{plugins.NumberList}, Optional: true, Default: json.RawMessage(`[0]`), Format: plugins.Integer},
		{Name: "labels", Types: []plugins.Type{plugins.StringMap}, Optional: true},
		{Name: "document", Types: []plugins.Type{plugins.Any}, Optional: true},
		{Name: "value", Types: []plugins.Type{plugins.Any}, Optional: true},
	}}
	if got := h.Schema(); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestBodyIntoStruct(t *testing.T) {
	t.Parallel()
	half := 0.5
	defaults := everything{Text: "t", Mode: "fast", Count: 3, Wait: 90 * time.Second, Codes: []uint16{0}}
	full := everything{
		Text: "t", Mode: "slow", Flag: true, Count: 4, Ratio: &half, Wait: time.Hour, Words: []string{"a"}, Codes: []uint16{1, 2},
		Labels: map[string]string{"k": "v"}, Document: json.RawMessage(`{"a":1}`), Value: []any{"x"},
	}
	for _, c := range []struct {
		body string
		want everything
		err  string
	}{
		{body: `{"text":"t"}`, want: defaults},
		{body: `{"text":"t","mode":null,"ratio":null}`, want: defaults},
		{body: `{"text":"t","mode":"slow","flag":true,"count":4,"ratio":0.5,"wait":"1h","words":["a"],"codes":[1,2],"labels":{"k":"v"},"document":{"a":1},"value":["x"]}`, want: full},
		{body: ``, err: "text is not set"},
		{body: `{}`, err: "text is not set"},
		{body: `{"text":null}`, err: "text is not set"},
		{body: `{"text":"t","txet":1}`, err: "txet is no attribute of all"},
		{body: `{"text":1}`, err: "text: json"},
		{body: `{"text":"t","count":1.5}`, err: "count: json"},
		{body: `{"text":"t","codes":[70000]}`, err: "codes: json"},
		{body: `{"text":"t","wait":"soon"}`, err: "wait: time"},
		{body: `{"text":"t","wait":5}`, err: "wait: json"},
		{body: `{"text":"t","mode":"medium"}`, err: `mode is "medium", not one of fast, slow`},
		{body: `[1,2,3]`, err: "json"},
	} {
		var got everything
		h := Handler("all", "", func(_ context.Context, _ Job, in everything) (Outputs, error) { got = in; return nil, nil })
		_, err := h.Run(context.Background(), Job{Body: []byte(c.body)})
		switch {
		case c.err != "":
			if err == nil || !strings.HasPrefix(err.Error(), "handler body: "+c.err) || plugins.Classify(err) != plugins.Permanent {
				t.Errorf("%s: error %v, want %s", c.body, err, c.err)
			}
		case err != nil || !reflect.DeepEqual(got, c.want):
			t.Errorf("%s:\ngot  %+v, %v\nwant %+v", c.body, got, err, c.want)
		}
	}
}

func TestStructsThatAreNoSchema(t *testing.T) {
	t.Parallel()
	refused(t, "not a struct", func(string) {})
	refused(t, "no ax tag", func(struct{ A string }) {})
	refused(t, `unknown option "omitempty"`, func(struct {
		A string `ax:"a,omitempty"`
	}) {
	})
	refused(t, "type chan int is not supported", func(struct {
		A chan int `ax:"a"`
	}) {
	})
	refused(t, "type map[string]int is not supported", func(struct {
		A map[string]int `ax:"a"`
	}) {
	})
	refused(t, `default "x"`, func(struct {
		A int `ax:"a" default:"x"`
	}) {
	})
	refused(t, `default "5"`, func(struct {
		A time.Duration `ax:"a" default:"5"`
	}) {
	})
}

// refused checks that Handler panics for the type that the function takes.
func refused[T any](t *testing.T, why string, _ func(T)) {
	t.Helper()
	defer func() {
		if p := fmt.Sprint(recover()); !strings.Contains(p, why) {
			t.Errorf("panic %q, want %s", p, why)
		}
	}()
	Handler("h", "", func(context.Context, Job, T) (Outputs, error) { return nil, nil })
}

func TestClasses(t *testing.T) {
	t.Parallel()
	base := errors.New("base")
	for class, err := range map[plugins.Class]error{
		plugins.Failed:    base,
		plugins.Transient: fmt.Errorf("wrapped: %w", Transient(base)),
		plugins.Resource:  Resource(base),
		plugins.Permanent: Permanent(Transient(base)),
	} {
		if got := plugins.Classify(err); got != class || !errors.Is(err, base) {
			t.Errorf("%v: %s, want %s", err, got, class)
		}
	}
	if Transient(nil) != nil || Resource(nil) != nil || Permanent(nil) != nil {
		t.Error("nil became an error")
	}
}

func TestExecutorRefusesHandlersOfOneName(t *testing.T) {
	t.Parallel()
	h := func(name string) plugins.Handler {
		return Handler(name, "", func(context.Context, Job, struct{}) (Outputs, error) { return nil, nil })
	}
	if _, err := NewExecutor(Options{Plugin: "p", Handlers: []plugins.Handler{h("a"), h("b"), h("a")}}); err == nil {
		t.Error("two handlers of one name")
	}
	if _, err := NewExecutor(Options{Plugin: "p", Handlers: []plugins.Handler{h("")}}); err == nil {
		t.Error("a handler without a name")
	}
}
