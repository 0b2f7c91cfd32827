package daemon

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/axctl/ax"
	"github.com/axctl/ax/store"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newStore makes an empty store and returns a daemon's configuration for it.
func newStore(t *testing.T) Config {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ax.db")
	st, err := store.Open(t.Context(), "sqlite:"+path, store.Options{Create: true, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	return Config{StoreURL: "sqlite:" + path, Log: slog.New(slog.DiscardHandler)}
}

func refused(t *testing.T, cfg Config, want string) {
	t.Helper()
	d, err := New(t.Context(), cfg)
	if err == nil {
		d.Close()
		t.Fatalf("it opened; want %q", want)
	}
	if !strings.Contains(err.Error(), want) {
		t.Errorf("%v; want %q", err, want)
	}
}

// One axd works on a store, and one in a data folder; the second is told so,
// and after the first is closed another may.
func TestOnlyOneDaemon(t *testing.T) {
	t.Parallel()
	cfg := newStore(t)
	first, err := New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	refused(t, cfg, "another axd is using the store")
	linked := cfg
	linked.StoreURL, linked.DataDir = "sqlite:"+filepath.Join(t.TempDir(), "link.db"), t.TempDir()
	if err := os.Symlink(strings.TrimPrefix(cfg.StoreURL, "sqlite:"), strings.TrimPrefix(linked.StoreURL, "sqlite:")); err != nil {
		t.Fatal(err)
	}
	refused(t, linked, "another axd is using the store")
	hard := cfg
	hard.StoreURL, hard.DataDir = cfg.StoreURL+".hard", t.TempDir()
	path := strings.TrimPrefix(hard.StoreURL, "sqlite:")
	if err := os.Link(strings.TrimPrefix(cfg.StoreURL, "sqlite:"), path); err != nil {
		t.Fatal(err)
	}
	refused(t, hard, "has another name (a hard link)")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	other := newStore(t)
	other.DataDir = filepath.Join(filepath.Dir(strings.TrimPrefix(cfg.StoreURL, "sqlite:")), "ax.data")
	refused(t, other, "another axd is using the data folder")
	first.Close()
	again, err := New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
}

// A daemon that cannot join its store, or never runs, leaves no file open.
func TestClosesAllItOpened(t *testing.T) {
	t.Parallel()
	for name, run := range map[string]bool{"never ran": false, "cannot join": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := newStore(t)
			folder := filepath.Dir(strings.TrimPrefix(cfg.StoreURL, "sqlite:"))
			d, err := New(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			if len(openFiles(t, folder)) == 0 {
				t.Fatal("it has nothing open")
			}
			if run {
				ended, end := context.WithCancel(t.Context())
				end()
				if err := d.Run(ended, t.Context()); err == nil {
					t.Error("it joined")
				}
			}
			d.Close()
			if left := openFiles(t, folder); len(left) > 0 {
				t.Errorf("left open: %v", left)
			}
		})
	}
}

// openFiles returns the files in folder that this process has open.
func openFiles(t *testing.T, folder string) []string {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	var open []string
	for _, fd := range fds {
		if path, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && strings.HasPrefix(path, folder) {
			open = append(open, path)
		}
	}
	return open
}

// Another program that looks at the lock for a moment does not keep axd away.
func TestAGlanceAtTheLock(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_SH); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(lockPause, func() { f.Close() })
	release, err := lockFile(path, "it")
	if err != nil {
		t.Fatal(err)
	}
	release()
}

func TestRefusesToListenOffLoopback(t *testing.T) {
	t.Parallel()
	cfg := newStore(t)
	cfg.Listen = "0.0.0.0:0"
	refused(t, cfg, "TLS")
}

func TestDataFolderIsPrivate(t *testing.T) {
	t.Parallel()
	cfg := newStore(t)
	d, err := New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for _, dir := range []string{d.cfg.DataDir, d.socketDir(), filepath.Join(d.cfg.DataDir, "logs")} {
		info, err := os.Stat(dir)
		if err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", dir, info.Mode(), err)
		}
	}
}

