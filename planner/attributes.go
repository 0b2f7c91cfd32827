package planner

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/axctl/ax"
)

// Attributes compares two canonical definitions attribute by attribute, in the
// order the language lists them. Before is nil on create; then what has its
// default is left out. A before that cannot be read has no attributes; an after
// that cannot is an error.
func Attributes(before, after json.RawMessage) ([]AttributeDiff, error) {
	old, err := attributes(before)
	if err != nil {
		old = attributeSet{}
	}
	now, err := attributes(after)
	if err != nil {
		return nil, fmt.Errorf("definition: %w", err)
	}
	oneEach := old.schedules <= 1 && now.schedules <= 1
	l := theLanguage()
	var diffs []AttributeDiff
	for path, a := range now.values {
		b, ok := old.values[path]
		if ok && bytes.Equal(a, b) || before == nil && l.isDefault(path, a) {
			continue
		}
		diffs = append(diffs, AttributeDiff{Path: shownPath(path, oneEach), Before: b, After: a})
	}
	for path, b := range old.values {
		if _, ok := now.values[path]; !ok {
			diffs = append(diffs, AttributeDiff{Path: shownPath(path, oneEach), Before: b})
		}
	}
	slices.SortFunc(diffs, func(a, b AttributeDiff) int {
		return cmp.Or(cmp.Compare(l.rankOf(a.Path), l.rankOf(b.Path)), cmp.Compare(a.Path, b.Path))
	})
	return diffs, nil
}

// attributeSet is a definition taken apart: values by path.
type attributeSet struct {
	values    map[string]json.RawMessage
	schedules int
}

func attributes(definition json.RawMessage) (attributeSet, error) {
	set := attributeSet{values: map[string]json.RawMessage{}}
	if definition == nil {
		return set, nil
	}
	dec := json.NewDecoder(bytes.NewReader(definition))
	dec.UseNumber()
	var tree map[string]any
	if err := dec.Decode(&tree); err != nil {
		return set, err
	}
	if handler, ok := tree["handler"].(map[string]any); ok {
		set.add("handler", handler["name"])
		set.add("handler", handler["body"])
		delete(tree, "handler")
	}
	if schedules, ok := tree["schedule"].([]any); ok {
		set.schedules = len(schedules)
		for i, s := range schedules {
			set.add(fmt.Sprintf("schedule[%d]", i), s)
		}
		delete(tree, "schedule")
	}
	if classes, ok := tree["error_class"].([]any); ok {
		for _, c := range classes { // one block a class
			if block, ok := c.(map[string]any); ok {
				class := fmt.Sprint(block["class"])
				delete(block, "class")
				set.add(join("error_class", class), block)
			}
		}
		delete(tree, "error_class")
	}
	set.add("", tree)
	return set, nil
}

// add adds the leaves of v, which are all but objects.
func (s attributeSet) add(path string, v any) {
	tree, ok := v.(map[string]any)
	if !ok {
		if v != nil {
			s.values[path] = plainJSON(v)
		}
		return
	}
	for key, value := range tree {
		s.add(join(path, key), value)
	}
}

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)

func join(path, key string) string {
	switch {
	case !identifier.MatchString(key):
		return fmt.Sprintf("%s[%q]", path, key)
	case path == "":
		return key
	default:
		return path + "." + key
	}
}

// shownPath drops the index where no task has more than one schedule.
func shownPath(path string, oneEach bool) string {
	if rest, ok := strings.CutPrefix(path, "schedule[0]"); ok && oneEach {
		return "schedule" + rest
	}
	return path
}

// plainJSON writes v without escaping what is only dangerous in HTML.
func plainJSON(v any) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(fmt.Sprintf("encode a decoded value: %v", err))
	}
	return bytes.TrimSpace(b.Bytes())
}

// language is what the tags of the specs say: each attribute's place in the
// order in which people read a task, and its default where it has one.
type language struct {
	rank     map[string]int    // by first name
	defaults map[string]string // by path, with schedule for every schedule
}

// theLanguage never changes, so it is read once.
var theLanguage = sync.OnceValue(func() language {
	l := language{rank: map[string]int{}, defaults: map[string]string{}}
	spec := reflect.TypeFor[ax.TaskSpec]()
	for i := range spec.NumField() {
		l.rank[spec.Field(i).Tag.Get("ax")] = i
	}
	l.read("", spec)
	l.read("schedule.", reflect.TypeFor[ax.ScheduleSpec]())
	return l
})

func (l language) read(prefix string, spec reflect.Type) {
	for i := range spec.NumField() {
		f := spec.Field(i)
		path := prefix + f.Tag.Get("ax")
		if f.Type.Kind() == reflect.Struct {
			l.read(path+".", f.Type)
		}
		if text, ok := f.Tag.Lookup("default"); ok {
			l.defaults[path] = text
		}
	}
}

func (l language) rankOf(path string) int {
	end := strings.IndexAny(path, ".[")
	if end < 0 {
		end = len(path)
	}
	if rank, ok := l.rank[path[:end]]; ok {
		return rank
	}
	return len(l.rank)
}

// isDefault reports whether value is what an attribute has when nobody writes
// it.
func (l language) isDefault(path string, value json.RawMessage) bool {
	if path == "retry.on" { // depends on whether there is a retry block
		return bytes.Equal(value, plainJSON(ax.DefaultRetryOn))
	}
	if rest, ok := strings.CutPrefix(path, "schedule["); ok {
		_, name, _ := strings.Cut(rest, ".")
		path = "schedule." + name
	}
	text, ok := l.defaults[path]
	if !ok {
		return false
	}
	var s string
	if json.Unmarshal(value, &s) == nil {
		return s == text
	}
	return string(value) == text
}
