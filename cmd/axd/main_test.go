package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// TestMain lets this test binary be an executor, as axd's own binary is.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "executor" {
		os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
	}
	goleak.VerifyTestMain(m)
}

func noEnv(string) (string, bool) { return "", false }

func TestFlags(t *testing.T) {
	t.Parallel()
	f, err := parseFlags([]string{"-store=sqlite:/x/y.db", "--pools", "shell=3,http=9", "-scan", "1s", "-retain", "48h"}, noEnv, io.Discard)
	if err != nil || f.store != "sqlite:/x/y.db" || f.pools["shell"] != 3 || f.pools["http"] != 9 || f.scan != time.Second || f.tick != time.Second ||
		f.retain != 48*time.Hour || f.retainLast != 1000 {
		t.Errorf("%+v, %v", f, err)
	}
	f, err = parseFlags([]string{"-name", "flag"}, func(k string) (string, bool) {
		v, ok := map[string]string{"AX_STORE": "sqlite:e.db", "AX_NAME": "env", "AX_LOG_FORMAT": "json"}[k]
		return v, ok
	}, io.Discard)
	if err != nil || f.store != "sqlite:e.db" || f.name != "flag" || f.logFormat != "json" {
		t.Errorf("environment: %+v, %v", f, err)
	}
	for args, want := range map[string]string{
		"-nonsense":                "axd -h lists the flags",
		"extra":                    `unexpected "extra"`,
		"-log-format xml":          "text or json",
		"-pools shell":             "pool=places",
		"-pools shell=0":           "places from 1",
		"-for 5s":                  "goes with -demo",
		"-tick 0s":                 "at least 1ms",
		"-retain 1s":               "at least 1m",
		"-retain-last 0":           "at least 1",
		"-labels zone=eu":          "not built in this version",
		"-tls-cert=x":              "not built in this version",
		"-scan soon":               "axd -h lists the flags",
		"-grace -5s":               "not negative",
		"-store a -store= -for=9x": "axd -h lists the flags",
	} {
		if _, err := parseFlags(strings.Fields(args), noEnv, io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", args, err, want)
		}
	}
	_, err = parseFlags(nil, func(k string) (string, bool) { return "x", k == "AX_SCAN" }, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "AX_SCAN") {
		t.Errorf("bad environment: %v", err)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"no store":       {[]string{"-store", "sqlite:" + dir + "/none.db"}, "axctl apply makes one"},
		"unknown kind":   {[]string{"-store", "mysql:x"}, "unknown kind"},
		"no such demo":   {[]string{"-demo", dir + "/none.hcl"}, "none.hcl"},
		"no such binary": {[]string{"executor", "nonsense"}, "nonsense"},
	} {
		var out, errs bytes.Buffer
		if code := run(tc.args, &out, &errs); code != 1 || !strings.Contains(errs.String(), tc.want) {
			t.Errorf("%s: exit %d, %q; want %q", name, code, errs.String(), tc.want)
		}
		if strings.Count(errs.String(), "\n") != 1 {
			t.Errorf("%s: one line says what to do: %q", name, errs.String())
		}
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("a refused start left %v", left)
	}
}

func TestVersionAndHelp(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	if code := run([]string{"-version"}, &out, &errs); code != 0 || !strings.Contains(out.String(), "tzdata 20") {
		t.Errorf("version: %d %q %q", code, out.String(), errs.String())
	}
	if code := run([]string{"-h"}, &out, &errs); code != 0 || !strings.Contains(errs.String(), "-store") {
		t.Errorf("help: %d %q", code, errs.String())
	}
}

var lastLine = regexp.MustCompile(`^(\d+) fired, (\d+) succeeded, (\d+) failed, 0 lost$`)

// runDemo runs a file as axd -demo does and returns what it printed and the
// three counts of its last line.
func runDemo(t *testing.T, file string, length time.Duration) (text string, fired, succeeded, failed int) {
	t.Helper()
	f, err := parseFlags([]string{"-demo", file, "-for", length.String()}, noEnv, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	if err := demo(t.Context(), context.Background(), f, &out, &errs); err != nil {
		t.Fatalf("%v\n%s%s", err, out.String(), errs.String())
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	m := lastLine.FindStringSubmatch(lines[len(lines)-1])
	if m == nil {
		t.Fatalf("last line %q of\n%s%s", lines[len(lines)-1], out.String(), errs.String())
	}
	n := func(i int) int { v, _ := strconv.Atoi(m[i]); return v }
	return out.String(), n(1), n(2), n(3)
}

func TestDemo(t *testing.T) {
	t.Parallel()
	text, fired, succeeded, failed := runDemo(t, "../../examples/demo.hcl", 8*time.Second)
	// In any 8 s: 4 ticks, at least 2 healthz, at least 1 flaky.
	if fired < 7 || failed != 0 || succeeded < 6 {
		t.Errorf("fired %d, succeeded %d, failed %d:\n%s", fired, succeeded, failed, text)
	}
	for _, want := range []string{"task.tick", "task.healthz", "retry", "exit code 1", "attempt 2", " ms  success"} {
		if !strings.Contains(text, want) {
			t.Errorf("nothing of %q in\n%s", want, text)
		}
	}
}

// Every example is whole: it is read, planned, applied and run.
func TestExamplesRun(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../examples/*.hcl")
	if err != nil || len(files) < 3 {
		t.Fatalf("examples: %v, %v", files, err)
	}
	for _, file := range files {
		if filepath.Base(file) == "demo.hcl" {
			continue // TestDemo
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			text, _, _, _ := runDemo(t, file, time.Second)
			if !strings.Contains(text, " of "+file) || strings.HasPrefix(text, "1 tasks") {
				t.Errorf("printed\n%s", text)
			}
		})
	}
}
