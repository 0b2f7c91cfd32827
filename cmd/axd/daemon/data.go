package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/prometheus/client_golang/prometheus"
)

// dataFolder sees that the data folder is the one that this axd has opened. One
// that somebody removes, or puts another one in the place of, takes nothing from
// what runs, and all that is written from then on is in no folder.
type dataFolder struct {
	dir     string
	lock    os.FileInfo // of the lock file in it
	log     *slog.Logger
	lost    prometheus.Gauge
	problem string // as it was told last
}

func newDataFolder(dir string, log *slog.Logger, reg prometheus.Registerer) (*dataFolder, error) {
	info, err := os.Stat(filepath.Join(dir, "lock"))
	if err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	d := &dataFolder{dir: dir, lock: info, log: log, lost: prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "ax_daemon_data_folder_lost", Help: "1 while the data folder is not the one that this axd has opened.",
	})}
	reg.MustRegister(d.lost)
	return d, nil
}

// check returns what is wrong with the folder, "" nothing. A change is logged.
func (d *dataFolder) check() string {
	info, err := os.Stat(filepath.Join(d.dir, "lock"))
	problem := ""
	switch {
	case errors.Is(err, fs.ErrNotExist):
		problem = fmt.Sprintf("its data folder %s was removed while it ran, or what is in it: output and reports are kept nowhere", d.dir)
	case err != nil:
		problem = fmt.Sprintf("its data folder cannot be looked at: %v", err)
	case !os.SameFile(info, d.lock):
		problem = fmt.Sprintf("its data folder %s is another one than it has open: output and reports are kept nowhere", d.dir)
	}
	if problem == d.problem {
		return problem
	}
	value := 0.0
	switch {
	case problem == "":
		d.log.Info("the data folder is back", "data", d.dir)
	default:
		value = 1
		d.log.Error("the data folder is not what it was", "data", d.dir, "problem", problem,
			"hint", "put it back, or start axd again: it makes a new one, without the logs of the old one")
	}
	d.lost.Set(value)
	d.problem = problem
	return problem
}
