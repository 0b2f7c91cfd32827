package host

import (
	"context"
	"slices"

	pb "github.com/axctl/ax/plugins/proto"
)

// printed is output on its way to the log.
type printed struct {
	link  *link
	chunk *pb.Chunk
}

func (h *Host) printed(l *link, chunks []*pb.Chunk) {
	if len(chunks) == 0 {
		return
	}
	ps := make([]printed, len(chunks))
	for i, c := range chunks {
		ps[i] = printed{l, c}
	}
	h.mu.Lock()
	l.unprinted += len(chunks)
	h.mu.Unlock()
	h.output.put(ps...)
}

// print hands output to the log and grants credit for what is there.
func (h *Host) print(ctx context.Context) {
	for {
		ps := h.output.take(256)
		if ps == nil {
			select {
			case <-h.output.wake:
				continue
			case <-ctx.Done():
				if h.output.empty() {
					return
				}
				continue
			}
		}
		h.recall(ps)
		chunks := make([]OutputChunk, 0, len(ps))
		for _, p := range ps {
			if !p.link.news(p.chunk) {
				continue
			}
			chunks = append(chunks, OutputChunk{
				BatchNo: p.chunk.BatchNo, Instance: p.chunk.Instance, Attempt: int(p.chunk.Attempt),
				Stream: streamName(p.chunk.Stream), AtMs: p.chunk.AtMs, Data: p.chunk.Data, Seq: p.chunk.Seq,
			})
			h.metrics.output.WithLabelValues(p.link.x.cmd.Name).Add(float64(len(p.chunk.Data)))
		}
		if h.cfg.Output != nil && len(chunks) > 0 {
			h.cfg.Output(chunks)
		}
		h.mu.Lock()
		for _, p := range ps {
			p.link.down.credit += uint64(p.chunk.Cost())
			p.link.unprinted--
			p.link.dropRecord()
			p.link.wakeUp()
		}
		h.mu.Unlock()
	}
}

// maxHave bounds what is remembered of one process's output.
const maxHave = 10_000

// recall asks the log once for what it has of all attempts that are sent again
// and of which nothing is known. For each by itself it would be read over and
// over: after a few starts of axd no process would get its output in.
func (h *Host) recall(ps []printed) {
	for _, p := range ps {
		if len(p.link.have) >= maxHave {
			clear(p.link.have) // the log is asked again
		}
	}
	var of []OutputOf
	for _, p := range ps {
		if _, known := p.link.have[p.chunk.BatchNo]; !known && p.chunk.Again && p.chunk.Seq != 0 {
			of = append(of, outputOf(p.chunk))
		}
	}
	if len(of) == 0 || h.cfg.Logged == nil {
		return
	}
	logged := h.cfg.Logged(slices.Compact(of))
	for _, p := range ps {
		if _, known := p.link.have[p.chunk.BatchNo]; !known && p.chunk.Again {
			p.link.have[p.chunk.BatchNo] = logged[outputOf(p.chunk)]
		}
	}
}

func outputOf(c *pb.Chunk) OutputOf { return OutputOf{Instance: c.Instance, Attempt: int(c.Attempt)} }

// news reports whether the log does not have the chunk yet. A process sends the
// chunks of an attempt in their order, and again only what was sent to an
// earlier host, or before it ended.
func (l *link) news(c *pb.Chunk) bool {
	if c.Seq == 0 {
		return true
	}
	have := l.have[c.BatchNo]
	l.have[c.BatchNo] = max(have, c.Seq)
	return c.Seq > have
}

func streamName(s pb.Stream) string {
	switch s {
	case pb.Stream_STREAM_STDOUT:
		return "stdout"
	case pb.Stream_STREAM_STDERR:
		return "stderr"
	default:
		return "note"
	}
}
