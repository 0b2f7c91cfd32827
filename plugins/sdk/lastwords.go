package sdk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	pb "github.com/axctl/ax/plugins/proto"
	"google.golang.org/protobuf/proto"
)

// lastWords returns what no host was told, or has not acknowledged: for an
// executor that ends. Attempts whose handlers have not returned end with it, and
// are stopped when it has no process left.
func (e *Executor) lastWords(alone bool) *pb.Up {
	now := e.nowMs()
	e.mu.Lock()
	defer e.mu.Unlock()
	up := &pb.Up{Reports: e.refusals, Chunks: e.queue.left()}
	for _, a := range e.attempts {
		if a.ended == 0 {
			a.result = lost("its handler has not returned")
			a.ended = now
		}
		if a.stopped == 0 && alone {
			a.stopped = now
		}
		r := &pb.Report{
			BatchNo: a.job.BatchNo, StartedMs: a.started,
			OutputBytes: a.out.bytes.Load(), OutputDropped: a.out.dropped.Load(),
		}
		a.fill(r)
		up.Reports = append(up.Reports, r)
	}
	return up
}

// writeLastWords leaves them in the executor's folder for the next host, whole
// or not at all. No job is begun any more: that there is nothing to say says
// something too.
func (e *Executor) writeLastWords(home string, alone bool) error {
	b, err := proto.Marshal(e.lastWords(alone))
	if err != nil {
		return fmt.Errorf("last words: %w", err)
	}
	path := filepath.Join(home, pb.LastWords)
	f, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("last words: %w", err)
	}
	_, err = f.Write(b)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("last words: %w", err)
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return fmt.Errorf("last words: %w", err)
	}
	d, err := os.Open(home)
	if err != nil {
		return fmt.Errorf("last words: %w", err)
	}
	return errors.Join(d.Sync(), d.Close())
}
