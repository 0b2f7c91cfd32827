// Command ax-handler-report is a plugin with one handler, "daily". It is a module
// of its own, as yours will be: copy the folder, take the replace line out of
// go.mod, and see docs/plugins.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/axctl/ax/plugins/sdk"
)

func main() {
	sdk.Serve("report", sdk.Handler("daily", "Build the daily report.", daily))
}

// Daily is what a handler "daily" block may say.
type Daily struct {
	Day    string        `ax:"day" doc:"Day to report, YYYY-MM-DD, or due: the day of the firing."`
	Format string        `ax:"format" default:"text" enum:"text,csv" doc:"How it is written."`
	Folder string        `ax:"folder,optional" doc:"Where it is written; only the log when it is not set."`
	Slow   time.Duration `ax:"slow,optional" doc:"How long it takes, to try timeouts and cancels with."`
}

func daily(ctx context.Context, job sdk.Job, in Daily) (sdk.Outputs, error) {
	day := job.Due
	if in.Day != "due" {
		var err error
		if day, err = time.Parse(time.DateOnly, in.Day); err != nil {
			return nil, sdk.Permanent(err) // no retry mends it
		}
	}
	select {
	case <-time.After(in.Slow):
	case <-ctx.Done():
		return nil, context.Cause(ctx) // timed out or cancelled: end soon
	}
	if in.Day == "1970-01-01" {
		panic("there was no report on the first day") // ends this attempt, and no other
	}
	text := fmt.Sprintf("report of %s, attempt %d\n", day.Format(time.DateOnly), job.Attempt)
	if in.Format == "csv" {
		text = fmt.Sprintf("day,attempt\n%s,%d\n", day.Format(time.DateOnly), job.Attempt)
	}
	fmt.Fprint(job.Output.Stdout, text)
	if in.Folder == "" {
		return sdk.Outputs{"day": day.Format(time.DateOnly)}, nil
	}
	// The same key for all attempts of an instance: a second one overwrites what
	// the first left half done, and adds nothing.
	file := filepath.Join(in.Folder, job.IdempotencyKey+"."+in.Format)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return nil, err // class failed
		}
		return nil, sdk.Resource(err) // full or read-only: later it may work
	}
	return sdk.Outputs{"day": day.Format(time.DateOnly), "file": file}, nil
}
