package cli

import (
	"errors"
	"fmt"
	"testing"

	"github.com/axctl/ax"
)

func TestExitCode(t *testing.T) {
	t.Parallel()
	tests := []struct {
		err  error
		want int
	}{
		{nil, 0},
		{errors.New("any"), 1},
		{ax.ErrNotFound, 1},
		{ax.ErrNoStore, 1},
		{ax.ErrTooNew, 1},
		{ax.ErrDenied, 1},
		{ax.Diagnostic{Summary: "x"}, 1},
		{fmt.Errorf("apply: %w", &ax.StaleError{Address: "task.x"}), 5},
		{ax.WithHint(fmt.Errorf("apply: %w", ax.ErrBusy), "wait"), 6},
		{withCode(7, errors.New("declined")), 7},
		{exit(8), 8},
		{interrupted(errors.New("any"), &Interrupt{"SIGTERM", ExitTerminated}), 143},
		{interrupted(exit(130), &Interrupt{"SIGINT", ExitInterrupted}), 130},
		{interrupted(withCode(130, errors.New("but committed")), &Interrupt{"SIGTERM", ExitTerminated}), 130},
	}
	for _, tt := range tests {
		if got := exitCode(tt.err); got != tt.want {
			t.Errorf("exitCode(%v) = %d, want %d", tt.err, got, tt.want)
		}
	}
}