// The host's row says where axd is and, after a clean stop, that it left.
func TestJoinsAndLeaves(t *testing.T) {
	t.Parallel()
	cfg := newStore(t)
	cfg.Name, cfg.Version, cfg.Listen = "h1", "v1", "127.0.0.1:0"
	d, err := New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	drain, begin := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- d.Run(t.Context(), drain) }()
	begin()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	hosts, err := d.Store().Hosts(t.Context())
	if err != nil || len(hosts) != 1 {
		t.Fatalf("%v, %v", hosts, err)
	}
	h := hosts[0]
	if h.Name != "h1" || h.Version != "v1" || h.PID != os.Getpid() || h.DataDir != d.cfg.DataDir || h.LeftMs == 0 || h.Listen != d.Addr() {
		t.Errorf("%+v", h)
	}
}

// What each part counts is served.
func TestMetrics(t *testing.T) {
	t.Parallel()
	cfg := newStore(t)
	cfg.Listen = "127.0.0.1:0"
	d, err := New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	drain, begin := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- d.Run(t.Context(), drain) }()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Get("http://" + d.Addr() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(answer.Body)
	if err := errors.Join(err, answer.Body.Close()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ax_runtime_store_faults_total", "ax_claim_", "ax_dispatch_", "ax_retention_rows_total", "ax_upkeep_writer_longest_hold_seconds"} {
		if !strings.Contains(string(text), "\n"+name) {
			t.Errorf("no %s", name)
		}
	}
	begin()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// A host that is found under another name is the same one: it was killed as h1
// and does not run as that any more.
func TestRenamedHost(t *testing.T) {
	t.Parallel()
	cfg := newStore(t)
	cfg.Name = "h2"
	st, err := store.Open(t.Context(), cfg.StoreURL, store.Options{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(st.Join(t.Context(), ax.Host{Name: "h1", Boot: "b1", StartedMs: 1}), st.Close()); err != nil {
		t.Fatal(err)
	}
	d, err := New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	drain, begin := context.WithCancel(t.Context())
	begin()
	if err := d.Run(t.Context(), drain); err != nil {
		t.Fatal(err)
	}
	hosts, err := d.Store().Hosts(t.Context())
	if err != nil || len(hosts) != 2 || hosts[0].Name != "h1" || hosts[0].LeftMs == 0 || hosts[1].LeftMs == 0 {
		t.Errorf("%+v, %v", hosts, err)
	}
}

// A drain ends although another process holds the store's lock and does not let
// go: only that axd has left is not written then.
func TestEndsWhileTheStoreIsLocked(t *testing.T) {
	t.Parallel()
	cfg := newStore(t)
	d, err := New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	drain, begin := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- d.Run(t.Context(), drain) }()
	joined := func() bool {
		hosts, err := d.Store().Hosts(t.Context())
		return err == nil && len(hosts) == 1
	}
	for limit := time.After(10 * time.Second); !joined(); {
		select {
		case <-time.After(5 * time.Millisecond):
		case <-limit:
			t.Fatal("it does not join")
		}
	}
	lockStore(t, strings.TrimPrefix(cfg.StoreURL, "sqlite:"))
	begin()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(leaveWithin + 10*time.Second):
		t.Fatal("it does not end")
	}
}

// shut is a store that nobody can join for some tries.
type shut struct {
	store.Store
	tries atomic.Int32
}

func (s *shut) Join(ctx context.Context, h ax.Host) error {
	if s.tries.Add(-1) >= 0 {
		return ax.ErrUnavailable
	}
	return s.Store.Join(ctx, h)
}

// A start on a store that cannot be written, as on a full disk, is no failure:
// axd is there, and is recorded when it can be.
func TestStartsWhileTheStoreCannotBeWritten(t *testing.T) {
	t.Parallel()
	d, err := New(t.Context(), newStore(t))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	s := &shut{Store: d.store}
	s.tries.Store(2)
	d.store = s
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx, t.Context()) }()
	for limit := time.After(20 * time.Second); ; {
		hosts, err := s.Hosts(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(hosts) == 1 {
			break
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-limit:
			t.Fatal("it is never recorded")
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// lockStore takes SQLite's write lock (WAL_WRITE_LOCK, byte 120 of the index of
// its log) until the test ends.
func lockStore(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path+"-shm", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	lock := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart, Start: 120, Len: 1}
	for unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &lock) != nil {
		select {
		case <-time.After(time.Millisecond):
		case <-t.Context().Done():
			t.Fatal("the lock is not to be had")
		}
	}
}
