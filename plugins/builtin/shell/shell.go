package shell

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/axctl/ax/plugins"
	"github.com/axctl/ax/plugins/builtin/shell/cgroup"
	"github.com/axctl/ax/plugins/builtin/shell/schema"
	"github.com/axctl/ax/plugins/sdk"
)

// Handler is the shell handler.
type Handler struct {
	work    workspace
	cgroups cgroups

	mu       sync.Mutex   // guards what follows
	mains    map[int]bool // process ids of attempts' main processes
	nameless map[int]bool // orphans of which nobody knows whose they are
}

var (
	_ plugins.Handler = (*Handler)(nil)
	_ io.Closer       = (*Handler)(nil)
)

// New returns the shell handler.
func New() *Handler { return &Handler{mains: map[int]bool{}, cgroups: cgroups{find: cgroup.Find}} }

// Open makes ready for attempts: it finds out whether control groups can be
// used, and kills what an executor that died has left in its own. The first Run
// does it otherwise.
func (h *Handler) Open() { h.cgroups.open() }

// Schema implements plugins.Handler.
func (h *Handler) Schema() plugins.Schema { return schema.Schema() }

// Close removes what attempts needed on disk.
func (h *Handler) Close() error { return errors.Join(h.work.close(), h.cgroups.close()) }

// body is the handler's block.
type body struct {
	Command     words             `json:"command"`
	Script      string            `json:"script"`
	Interpreter words             `json:"interpreter"`
	Dir         string            `json:"dir"`
	Env         map[string]string `json:"env"`
	User        string            `json:"user"`
	Stdin       string            `json:"stdin"`
	OKCodes     []int             `json:"ok_codes"`
}

// words is a text or a list of texts.
type words struct {
	text string
	list []string
}

func (w *words) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '[' {
		return json.Unmarshal(b, &w.list)
	}
	return json.Unmarshal(b, &w.text)
}

func (w words) empty() bool { return w.text == "" && len(w.list) == 0 }

// Run implements plugins.Handler.
func (h *Handler) Run(ctx context.Context, job sdk.Job) (sdk.Outputs, error) {
	in := body{OKCodes: []int{0}}
	if err := sdk.Decode(job.Body, &in); err != nil {
		return nil, err
	}
	if in.Command.empty() == (in.Script == "") {
		return nil, sdk.Permanent(errors.New("handler body: exactly one of command and script must be set"))
	}
	who, err := account(in.User)
	if err != nil {
		return nil, err
	}
	files, err := newFiles(&h.work, in, who)
	if err != nil {
		return nil, err
	}
	defer files.close()
	g, err := h.start(job, in, who, files)
	if err != nil {
		return nil, err
	}
	stop, followed := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(followed)
		files.follow(job, stop)
	}()
	end := g.wait(ctx)
	close(stop)
	<-followed
	outputs, err := files.outputs(job)
	switch {
	case end.Signaled():
		return outputs, failed(128+int(end.Signal()), fmt.Errorf("killed by signal %s", signalName(end.Signal())))
	case !slices.Contains(in.OKCodes, end.ExitStatus()):
		return outputs, failed(end.ExitStatus(), fmt.Errorf("exit code %d", end.ExitStatus()))
	}
	return outputs, err
}

// failed is the failure of a process, with its exit code as a shell tells it.
func failed(code int, err error) error {
	return &plugins.Error{Class: plugins.Failed, Err: err, ExitCode: code}
}

// start begins the attempt's process in a process group of its own.
func (h *Handler) start(job sdk.Job, in body, who user, files *files) (*group, error) {
	env := environment(job, in.Env, who, files.output, files.progress)
	argv, err := arguments(in, files.script, env)
	if err != nil {
		return nil, err
	}
	dir, err := directory(in.Dir, who)
	if err != nil {
		return nil, err
	}
	g := &group{handler: h, job: job, killAfter: job.KillAfter}
	job.OnSignal(g.pauser.signal)
	g.cgroup = h.cgroups.group(job.BatchNo)
	err = g.start(argv, env, dir, who, files.stdin)
	if err != nil && g.cgroup != nil {
		// Either it cannot start at all, or not into a control group.
		cause := err
		_ = g.cgroup.Remove()
		g.cgroup = nil
		if err = g.start(argv, env, dir, who, files.stdin); err == nil {
			h.cgroups.giveUp(cause)
		}
	}
	if err != nil {
		return nil, startError(argv[0], err)
	}
	return g, nil
}

// arguments returns what is executed, its program by path.
func arguments(in body, script string, env []string) ([]string, error) {
	var argv []string
	switch {
	case in.Command.text != "":
		argv = []string{"/bin/sh", "-c", in.Command.text}
	case len(in.Command.list) > 0:
		argv = slices.Clone(in.Command.list)
	case in.Interpreter.text != "":
		argv = []string{in.Interpreter.text, script}
	case len(in.Interpreter.list) > 0:
		argv = append(slices.Clone(in.Interpreter.list), script)
	default:
		argv = []string{"/bin/sh", script}
	}
	path, err := lookPath(argv[0], env)
	if err != nil {
		return nil, sdk.Permanent(err)
	}
	argv[0] = path
	return argv, nil
}

// directory returns where the process starts.
func directory(dir string, who user) (string, error) {
	if dir == "" {
		if info, err := os.Stat(who.home); err == nil && info.IsDir() {
			return who.home, nil
		}
		return "/", nil
	}
	if !filepath.IsAbs(dir) {
		return "", sdk.Permanent(fmt.Errorf("dir %s is not absolute", dir))
	}
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "", fmt.Errorf("dir %s does not exist", dir)
	case err != nil:
		return "", fmt.Errorf("dir: %w", err)
	case !info.IsDir():
		return "", sdk.Permanent(fmt.Errorf("dir %s is no directory", dir))
	}
	return dir, nil
}

// fork starts a main process and tracks it. The lock is held meanwhile, so
// that nobody takes the new process for an orphan.
func (h *Handler) fork(argv []string, attr *os.ProcAttr) (pid int, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p, err := os.StartProcess(argv[0], argv, attr)
	if err != nil {
		return 0, err
	}
	h.mains[p.Pid] = true
	pid = p.Pid
	_ = p.Release() // waited for by number, with the rest of its group
	return pid, nil
}

// untrack is called when a main process was reaped.
func (h *Handler) untrack(pid int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.mains, pid)
}

func (h *Handler) tracked(pid int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.mains[pid]
}

// knows reports whether all of these orphans were met before.
func (h *Handler) knows(nameless []int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !slices.ContainsFunc(nameless, func(pid int) bool { return !h.nameless[pid] })
}

// meet remembers the orphans that there are now, and reports whether there are
// any that no attempt at work can have left, because none is at work.
func (h *Handler) meet(nameless []int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.nameless = make(map[int]bool, len(nameless))
	for _, pid := range nameless {
		h.nameless[pid] = true
	}
	return len(h.mains) == 0 && len(nameless) > 0
}

// graceAfterExit is the most that processes get, after the main one exited by
// itself, between TERM and KILL.
const graceAfterExit = 2 * time.Second
