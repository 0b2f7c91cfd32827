package config

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/agext/levenshtein"

	"github.com/axctl/ax"
)

// words are the names that may stand in one kind of body.
type words struct {
	place      string // as in "a task"
	attributes []string
	blocks     []string
	// unbuilt names are in the language's design and not in this version.
	unbuilt []string
}

// What a configuration may say, body by body. The bodies that root describes
// are read from the tags of its structs.
var (
	topWords = words{
		place:   "a configuration",
		blocks:  []string{"ax", "variable", "locals", "defaults", "error_class", "plugin", "task"},
		unbuilt: []string{"dependency", "calendar", "channel", "alert", "silence", "policy", "output", "moved", "removed", "import"},
	}
	settingsWords   = words{place: "an ax block", attributes: []string{"stack"}, unbuilt: []string{"required_version"}}
	variableWords   = words{place: "a variable", attributes: []string{"type", "default", "description", "sensitive", "nullable"}, blocks: []string{"validation"}}
	validationWords = words{place: "a validation block", attributes: []string{"condition", "error_message"}}
	taskWords       = wordsOf("a task", ax.TaskSpec{}).with("for_each").
			designed("on", "params", "runs_on", "shard", "prevent_destroy")
	scheduleWords = wordsOf("a schedule block", ax.ScheduleSpec{}).
			designed("cron6", "quartz", "gap", "fold", "calendar", "on_excluded", "spread", "jitter", "until")
	pluginWords   = wordsOf("a plugin block", ax.PluginSpec{})
	retryWords    = wordsOf("a retry block", ax.RetrySpec{})
	misfireWords  = wordsOf("a misfire block", ax.MisfireSpec{})
	classWords    = wordsOf("an error_class block", ax.ErrorClassSpec{})
	defaultsWords = words{
		place:      "a defaults block",
		attributes: []string{"timezone", "owner", "labels", "timeout", "kill_after", "start_within", "concurrency", "overlap", "heartbeat", "pool", "idempotent", "freeze_after"},
		blocks:     []string{"retry", "misfire"},
		unbuilt:    []string{"runs_on"},
	}
)

// wordsOf reads the names from the ax tags of a struct's fields: a field that
// is a struct, or a list of structs, is a block.
func wordsOf(place string, spec any) words {
	w := words{place: place}
	for i := range reflect.TypeOf(spec).NumField() {
		f := reflect.TypeOf(spec).Field(i)
		t := f.Type
		if t.Kind() == reflect.Slice {
			t = t.Elem()
		}
		if name := f.Tag.Get("ax"); name == "" {
			continue // a label
		} else if t.Kind() == reflect.Struct {
			w.blocks = append(w.blocks, name)
		} else {
			w.attributes = append(w.attributes, name)
		}
	}
	return w
}

func (w words) with(attributes ...string) words {
	w.attributes = append(w.attributes, attributes...)
	return w
}

func (w words) designed(names ...string) words {
	w.unbuilt = names
	return w
}

// explain says what is wrong with a name that w does not have, or that is
// there as the other kind. block says how it was written.
func (w words) explain(name string, block bool) (summary, detail string) {
	kind, names := "attribute", slices.Concat(w.attributes, w.unbuilt)
	if block {
		kind, names = "block", slices.Concat(w.blocks, w.unbuilt)
	}
	switch {
	case slices.Contains(w.unbuilt, name):
		return "Not built in this version", fmt.Sprintf("%q in %s is designed, but not built in this version.", name, w.place)
	case !block && slices.Contains(w.blocks, name):
		return "Block expected", fmt.Sprintf("%q in %s is a block: write %s { … } without the equals sign.", name, w.place, name)
	case block && slices.Contains(w.attributes, name):
		return "Attribute expected", fmt.Sprintf("%q in %s is an attribute: write %s = …", name, w.place, name)
	}
	summary = "Unknown " + kind
	detail = fmt.Sprintf("There is no %s %q in %s.", kind, name, w.place)
	if near := nearest(name, slices.Concat(names, w.attributes, w.blocks)); near != "" {
		return summary, detail + fmt.Sprintf(" Did you mean %q?", near)
	}
	if home := homeOf(name); home != "" {
		return summary, detail + fmt.Sprintf(" It belongs in %s.", home)
	}
	if known := slices.Concat(w.attributes, w.blocks); len(known) > 0 {
		detail += " There are: " + strings.Join(known, ", ") + "."
	}
	return summary, detail
}

// homeOf returns the places whose words have name, or "".
func homeOf(name string) string {
	var homes []string
	for _, w := range []words{topWords, taskWords, pluginWords, scheduleWords, retryWords, misfireWords, classWords, defaultsWords, variableWords, validationWords, settingsWords} {
		if slices.Contains(w.attributes, name) || slices.Contains(w.blocks, name) {
			homes = append(homes, w.place)
		}
	}
	return strings.Join(homes, " or ")
}

// nearest returns the candidate that name is most likely a misspelling of, or
// "". Of equally near ones it takes the one with the longer common start.
func nearest(name string, candidates []string) string {
	best, bestDistance, bestPrefix := "", max(1, min(3, len(name)/3))+1, -1
	for _, c := range candidates {
		distance := levenshtein.Distance(strings.ToLower(name), c, nil)
		if swapped(name, c) {
			distance = 1
		}
		prefix := 0
		for prefix < min(len(name), len(c)) && name[prefix] == c[prefix] {
			prefix++
		}
		if distance < bestDistance || distance == bestDistance && best != "" && prefix > bestPrefix {
			best, bestDistance, bestPrefix = c, distance, prefix
		}
	}
	return best
}

// swapped reports whether a is b with two neighbours changed over.
func swapped(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := 0; i+1 < len(a); i++ {
		if a[i] != b[i] {
			return a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
		}
	}
	return false
}

// builtIn returns a task with the built-in defaults of root's tags.
func builtIn() draft {
	t := draft{timezone: "UTC"}
	setDefaults(reflect.ValueOf(&t.spec).Elem())
	setDefaults(reflect.ValueOf(&t.spec.Retry).Elem())
	setDefaults(reflect.ValueOf(&t.spec.Misfire).Elem())
	t.spec.Retry.On = ax.DefaultRetryOn
	return t
}

// setDefaults fills the fields of a struct that have a default tag. The tags
// are part of the program, so one that does not parse is a programmer's error.
func setDefaults(v reflect.Value) {
	for i := range v.NumField() {
		text, ok := v.Type().Field(i).Tag.Lookup("default")
		if !ok {
			continue
		}
		var err error
		switch field := v.Field(i); field.Interface().(type) {
		case ax.Duration:
			var d ax.Duration
			d, err = ax.ParseDuration(text)
			field.SetInt(int64(d))
		case bool:
			field.SetBool(text == "true")
		case int:
			var n int64
			n, err = strconv.ParseInt(text, 10, 64)
			field.SetInt(n)
		case float64:
			var f float64
			f, err = strconv.ParseFloat(text, 64)
			field.SetFloat(f)
		default:
			field.SetString(text)
		}
		if err != nil {
			panic(fmt.Sprintf("default of %s: %v", v.Type().Field(i).Name, err))
		}
	}
}
