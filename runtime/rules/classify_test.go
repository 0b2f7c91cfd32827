package rules_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/axctl/ax"
	"github.com/axctl/ax/runtime/rules"
)

func TestClassify(t *testing.T) {
	t.Parallel()
	list := []ax.ErrorClassSpec{
		{Class: ax.ClassPermanent, ExitCodes: []int{2, 64}, Match: "no such table|denied"},
		{Class: ax.ClassResource, ExitCodes: []int{137}, HTTPStatus: []int{507}, Match: "(?i)disk full"},
		{Class: ax.ClassTransient, ExitCodes: []int{75}, HTTPStatus: []int{500, 520}, Match: "^connection"},
	}
	for _, tt := range []struct {
		name string
		out  rules.Outcome
		want ax.ErrorClass
	}{
		{"a code", rules.Outcome{Class: ax.ClassFailed, ExitCode: 75}, ax.ClassTransient},
		{"another code", rules.Outcome{Class: ax.ClassFailed, ExitCode: 137}, ax.ClassResource},
		{"a code that none has", rules.Outcome{Class: ax.ClassFailed, ExitCode: 1}, ax.ClassFailed},
		{"a status", rules.Outcome{Class: ax.ClassFailed, HTTPStatus: 520}, ax.ClassTransient},
		{"a status is no exit code", rules.Outcome{Class: ax.ClassFailed, HTTPStatus: 137}, ax.ClassFailed},
		{"a text", rules.Outcome{Class: ax.ClassFailed, Error: "Disk Full on /var"}, ax.ClassResource},
		{"a text at its begin only", rules.Outcome{Class: ax.ClassFailed, Error: "no connection"}, ax.ClassFailed},
		{"a code before a text", rules.Outcome{Class: ax.ClassFailed, ExitCode: 75, Error: "denied"}, ax.ClassTransient},
		{"two texts: the more careful", rules.Outcome{Class: ax.ClassFailed, Error: "connection denied"}, ax.ClassPermanent},
		{"what the handler classed", rules.Outcome{Class: ax.ClassTransient, ExitCode: 2, Error: "denied"}, ax.ClassTransient},
		{"a timeout", rules.Outcome{Class: ax.ClassTimeout, ExitCode: 2}, ax.ClassTimeout},
		{"lost", rules.Outcome{Class: ax.ClassLost, Error: "denied"}, ax.ClassLost},
		{"cancelled", rules.Outcome{Class: ax.ClassCancelled, ExitCode: 137}, ax.ClassCancelled},
		{"success", rules.Outcome{}, ""},
	} {
		if got := rules.Classify(list, tt.out); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
	broken := []ax.ErrorClassSpec{
		{Class: ax.ClassPermanent, Match: "("},
		{Class: ax.ClassPermanent, Match: strings.Repeat("x", ax.MaxMatchBytes+1)},
		{Class: ax.ClassPermanent, ExitCodes: []int{0}, HTTPStatus: []int{0}},
	}
	if got := rules.Classify(broken, rules.Outcome{Class: ax.ClassFailed, Error: strings.Repeat("x", 2000)}); got != ax.ClassFailed {
		t.Errorf("a list that says nothing gives %s", got)
	}
}

// TestClassifyLaws: the answer is the class that was there or one of the list,
// and only failed ever changes.
func TestClassifyLaws(t *testing.T) {
	t.Parallel()
	classes := append([]ax.ErrorClass{ax.ClassPermanent, ax.ClassCancelled, ""}, ax.RetryClasses...)
	rapid.Check(t, func(t *rapid.T) {
		var list []ax.ErrorClassSpec
		given := map[ax.ErrorClass]bool{}
		for _, c := range ax.MappedClasses {
			if rapid.Bool().Draw(t, "has") {
				given[c] = true
				list = append(list, ax.ErrorClassSpec{
					Class:     c,
					ExitCodes: rapid.SliceOfN(rapid.IntRange(1, 5), 0, 3).Draw(t, "codes"),
					Match:     rapid.SampledFrom([]string{"", "a", "b+", "(", "."}).Draw(t, "match"),
				})
			}
		}
		o := rules.Outcome{
			Class: rapid.SampledFrom(classes).Draw(t, "class"), ExitCode: rapid.IntRange(0, 5).Draw(t, "code"),
			Error: rapid.SampledFrom([]string{"", "a", "bbb", "c"}).Draw(t, "error"),
		}
		got := rules.Classify(list, o)
		if got != o.Class && (o.Class != ax.ClassFailed || !given[got]) {
			t.Fatalf("%+v became %s by %+v", o, got, list)
		}
	})
}
