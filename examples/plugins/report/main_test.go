package main

import (
	"context"
	"strings"
	"testing"

	"github.com/axctl/ax/plugins"
	"github.com/axctl/ax/plugins/plugintest"
	"github.com/axctl/ax/plugins/sdk"
)

// Run proves the handler against all that ax expects of one.
func TestDaily(t *testing.T) {
	plugintest.Run(t, plugintest.Subject{
		Handler: sdk.Handler("daily", "Build the daily report.", daily),
		Success: `{"day":"2026-11-30"}`,
		Failure: `{"day":"2026-11-30","folder":"/no/such/folder"}`,
		Endless: `{"day":"2026-11-30","slow":"1h"}`,
	})
}

func TestFormats(t *testing.T) {
	e := plugintest.Start(t, sdk.Options{Handlers: []plugins.Handler{sdk.Handler("daily", "", daily)}})
	res := e.Do(e.Job("daily", `{"day":"2026-11-30","format":"csv"}`))
	if res.Status != "success" || string(res.Stdout) != "day,attempt\n2026-11-30,1\n" {
		t.Errorf("%+v", res)
	}
	for body, class := range map[string]plugins.Class{
		`{"day":"tomorrow"}`:   plugins.Permanent,
		`{"day":"1970-01-01"}`: plugins.Permanent, // a panic
	} {
		if res := e.Do(e.Job("daily", body)); res.Class != string(class) {
			t.Errorf("%s: %+v", body, res)
		}
	}
	if _, err := daily(context.Background(), sdk.Job{}, Daily{Day: "?"}); err == nil || !strings.Contains(err.Error(), "?") {
		t.Errorf("error %v", err)
	}
}
