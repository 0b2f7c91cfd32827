package host

import (
	"github.com/axctl/ax"
	pb "github.com/axctl/ax/plugins/proto"
)

// Signal implements ax.Executors. An attempt that is not with its executor yet
// is asked again later.
func (h *Host) Signal(orders []ax.SignalOrder) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, o := range orders {
		if e, ok := h.entries[o.BatchNo]; ok && e.state == sent {
			e.link.down.signals = append(e.link.down.signals, &pb.Signal{BatchNo: o.BatchNo, Signal: string(o.Signal)})
			e.link.wakeUp()
		}
	}
}

// said passes on what running attempts say beside their reports.
func (h *Host) said(x *executor, up *pb.Up) {
	if len(up.Progress)+len(up.Answers) == 0 {
		return
	}
	reports := make([]ax.Report, 0, len(up.Progress)+len(up.Answers))
	for _, p := range up.Progress {
		percent := float64(ax.NoPercent)
		if p.Percent != nil {
			percent = min(max(*p.Percent, 0), 100)
		}
		reports = append(reports, ax.Report{
			BatchNo: p.BatchNo, Kind: ax.ReportProgress, Executor: x.cmd.Name,
			Progress: &ax.Progress{AtMs: p.AtMs, Percent: percent, Text: p.Text},
		})
	}
	for _, a := range up.Answers {
		reports = append(reports, ax.Report{
			BatchNo: a.BatchNo, Kind: ax.ReportSignal, Executor: x.cmd.Name,
			Signal: ax.Signal(a.Signal), AtMs: a.AtMs, Error: a.Refused,
		})
	}
	h.outbox.put(reports...)
}
