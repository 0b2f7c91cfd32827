package config

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/axctl/ax"
	"github.com/axctl/ax/schedule"
)

// crontab tells lines of a crontab among what hcl could not read, once each and
// as they are written here, and returns the other faults.
func (s *source) crontab(d *decoder, found hcl.Diagnostics) hcl.Diagnostics {
	var others hcl.Diagnostics
	told := map[int]bool{}
	for _, f := range found {
		var at hcl.Range
		if f.Subject != nil {
			at = *f.Subject
		}
		cron, command, ok := crontabLine(lineAt(s.text, at.Start.Byte))
		switch {
		case !ok:
			others = append(others, f)
		case !told[at.Start.Line]:
			told[at.Start.Line] = true
			d.errorf(at, "A line of a crontab", "Here it is written as:\n\n  task \"NAME\" {\n    schedule { cron = %q }\n    handler \"shell\" { command = %s }\n  }\n\nTimes are UTC unless the schedule has a timezone.", cron, quoted(command))
		}
	}
	return others
}

// lineAt returns the line in which a byte stands.
func lineAt(text []byte, at int) string {
	at = min(at, len(text))
	line, _, _ := bytes.Cut(text[bytes.LastIndexByte(text[:at], '\n')+1:], []byte("\n"))
	return string(line)
}

// crontabLine takes a line apart that is five fields, or a macro, and a command.
func crontabLine(line string) (cron, command string, ok bool) {
	fields, command := 5, strings.TrimSpace(line)
	if strings.HasPrefix(command, "@") {
		fields = 1
	}
	var parts []string
	for range fields {
		end := strings.IndexAny(command, " \t")
		if end < 0 {
			return "", "", false
		}
		parts, command = append(parts, command[:end]), strings.TrimLeft(command[end:], " \t")
	}
	cron = strings.Join(parts, " ")
	_, err := schedule.Compile([]ax.ScheduleSpec{{Cron: cron, Timezone: "UTC"}})
	return cron, command, err == nil
}

// quoted writes a text as a string of the language.
func quoted(text string) string {
	return strings.NewReplacer("${", "$${", "%{", "%%{").Replace(fmt.Sprintf("%q", text))
}
