package schedule

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/axctl/ax"
)

// laterDialects are the dialects of the cases that this version does not have.
var laterDialects = map[string]bool{"cron6": true, "quartz": true}

type specCase struct {
	Expr    string
	Dialect string
	TZ      string
	From    time.Time
	Next    []time.Time
	Error   bool
	Note    string
}

// compile compiles the case's schedule from its text, as config does.
func (c specCase) compile() (*Schedule, error) {
	spec := ax.ScheduleSpec{Timezone: c.TZ}
	switch c.Dialect {
	case "cron":
		spec.Cron = c.Expr
	case "every":
		every, err := ax.ParseDuration(c.Expr)
		if err != nil {
			return nil, err
		}
		spec.Every, spec.From = every, c.From.Format(time.RFC3339)
	}
	return Compile([]ax.ScheduleSpec{spec})
}

func TestCases(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/cron.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	built, later := 0, 0
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		var c specCase
		decode := json.NewDecoder(bytes.NewReader(lines.Bytes()))
		decode.DisallowUnknownFields()
		if err := decode.Decode(&c); err != nil {
			t.Fatalf("%v: %s", err, lines.Bytes())
		}
		if laterDialects[c.Dialect] {
			later++
			continue
		}
		built++
		t.Run(c.Dialect+" "+c.Expr+" "+c.TZ, func(t *testing.T) {
			t.Parallel()
			c.check(t)
		})
	}
	// The file as handed over: 140 cron and 5 every lines, 23 quartz, 8 cron6.
	if built != 145 || later != 31 {
		t.Errorf("%d cases run and %d left to later dialects, want 145 and 31", built, later)
	}
}

func (c specCase) check(t *testing.T) {
	started := time.Now()
	s, err := c.compile()
	if spent := time.Since(started); spent > 100*time.Millisecond {
		t.Errorf("compiled in %v", spent)
	}
	if c.Error {
		if err == nil {
			t.Fatalf("accepted, but: %s", c.Note)
		}
		var fault *Error
		if c.Dialect == "cron" && (!errors.As(err, &fault) || fault.Summary == "" || (fault.Attribute == "" && c.Expr != "")) {
			t.Errorf("no attribute or summary in %#v", err)
		}
		return
	}
	if err != nil {
		t.Fatalf("refused: %v", err)
	}
	at := c.From.UnixMilli()
	for i, want := range c.Next {
		next, ok := s.Next(at)
		if !ok || next != want.UnixMilli() {
			t.Fatalf("%s: firing %d is %v (%t), want %v", c.Note, i+1, time.UnixMilli(next).In(s.Location()), ok, want)
		}
		if prev, ok := s.Prev(next + 1); !ok || prev != next {
			t.Errorf("Prev just after firing %d is %v (%t)", i+1, time.UnixMilli(prev).In(s.Location()), ok)
		}
		at = next
	}
}
