package plugins_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/axctl/ax/plugins"
)

func schema() plugins.Schema {
	low, high := 1.0, 9.0
	one := func(t plugins.Type) []plugins.Type { return []plugins.Type{t} }
	return plugins.Schema{
		Handler: "h",
		Attributes: []plugins.Attribute{
			{Name: "day", Types: one(plugins.String)},
			{Name: "format", Types: one(plugins.String), Optional: true, Default: json.RawMessage(`"pdf"`), Enum: []string{"pdf", "html"}},
			{Name: "n", Types: one(plugins.Number), Optional: true, Format: plugins.Integer, Min: &low, Max: &high},
			{Name: "codes", Types: one(plugins.NumberList), Optional: true, Min: &low},
			{Name: "names", Types: one(plugins.StringList), Optional: true, Format: plugins.AbsolutePath},
			{Name: "map", Types: one(plugins.StringMap), Optional: true},
			{Name: "wait", Types: []plugins.Type{plugins.Duration, plugins.Bool}, Optional: true},
			{Name: "tree", Types: one(plugins.Any), Optional: true},
			{Name: "a", Types: one(plugins.String)},
			{Name: "b", Types: one(plugins.String)},
			{Name: "c", Types: one(plugins.String), Optional: true},
		},
		OneOf:     [][]string{{"a", "b"}},
		Conflicts: [][]string{{"c", "tree"}},
		Needs:     map[string][]string{"n": {"map"}},
	}
}

func TestAccepts(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ body, refused string }{
		{`{"day":"x","a":"1"}`, ""},
		{`{"day":"x","b":"1","format":"html","wait":"1h30m","codes":[1,2.5],"names":["/a"],"tree":{"x":[null]},"c":null}`, ""},
		{`{"day":"x","a":"1","n":9,"map":{"k":"v"},"wait":true}`, ""},
		{`{"a":"1"}`, `"day" is required`},
		{``, `exactly one of`},
		{`[]`, `no JSON object`},
		{`{"day":1,"a":"1"}`, `"day" is of none of the types ["string"]`},
		{`{"day":"x","a":"1","other":1}`, `no attribute "other"`},
		{`{"day":"x","a":"1","format":"doc"}`, `"doc", which is none of`},
		{`{"day":"x","a":"1","b":"2"}`, `exactly one of ["a" "b"] is to be set, and 2 are`},
		{`{"day":"x"}`, `and 0 are`},
		{`{"day":"x","a":"1","c":"1","tree":1}`, `"c" and "tree" exclude each other`},
		{`{"day":"x","a":"1","n":3}`, `"n" needs "map" beside it`},
		{`{"day":"x","a":"1","n":2.5,"map":{}}`, `an integer`},
		{`{"day":"x","a":"1","n":10,"map":{}}`, `from 1 to 9`},
		{`{"day":"x","a":"1","codes":[0]}`, `at least 1`},
		{`{"day":"x","a":"1","codes":["0"]}`, `"codes" is of none`},
		{`{"day":"x","a":"1","names":["a"]}`, `an absolute path`},
		{`{"day":"x","a":"1","map":{"k":1}}`, `"map" is of none`},
		{`{"day":"x","a":"1","wait":"soon"}`, `"wait" is of none`},
	} {
		err := schema().Accepts(json.RawMessage(tc.body))
		switch {
		case tc.refused == "" && err != nil:
			t.Errorf("%s: %v", tc.body, err)
		case tc.refused != "" && (err == nil || !strings.Contains(err.Error(), tc.refused)):
			t.Errorf("%s: %v, want %q", tc.body, err, tc.refused)
		}
	}
}

// What a plugin says of itself may be anything.
func TestReadSchema(t *testing.T) {
	t.Parallel()
	good, err := json.Marshal(schema())
	if err != nil {
		t.Fatal(err)
	}
	if s, err := plugins.ReadSchema("h", good); err != nil || s.Hash() != schema().Hash() {
		t.Errorf("read %+v, %v", s, err)
	}
	for text, want := range map[string]string{
		`{`: "unexpected end", `{"handler":"x"}`: `is of "x"`,
		`{"handler":"h","attributes":[{"name":"a"}]}`:                                              "has no type",
		`{"handler":"h","attributes":[{"name":"a","types":["colour"]}]}`:                           `"colour", which this version`,
		`{"handler":"h","attributes":[{"name":"a b","types":["any"]}]}`:                            "no name of an attribute",
		`{"handler":"h","attributes":[{"name":"a","types":["any"]},{"name":"a","types":["any"]}]}`: "twice",
		`{"handler":"h","one_of":[["z"]]}`:                                                         `"z", which is no attribute`,
		`{"handler":"h","doc":"` + strings.Repeat("x", plugins.MaxSchemaBytes) + `"}`:              "more than",
	} {
		if _, err := plugins.ReadSchema("h", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: %v, want %q", text, err, want)
		}
	}
	if _, err := plugins.ReadSchema("a/b", []byte(`{"handler":"a/b"}`)); err == nil {
		t.Error("a handler may be called a/b")
	}
}
