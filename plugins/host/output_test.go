package host

import (
	"fmt"
	"testing"

	pb "github.com/axctl/ax/plugins/proto"
)

// What a process sends again is looked up in the log at once, however many
// attempts it is of, and what the log has is not written twice.
func TestOutputAgain(t *testing.T) {
	t.Parallel()
	asked := 0
	h := &Host{cfg: Config{Logged: func(of []OutputOf) map[OutputOf]uint64 {
		asked++
		last := map[OutputOf]uint64{}
		for _, o := range of {
			if o.Instance%2 == 0 {
				last[o] = 2
			}
		}
		return last
	}}}
	links := []*link{newLink(&executor{host: h}, nil), newLink(&executor{host: h}, nil)}
	for _, l := range links { // so that it is forgotten
		for i := range maxHave - 50 {
			l.have[fmt.Sprint("earlier ", i)] = 1
		}
	}
	const attempts = 200
	for part := range 2 {
		var ps []printed
		for i := range int64(attempts) {
			for seq := uint64(2*part + 1); seq <= uint64(2*part+2); seq++ {
				ps = append(ps, printed{links[i%3%2], &pb.Chunk{BatchNo: fmt.Sprintf("i-%d-1", i), Instance: i, Attempt: 1, Seq: seq, Again: true}})
			}
		}
		h.recall(ps)
		for _, p := range ps {
			if want := p.chunk.Seq > 2 || p.chunk.Instance%2 != 0; p.link.news(p.chunk) != want {
				t.Errorf("chunk %d of instance %d is news: %v, want %v", p.chunk.Seq, p.chunk.Instance, !want, want)
			}
			if p.link.news(p.chunk) {
				t.Errorf("chunk %d of instance %d is news twice", p.chunk.Seq, p.chunk.Instance)
			}
		}
	}
	if asked != 2 { // the second time since all was forgotten
		t.Errorf("the log was asked %d times", asked)
	}
}
