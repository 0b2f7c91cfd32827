package cli

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// gitBudget bounds all questions to git together. An apply never fails, and
// never waits long, because of it.
const gitBudget = 2 * time.Second

// gitState tells what commit of which repository a configuration is, as far as
// git says; all is empty where there is no git or no repository.
func gitState(ctx context.Context, origin string, environ []string) (remote, commit string, dirty bool) {
	ctx, cancel := context.WithTimeout(ctx, gitBudget)
	defer cancel()
	dir := origin
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		dir = filepath.Dir(dir)
	}
	ask := func(args ...string) (string, bool) {
		// A repository may name programs to be run as fsmonitor; none is.
		cmd := exec.CommandContext(ctx, "git", append([]string{"-C", dir, "-c", "core.fsmonitor=false"}, args...)...)
		cmd.Env = append(environ[:len(environ):len(environ)], "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0")
		cmd.WaitDelay = 100 * time.Millisecond
		out, err := cmd.Output()
		return strings.TrimSpace(string(out)), err == nil
	}
	commit, ok := ask("rev-parse", "--verify", "HEAD")
	if !ok {
		return "", "", false
	}
	if remote, ok = ask("remote", "get-url", "origin"); ok {
		remote = withoutPassword(remote)
	}
	changes, ok := ask("status", "--porcelain", "--", ".")
	return remote, commit, ok && changes != ""
}

// withoutPassword takes the credentials out of a remote's URL: what is stored
// is shown to everyone who may read the store.
func withoutPassword(remote string) string {
	scheme, rest, isURL := strings.Cut(remote, "://")
	if !isURL {
		return remote // HOST:PATH of ssh, which takes no password, or a folder
	}
	host, path, _ := strings.Cut(rest, "/")
	return scheme + "://" + host[strings.LastIndexByte(host, '@')+1:] + "/" + path
}
