package host

import (
	"testing"

	"github.com/axctl/ax"
	pb "github.com/axctl/ax/plugins/proto"
)

// What two inventories in a row do not list is lost; what was given after the
// first was asked for, or ended meanwhile, is not.
func TestInventoriesThatDoNotList(t *testing.T) {
	t.Parallel()
	h := New(Config{Executors: []Command{{Name: "x"}}})
	l := newLink(h.executors[0], &process{})
	give := func(b string) {
		h.entries[b] = &entry{job: &pb.Job{BatchNo: b}, known: true}
		h.entries[b].give(l)
	}
	lost := func() (batchNos []string) {
		for _, r := range h.outbox.take(10) {
			if r.Kind == ax.ReportLost {
				batchNos = append(batchNos, r.BatchNo)
			}
		}
		return batchNos
	}
	ask := func() {
		l.down.inventory = true
		if l.take() == nil {
			t.Fatal("nothing is asked")
		}
	}
	give("known")
	give("forgotten")
	give("back")
	ask()
	give("young")
	h.compare(l, &pb.Inventory{Running: []string{"known"}})
	if got := lost(); len(got) != 0 || len(l.missing) != 2 {
		t.Errorf("after one inventory: lost %v, missing %v", got, l.missing)
	}
	ask()
	h.compare(l, &pb.Inventory{Running: []string{"known", "young"}, Ended: []string{"back"}})
	if got := lost(); len(got) != 1 || got[0] != "forgotten" {
		t.Errorf("after two: lost %v", got)
	}
	ask()
	h.compare(l, &pb.Inventory{Running: []string{"known", "young", "back"}})
	if got := lost(); len(got) != 0 || len(l.missing) != 0 {
		t.Errorf("after three: lost %v, missing %v", got, l.missing)
	}
}
