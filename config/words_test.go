package config

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/agext/levenshtein"

	"github.com/axctl/ax"
	"github.com/axctl/ax/plugins"
)

// misspellings of a word by one letter: left out, doubled, another one, two
// changed over.
func misspellings(word string) []string {
	var out []string
	for i := range word {
		out = append(out, word[:i]+word[i+1:], word[:i+1]+word[i:], word[:i]+"q"+word[i+1:])
		if i > 0 && word[i] != word[i-1] {
			out = append(out, word[:i-1]+word[i:i+1]+word[i-1:i]+word[i+1:])
		}
	}
	return slices.DeleteFunc(out, func(s string) bool { return s == "" || s == word })
}

// bodies are texts with a place for one more line, one for each kind of body.
var bodies = []struct {
	words *words
	text  string
}{
	{&settingsWords, "ax {\n%s\n}\n"},
	{&variableWords, "variable \"v\" {\n type = string\n default = \"\"\n%s\n}\n"},
	{&validationWords, "variable \"v\" {\n default = \"\"\n validation {\n condition = true\n error_message = \"\"\n%s\n}\n}\n"},
	{&defaultsWords, "defaults {\n%s\n}\n"},
	{&taskWords, "task \"t\" {\n%s\n handler \"shell\" { command = \"true\" }\n}\n"},
	{&scheduleWords, "task \"t\" {\n schedule {\n every = \"1m\"\n%s\n}\n handler \"shell\" { command = \"true\" }\n}\n"},
	{&retryWords, "task \"t\" {\n retry {\n%s\n}\n handler \"shell\" { command = \"true\" }\n}\n"},
	{&misfireWords, "task \"t\" {\n misfire {\n%s\n}\n handler \"shell\" { command = \"true\" }\n}\n"},
	{&classWords, "task \"t\" {\n error_class \"transient\" {\n exit_codes = [75]\n%s\n}\n handler \"shell\" { command = \"true\" }\n}\n"},
	{&topWords, "%s\n"},
}

// Each word of the language, wrong by one letter, is an error on its line that
// names the word.
func TestEveryWordMisspelt(t *testing.T) {
	t.Parallel()
	for _, body := range bodies {
		w := *body.words
		all := slices.Concat(w.attributes, w.blocks, w.unbuilt)
		for _, word := range all {
			for _, wrong := range misspellings(word) {
				if slices.Contains(all, wrong) {
					continue // another word
				}
				line := wrong + " = 1"
				if slices.Contains(w.blocks, word) || len(w.attributes) == 0 {
					line = wrong + " {\n}"
				}
				checkSuggestion(t, w, all, fmt.Sprintf(body.text, line), word, wrong)
			}
		}
	}
}

func checkSuggestion(t *testing.T, w words, all []string, text, word, wrong string) {
	t.Helper()
	c, diags := loadText(t, text, testOptions())
	if c != nil || len(diags) != 1 || !strings.Contains(diags[0].Detail, fmt.Sprintf("%q in %s", wrong, w.place)) {
		t.Errorf("%s in %s: got %s", wrong, w.place, tell(diags))
		return
	}
	if strings.Contains(diags[0].Detail, fmt.Sprintf("Did you mean %q?", word)) {
		return
	}
	// Another word may be as near: then naming that one is as good.
	for _, other := range all {
		if other != word && levenshtein.Distance(other, wrong, nil) == 1 && strings.Contains(diags[0].Detail, fmt.Sprintf("Did you mean %q?", other)) {
			return
		}
	}
	t.Errorf("%s for %s in %s: got %s", wrong, word, w.place, tell(diags))
}

// Handler bodies have their words from a schema.
func TestEveryHandlerWordMisspelt(t *testing.T) {
	t.Parallel()
	var all []string
	var schema plugins.Schema
	for _, s := range testSchemas() {
		if s.Handler == "types" {
			schema = s
		}
	}
	for _, a := range schema.Attributes {
		all = append(all, a.Name)
	}
	w := words{place: `handler "types"`, attributes: all}
	for _, word := range all {
		for _, wrong := range misspellings(word) {
			text := fmt.Sprintf("task \"t\" {\n handler \"types\" {\n%s = 1\n}\n}\n", wrong)
			checkSuggestion(t, w, all, text, word, wrong)
		}
	}
}

// Each word that the language says it has does something: with a value of a
// wrong type it is refused.
func TestEveryWordIsRead(t *testing.T) {
	t.Parallel()
	for _, body := range bodies {
		for _, word := range body.words.attributes {
			text := fmt.Sprintf(body.text, word+" = {x = [[]]}")
			if _, diags := loadText(t, text, testOptions()); !diags.HasErrors() && word != "default" && word != "for_each" {
				t.Errorf("%s in %s takes anything", word, body.words.place)
			}
		}
	}
}

// The defaults of the tags are those that the documentation gives.
func TestBuiltIn(t *testing.T) {
	t.Parallel()
	got := builtIn().spec
	if got.Timeout.String() != "1h" || got.KillAfter.String() != "10s" || got.Concurrency != 1 || got.Overlap != ax.OverlapQueue || !got.Enabled || !got.Idempotent {
		t.Errorf("task: %+v", got)
	}
	if r := got.Retry; r.Max != 3 || r.Initial.String() != "10s" || r.Factor != 2 || r.MaxInterval.String() != "5m" || r.Jitter != 0.2 || !slices.Equal(r.On, ax.DefaultRetryOn) {
		t.Errorf("retry: %+v", r)
	}
	if m := got.Misfire; m.Policy != ax.MisfireOnce || m.Grace.String() != "1m" || m.Max != 100 || m.OnResume != ax.MisfireSkip {
		t.Errorf("misfire: %+v", m)
	}
}

func TestNearest(t *testing.T) {
	t.Parallel()
	words := []string{"at", "cron", "every", "timeout", "timezone", "max", "max_interval", "concurrency"}
	for _, tt := range []struct{ name, want string }{
		{"crno", "cron"},
		{"Cron", "cron"},
		{"corn", "cron"},
		{"evry", "every"},
		{"timout", "timeout"},
		{"time_zone", "timezone"},
		{"maxinterval", "max_interval"},
		{"concurency", "concurrency"},
		{"a", "at"},
		{"zzz", ""},
		{"frequency", ""},
		{"", ""},
	} {
		if got := nearest(tt.name, words); got != tt.want {
			t.Errorf("nearest to %q is %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestQuoteKey(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ key, want string }{
		{`eu`, `"eu"`},
		{`a/b`, `"a/b"`},
		{`say "x"`, `"say \"x\""`},
		{`back\slash`, `"back\\slash"`},
		{"line\nend\r\t", `"line\nend\r\t"`},
		{`${x} %{y} $x`, `"$${x} %%{y} $x"`},
		{"\x00\u200b", `"\u0000\u200b"`},
		{"\U000e0001", `"\U000e0001"`},
		{`ü報`, `"ü報"`},
		{``, `""`},
	} {
		if got := quoteKey(tt.key); got != tt.want {
			t.Errorf("%q: got %s, want %s", tt.key, got, tt.want)
		}
	}
}
