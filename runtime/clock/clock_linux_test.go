package clock_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/axctl/ax/runtime/clock"
)

// The clock that nobody sets is the kernel's, so that a reading can be compared
// with one of another process.
func TestElapsedIsSinceTheKernelsStart(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("/proc/uptime")
	if err != nil {
		t.Fatal(err)
	}
	uptime, err := time.ParseDuration(strings.Fields(string(b))[0] + "s")
	if err != nil {
		t.Fatal(err)
	}
	if d := clock.Elapsed() - uptime; d < -time.Second || d > 10*time.Second {
		t.Errorf("it is %s from the uptime", d)
	}
	before := clock.Elapsed()
	if after := clock.Elapsed(); after < before {
		t.Errorf("%s after %s", after, before)
	}
	if len(clock.Kernel()) != 36 {
		t.Errorf("the kernel's start is %q", clock.Kernel())
	}
}

// What is read of the kernel's clock is what it says.
func TestRead(t *testing.T) {
	t.Parallel()
	s, err := clock.Read()
	if err != nil {
		t.Fatal(err)
	}
	if s.Synced != clock.Synced() || s.MaxError < 0 || s.Synced && s.MaxError > 16*time.Second {
		t.Errorf("%+v", s)
	}
}

// What users get has nothing in it that shifts the clock.
func TestNobodyShiftsTheClock(t *testing.T) {
	t.Parallel()
	program := func(tags string) string {
		out := t.TempDir() + "/clock.test"
		if text, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-tags", tags, "-o", out, ".").CombinedOutput(); err != nil {
			t.Fatalf("build: %v\n%s", err, text)
		}
		cmd := exec.CommandContext(t.Context(), out, "-test.v", "-test.run", "^TestShiftedClock$")
		cmd.Env = append(os.Environ(), "AX_TEST_CLOCK_OFFSET=-48h", "AX_TEST_REAL_CLOCK="+time.Now().Format(time.RFC3339))
		text, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("run: %v\n%s", err, text)
		}
		return string(text)
	}
	if got := program("none"); !strings.Contains(got, "shifted by 0 days") {
		t.Error(got)
	}
	if got := program("failpoint"); !strings.Contains(got, "shifted by -2 days") {
		t.Error(got)
	}
}

// TestShiftedClock says by how much the clock is shifted, for the test above.
func TestShiftedClock(t *testing.T) {
	t.Parallel()
	real, err := time.Parse(time.RFC3339, os.Getenv("AX_TEST_REAL_CLOCK"))
	if err != nil {
		real = time.Now()
	}
	t.Logf("shifted by %.0f days", clock.Now().Sub(real).Hours()/24)
}
