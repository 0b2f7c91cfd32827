package cli

import (
	"os"
	"testing"
	"time"
)

func TestWithoutPassword(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"https://git.example.org/jobs.git":               "https://git.example.org/jobs.git",
		"https://ada:hunter2@git.example.org/jobs.git":   "https://git.example.org/jobs.git",
		"https://ada:hun%ter@2@git.example.org:8443/a/b": "https://git.example.org:8443/a/b",
		"https://token@git.example.org/a@b":              "https://git.example.org/a@b",
		"git@git.example.org:jobs.git":                   "git@git.example.org:jobs.git",
		"/srv/git/jobs.git":                              "/srv/git/jobs.git",
	} {
		if got := withoutPassword(in); got != want {
			t.Errorf("withoutPassword(%q) = %q, want %q", in, got, want)
		}
	}
}

// No repository, no folder, no git: nothing is known, and it does not take long.
func TestGitStateOfNothing(t *testing.T) {
	t.Parallel()
	begin := time.Now()
	for _, dir := range []string{t.TempDir(), "/no/such/folder"} {
		env := append(os.Environ(), "GIT_CEILING_DIRECTORIES=/")
		if remote, commit, dirty := gitState(t.Context(), dir, env); remote != "" || commit != "" || dirty {
			t.Errorf("%s: %q %q %v", dir, remote, commit, dirty)
		}
	}
	if took := time.Since(begin); took > 3*gitBudget {
		t.Errorf("it took %v", took)
	}
}
