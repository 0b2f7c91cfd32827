package host

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	pb "github.com/axctl/ax/plugins/proto"
	"google.golang.org/protobuf/proto"
)

// record is what the data folder has of an executor's process: all that the
// next host needs to know it again. It is written before the process can get
// work, to a folder of its own, where its standard error and its last words are
// too.
type record struct {
	Name      string `json:"name"` // of the executor
	PID       int    `json:"pid"`
	Start     uint64 `json:"start"` // of the process, in ticks since the kernel's start
	Kernel    string `json:"kernel"`
	Socket    string `json:"socket"`
	SocketDir string `json:"socket_dir"`
	Secret    string `json:"secret"`
	SHA256    string `json:"sha256"` // of its program
	Path      string `json:"path"`
	Setup     string `json:"setup,omitempty"` // Command.setup; "" from an older axd, which did not say

	home string // the folder
}

// Names in an executor's folder.
const (
	recordName = "executor.json"
	stderrName = "stderr"
	homePrefix = "x-" // of the folders' own names
)

func (r record) write() error {
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(r.home, recordName), b)
}

// writeFile replaces a file, whole or not at all.
func writeFile(path string, b []byte) error {
	f, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// readRecords reads the records in a host's folder. A folder without a whole one
// is of a process that never got work.
func readRecords(dir string) []record {
	homes, _ := filepath.Glob(filepath.Join(dir, homePrefix+"*"))
	var rs []record
	for _, home := range homes {
		b, err := os.ReadFile(filepath.Join(home, recordName))
		r := record{home: home}
		if err == nil {
			err = json.Unmarshal(b, &r)
		}
		if err == nil && r.PID > 0 {
			rs = append(rs, r)
		}
	}
	return rs
}

// lastWords reads what a process that is gone has left, nil when that is
// nothing or no whole message.
func (r record) lastWords() *pb.Up {
	b, err := os.ReadFile(filepath.Join(r.home, pb.LastWords))
	var up pb.Up
	if err != nil || proto.Unmarshal(b, &up) != nil {
		return nil
	}
	return &up
}

func (r record) remove() {
	_ = os.RemoveAll(r.home)
	if r.SocketDir != "" {
		_ = os.RemoveAll(r.SocketDir)
	}
}

// nextEpoch counts the starts of hosts in a folder. The number is good, though
// the next start may get it too, when it cannot be written: executors take a
// host that is as old as the last one, and of two axd on one folder the second
// does not start.
func nextEpoch(dir string) (uint64, error) {
	path := filepath.Join(dir, "epoch")
	b, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 1, err
	}
	n, _ := strconv.ParseUint(strings.TrimSpace(string(b)), 10, 64)
	n++
	return n, writeFile(path, strconv.AppendUint(nil, n, 10))
}

// boots are the starts of axd whose jobs are known: an executor that was given
// any has a record in the folder until all ends are acknowledged.
const (
	bootsName = "boots"
	maxBoots  = 32
)

// joinBoots returns the earlier boots of whose jobs the folder's records tell all,
// and adds this one. They are of the same store (a restored one knows other jobs)
// and of the same start of the kernel (a power cut may have taken records).
func joinBoots(dir, incarnation, boot string) (known map[string]bool, err error) {
	path := filepath.Join(dir, bootsName)
	b, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	mark := incarnation + " " + kernelBoot() + " "
	known = map[string]bool{}
	var lines []string
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSuffix(line, "\n")
		if before, ok := strings.CutPrefix(line, mark); ok && before != "" {
			known[before] = true
			lines = append(lines, line)
		}
	}
	lines = append(lines[max(0, len(lines)-maxBoots+1):], mark+boot)
	return known, writeFile(path, []byte(strings.Join(lines, "\n")+"\n"))
}

// kernelBoot identifies this start of the kernel: pids of another mean nothing.
func kernelBoot() string {
	b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b))
}
