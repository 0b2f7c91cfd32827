package plugins

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"
)

// MaxSchemaBytes bounds a schema as JSON.
const MaxSchemaBytes = 256 << 10

// ReadSchema reads the schema that a plugin gives for a handler. It may come
// from anybody, so it is checked before anything is read by it.
func ReadSchema(handler string, data []byte) (Schema, error) {
	var s Schema
	if len(data) > MaxSchemaBytes {
		return s, fmt.Errorf("schema of handler %q has %d bytes, more than %d", handler, len(data), MaxSchemaBytes)
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return s, fmt.Errorf("schema of handler %q: %w", handler, err)
	}
	if s.Handler != handler {
		return s, fmt.Errorf("schema of handler %q is of %q", handler, s.Handler)
	}
	if err := s.Check(); err != nil {
		return s, fmt.Errorf("schema of handler %q: %w", handler, err)
	}
	return s, nil
}

// Check tells what is wrong with a schema: bodies cannot be checked with it.
func (s Schema) Check() error {
	if !plainName(s.Handler) {
		return fmt.Errorf("%q is no name of a handler: letters, digits, _ and -, at most %d", s.Handler, maxName)
	}
	known := map[string]bool{}
	for _, a := range s.Attributes {
		switch {
		case !plainName(a.Name):
			return fmt.Errorf("%q is no name of an attribute: letters, digits, _ and -, at most %d", a.Name, maxName)
		case known[a.Name]:
			return fmt.Errorf("attribute %q is there twice", a.Name)
		case len(a.Types) == 0:
			return fmt.Errorf("attribute %q has no type", a.Name)
		case a.Default != nil && !json.Valid(a.Default):
			return fmt.Errorf("the default of attribute %q is no JSON", a.Name)
		}
		for _, t := range a.Types {
			if !slices.Contains(Types, t) {
				return fmt.Errorf("attribute %q has type %q, which this version of ax does not know", a.Name, t)
			}
		}
		known[a.Name] = true
	}
	groups := slices.Concat(s.OneOf, s.Conflicts)
	for name, needs := range s.Needs {
		groups = append(groups, append([]string{name}, needs...))
	}
	for _, name := range slices.Concat(groups...) {
		if !known[name] {
			return fmt.Errorf("a rule names %q, which is no attribute", name)
		}
	}
	return nil
}

// maxName bounds names of handlers and attributes.
const maxName = 100

func plainName(name string) bool {
	for i, b := range []byte(name) {
		letter := b == '_' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z'
		if !letter && (i == 0 || b != '-' && (b < '0' || b > '9')) {
			return false
		}
	}
	return name != "" && len(name) <= maxName
}

// Accepts tells why a body that was checked some time, maybe with another
// version of the schema, is not one of this schema; nil when it is. What is not
// set and has a default is no fault: the handler sets it.
func (s Schema) Accepts(body json.RawMessage) error {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	var values map[string]any
	if err := dec.Decode(&values); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("it is no JSON object: %w", err)
	}
	maps.DeleteFunc(values, func(_ string, v any) bool { return v == nil })
	for _, name := range slices.Sorted(maps.Keys(values)) {
		i := slices.IndexFunc(s.Attributes, func(a Attribute) bool { return a.Name == name })
		if i < 0 {
			return fmt.Errorf("there is no attribute %q", name)
		}
		if err := s.Attributes[i].accepts(values[name]); err != nil {
			return err
		}
	}
	return s.combined(values)
}

// combined checks which attributes must, may and must not stand together.
func (s Schema) combined(values map[string]any) error {
	set := func(name string) bool { _, ok := values[name]; return ok }
	grouped := map[string]bool{}
	for _, group := range s.OneOf {
		n := 0
		for _, name := range group {
			grouped[name] = true
			if set(name) {
				n++
			}
		}
		if n != 1 {
			return fmt.Errorf("exactly one of %q is to be set, and %d are", group, n)
		}
	}
	for _, group := range s.Conflicts {
		if both := slices.DeleteFunc(slices.Clone(group), func(name string) bool { return !set(name) }); len(both) > 1 {
			return fmt.Errorf("%q and %q exclude each other", both[0], both[1])
		}
	}
	for _, a := range s.Attributes {
		if !a.Optional && a.Default == nil && !grouped[a.Name] && !set(a.Name) {
			return fmt.Errorf("attribute %q is required, and is not set", a.Name)
		}
		for _, other := range s.Needs[a.Name] {
			if set(a.Name) && !set(other) {
				return fmt.Errorf("attribute %q needs %q beside it", a.Name, other)
			}
		}
	}
	return nil
}

// accepts checks a value as JSON has it.
func (a Attribute) accepts(v any) error {
	for _, t := range a.Types {
		value, ok := t.read(v)
		if !ok {
			continue
		}
		if text, isText := value.(string); isText && a.Enum != nil && !slices.Contains(a.Enum, text) {
			return fmt.Errorf("attribute %q is %q, which is none of %q", a.Name, text, a.Enum)
		}
		items, isList := value.([]any)
		if !isList {
			items = []any{value}
		}
		for _, item := range items {
			if wrong := a.Malformed(item); wrong != "" {
				return fmt.Errorf("attribute %q is %s", a.Name, wrong)
			}
		}
		return nil
	}
	return fmt.Errorf("attribute %q is of none of the types %q", a.Name, a.Types)
}

// read returns a value of JSON as Malformed takes it, when it is of type t.
func (t Type) read(v any) (any, bool) {
	switch t {
	case String:
		_, ok := v.(string)
		return v, ok
	case Number:
		n, ok := v.(json.Number)
		f, err := n.Float64()
		return f, ok && err == nil
	case Bool:
		_, ok := v.(bool)
		return v, ok
	case Duration:
		text, _ := v.(string)
		_, err := time.ParseDuration(text)
		return v, err == nil
	case StringList, NumberList:
		item := map[Type]Type{StringList: String, NumberList: Number}[t]
		list, ok := v.([]any)
		out := make([]any, len(list))
		for i := range list {
			var fits bool
			out[i], fits = item.read(list[i])
			ok = ok && fits
		}
		return out, ok
	case StringMap:
		m, ok := v.(map[string]any)
		out := make(map[string]string, len(m))
		for key, value := range m {
			text, isText := value.(string)
			out[key], ok = text, ok && isText
		}
		return out, ok
	case Any:
		return nil, true
	default:
		return nil, false
	}
}
