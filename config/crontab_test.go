package config

import "testing"

func TestCrontabLine(t *testing.T) {
	t.Parallel()
	for line, want := range map[string][2]string{
		"  */5 0-3 1,15 jan *\t  run  'it' ": {"*/5 0-3 1,15 jan *", "run  'it'"},
		"@hourly run":                        {"@hourly", "run"},
	} {
		if cron, command, ok := crontabLine(line); !ok || cron != want[0] || command != want[1] {
			t.Errorf("%q: %q, %q, %v", line, cron, command, ok)
		}
	}
	for _, line := range []string{"", "@hourly", "@reboot run", "0 2 * * *", "61 2 * * * run", "0 2 * * 'mon' run", `task "a" { x y z }`, "a = b c d e f"} {
		if cron, command, ok := crontabLine(line); ok {
			t.Errorf("%q is %q, %q", line, cron, command)
		}
	}
	if got := quoted("a \"${b}\" %{c} $d %"); got != `"a \"$${b}\" %%{c} $d %"` {
		t.Errorf("quoted: %s", got)
	}
}
