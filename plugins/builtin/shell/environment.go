package shell

import (
	"errors"
	"fmt"
	"os"
	osuser "os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/axctl/ax/plugins/sdk"
)

const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// user is whom an attempt runs as.
type user struct {
	name, home string
	uid        uint32
	credential *syscall.Credential // nil: as the executor does
}

// account looks name up; empty is the executor's own user.
func account(name string) (user, error) {
	if name == "" {
		u := user{name: strconv.Itoa(os.Getuid()), home: os.Getenv("HOME"), uid: uint32(os.Getuid())}
		if own, err := osuser.Current(); err == nil {
			u.name, u.home = own.Username, own.HomeDir
		}
		return u, nil
	}
	found, err := osuser.Lookup(name)
	var unknown osuser.UnknownUserError
	if errors.As(err, &unknown) {
		return user{}, sdk.Permanent(fmt.Errorf("there is no user %s here", name))
	}
	if err != nil {
		return user{}, sdk.Permanent(fmt.Errorf("user %s: %w", name, err))
	}
	uid, err1 := strconv.ParseUint(found.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(found.Gid, 10, 32)
	groups, err3 := found.GroupIds()
	if err := errors.Join(err1, err2, err3); err != nil {
		return user{}, sdk.Permanent(fmt.Errorf("user %s: %w", name, err))
	}
	u := user{name: found.Username, home: found.HomeDir, uid: uint32(uid)}
	if int(uid) == os.Getuid() {
		return u, nil
	}
	if os.Getuid() != 0 {
		return user{}, sdk.Permanent(fmt.Errorf("run as user %s: axd does not run as root", name))
	}
	u.credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	for _, g := range groups {
		id, err := strconv.ParseUint(g, 10, 32)
		if err != nil {
			return user{}, sdk.Permanent(fmt.Errorf("user %s: group %q", name, g))
		}
		u.credential.Groups = append(u.credential.Groups, uint32(id))
	}
	return u, nil
}

// environment is what the package's documentation says, in a fixed order.
func environment(job sdk.Job, own map[string]string, who user, output, progress string) []string {
	due := job.Due
	vars := map[string]string{
		"PATH": defaultPath, "HOME": who.home, "USER": who.name, "LOGNAME": who.name,
		"SHELL": "/bin/sh", "LANG": "C.UTF-8",
	}
	for k, v := range own {
		vars[k] = v
	}
	for k, v := range map[string]string{
		"AX_STACK":           job.Stack,
		"AX_TASK":            job.Task,
		"AX_INSTANCE":        strconv.FormatInt(job.InstanceID, 10),
		"AX_ATTEMPT":         strconv.Itoa(job.Attempt),
		"AX_BATCH_NO":        job.BatchNo,
		"AX_IDEMPOTENCY_KEY": job.IdempotencyKey,
		"AX_DUE":             due.Format(time.RFC3339),
		"AX_DATE":            due.Format(time.DateOnly),
		"AX_PREV_DATE":       due.AddDate(0, 0, -1).Format(time.DateOnly),
		"AX_OUTPUT":          output,
		"AX_PROGRESS":        progress,
	} {
		vars[k] = v
	}
	env := make([]string, 0, len(vars))
	for k, v := range vars {
		env = append(env, k+"="+v)
	}
	slices.Sort(env)
	return env
}

// lookPath finds a program as execvp would, in the PATH of env.
func lookPath(name string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	path := ""
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			path = v
		}
	}
	for _, dir := range filepath.SplitList(path) {
		full := filepath.Join(dir, name)
		if info, err := os.Stat(full); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return full, nil
		}
	}
	return "", fmt.Errorf("command %q is not in PATH (%s)", name, path)
}
