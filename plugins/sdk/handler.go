package sdk

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/axctl/ax/plugins"
)

// Handler makes a handler of a function. The struct T is the schema of the
// handler's body: each exported field is an attribute, described by its tags.
//
//	ax:"name"           required; ax:"name,optional" not
//	default:"text"      used when it is not set; makes it optional
//	doc:"one line"      documentation
//	enum:"a,b"          the only values of a string
//
// Fields are string, bool, any integer or float, time.Duration, []string,
// slices of numbers, map[string]string, any or json.RawMessage; a pointer is
// optional. A schema written by hand can say more of a value: see
// plugins.Attribute. Handler panics when T is not such a struct.
func Handler[T any](name, doc string, fn func(context.Context, Job, T) (Outputs, error)) plugins.Handler {
	h := &typed[T]{fn: fn, schema: plugins.Schema{Handler: name, Doc: doc}}
	t := reflect.TypeFor[T]()
	if t.Kind() != reflect.Struct {
		panic(fmt.Sprintf("handler %s: input is %s, not a struct", name, t))
	}
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() {
			continue
		}
		a, err := attribute(f)
		if err != nil {
			panic(fmt.Sprintf("handler %s: field %s: %v", name, f.Name, err))
		}
		h.schema.Attributes = append(h.schema.Attributes, a)
		h.index = append(h.index, i)
	}
	return h
}

// typed is a handler whose body is decoded into a T.
type typed[T any] struct {
	schema plugins.Schema
	index  []int // field of T for each attribute
	fn     func(context.Context, Job, T) (Outputs, error)
}

func (h *typed[T]) Schema() plugins.Schema { return h.schema }

func (h *typed[T]) Run(ctx context.Context, job Job) (Outputs, error) {
	var in T
	if err := h.decode(job.Body, reflect.ValueOf(&in).Elem()); err != nil {
		return nil, Permanent(fmt.Errorf("handler body: %w", err))
	}
	return h.fn(ctx, job, in)
}

func (h *typed[T]) decode(body []byte, in reflect.Value) error {
	var values map[string]json.RawMessage
	if len(body) > len("{}") {
		if err := json.Unmarshal(body, &values); err != nil {
			return err
		}
	}
	for i, a := range h.schema.Attributes {
		raw, ok := values[a.Name]
		delete(values, a.Name)
		if !ok || bytes.Equal(raw, []byte("null")) {
			if a.Default == nil {
				if !a.Optional {
					return fmt.Errorf("%s is not set", a.Name)
				}
				continue
			}
			raw = a.Default
		}
		if err := set(in.Field(h.index[i]), raw); err != nil {
			return fmt.Errorf("%s: %w", a.Name, err)
		}
		if s := in.Field(h.index[i]); len(a.Enum) > 0 && s.Kind() == reflect.String && !slices.Contains(a.Enum, s.String()) {
			return fmt.Errorf("%s is %q, not one of %s", a.Name, s.String(), strings.Join(a.Enum, ", "))
		}
	}
	for name := range values {
		return fmt.Errorf("%s is no attribute of %s", name, h.schema.Handler)
	}
	return nil
}

// set reads raw into field. Durations are text, as in the language.
func set(field reflect.Value, raw json.RawMessage) error {
	target := field.Addr().Interface()
	if field.Kind() == reflect.Pointer {
		field.Set(reflect.New(field.Type().Elem()))
		target = field.Interface()
	}
	d, ok := target.(*time.Duration)
	if !ok {
		return json.Unmarshal(raw, target)
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return err
	}
	v, err := time.ParseDuration(text)
	*d = v
	return err
}

func attribute(f reflect.StructField) (plugins.Attribute, error) {
	tag, ok := f.Tag.Lookup("ax")
	name, option, _ := strings.Cut(tag, ",")
	switch {
	case !ok || name == "":
		return plugins.Attribute{}, errors.New("no ax tag")
	case option != "" && option != "optional":
		return plugins.Attribute{}, fmt.Errorf("unknown option %q in its ax tag", option)
	}
	a := plugins.Attribute{Name: name, Optional: option == "optional", Doc: f.Tag.Get("doc")}
	t := f.Type
	if t.Kind() == reflect.Pointer {
		t, a.Optional = t.Elem(), true
	}
	typ, ok := typeOf(t)
	if !ok {
		return a, fmt.Errorf("type %s is not supported", f.Type)
	}
	a.Types = []plugins.Type{typ}
	if typ == plugins.Number && integral(t) || typ == plugins.NumberList && integral(t.Elem()) {
		a.Format = plugins.Integer
	}
	if enum := f.Tag.Get("enum"); enum != "" {
		a.Enum = strings.Split(enum, ",")
	}
	if text, ok := f.Tag.Lookup("default"); ok {
		a.Optional = true
		a.Default = json.RawMessage(text)
		if typ == plugins.String || typ == plugins.Duration {
			a.Default, _ = json.Marshal(text)
		}
		if err := set(reflect.New(f.Type).Elem(), a.Default); err != nil {
			return a, fmt.Errorf("default %q: %w", text, err)
		}
	}
	return a, nil
}

func typeOf(t reflect.Type) (plugins.Type, bool) {
	switch {
	case t == reflect.TypeFor[time.Duration]():
		return plugins.Duration, true
	case t == reflect.TypeFor[json.RawMessage](), t == reflect.TypeFor[any]():
		return plugins.Any, true
	case t.Kind() == reflect.String:
		return plugins.String, true
	case t.Kind() == reflect.Bool:
		return plugins.Bool, true
	case numeric(t):
		return plugins.Number, true
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.String:
		return plugins.StringList, true
	case t.Kind() == reflect.Slice && numeric(t.Elem()):
		return plugins.NumberList, true
	case t.Kind() == reflect.Map && t.Key().Kind() == reflect.String && t.Elem().Kind() == reflect.String:
		return plugins.StringMap, true
	default:
		return "", false
	}
}

func numeric(t reflect.Type) bool {
	return integral(t) || t.Kind() == reflect.Float32 || t.Kind() == reflect.Float64
}

func integral(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return t != reflect.TypeFor[time.Duration]()
	default:
		return false
	}
}
