// Package plugins is the contract between ax and the code that does the work:
// what a handler is, what it is given and what it answers. It imports nothing
// of ax; authors meet it through plugins/sdk.
package plugins

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// Schema describes the body of a handler block. It is data, so that plan can
// check a body without the handler, and a plugin can send it over the wire.
type Schema struct {
	Handler    string      `json:"handler"`
	Doc        string      `json:"doc,omitempty"`
	Attributes []Attribute `json:"attributes,omitempty"`
	// OneOf lists groups of attributes of which exactly one must be set.
	OneOf [][]string `json:"one_of,omitempty"`
	// Conflicts lists groups of attributes of which at most one may be set.
	Conflicts [][]string `json:"conflicts,omitempty"`
	// Needs maps an attribute to those that must be set with it.
	Needs map[string][]string `json:"needs,omitempty"`
}

// Attribute is one attribute of a handler body.
type Attribute struct {
	Name string `json:"name"`
	// Types are the types a value may have, tried in order.
	Types    []Type          `json:"types"`
	Optional bool            `json:"optional,omitempty"`
	Default  json.RawMessage `json:"default,omitempty"`
	Doc      string          `json:"doc,omitempty"`
	// Enum lists the only values allowed of a string; nil allows all.
	Enum []string `json:"enum,omitempty"`
	// Format is how the value is written; "" leaves it open.
	Format Format `json:"format,omitempty"`
	// Min and Max bound a number and each number of a list, and are allowed
	// themselves; nil is no bound.
	Min *float64 `json:"min,omitempty"`
	Max *float64 `json:"max,omitempty"`
}

// Format is how a value of an attribute must be written, beyond its type. A
// value of another type than the format speaks of is not judged, nor is any by
// an ax that does not know the format: Enum, Format, Min and Max tell a user's
// mistake before anything runs, and do not spare the handler its own check.
type Format string

// The formats. Of a list each item is judged.
const (
	HTTPURL      Format = "http_url"      // a string: http:// or https:// and a host
	HTTPHeaders  Format = "http_headers"  // a map: names of headers, and values without line breaks
	AbsolutePath Format = "absolute_path" // a string that begins with /
	Integer      Format = "integer"       // a number without a fraction
)

// Type is the type of an attribute, as HCL spells it.
type Type string

// The types.
const (
	String     Type = "string"
	Number     Type = "number"
	Bool       Type = "bool"
	Duration   Type = "duration" // a string as Go writes durations
	StringList Type = "list(string)"
	NumberList Type = "list(number)"
	StringMap  Type = "map(string)"
	Any        Type = "any" // any JSON value
)

// Types lists them.
var Types = []Type{String, Number, Bool, Duration, StringList, NumberList, StringMap, Any}

// Hash identifies the schema's content.
func (s Schema) Hash() string {
	b, err := json.Marshal(s)
	if err != nil {
		panic("schema " + s.Handler + ": " + err.Error())
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16])
}
