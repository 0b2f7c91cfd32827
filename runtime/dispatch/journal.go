package dispatch

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"

	"github.com/axctl/ax"
)

// Sizes of the journal.
const (
	// MaxJournalBytes is the size at which no attempt starts any more.
	MaxJournalBytes = 1 << 30
	// emptyAt is the size at which a journal of which the store has everything
	// is emptied; compactAt the one at which it is written anew.
	emptyAt   = 1 << 20
	compactAt = 64 << 20
	// maxRecordBytes bounds one record, so that a damaged length is recognised.
	maxRecordBytes = 1 << 20
)

// Journal keeps reports until the store has them: an append-only file of
// records, each a length, a CRC-32C and a report as JSON. A record that a crash
// cut short ends the file. Records that the store has already do no harm, since
// replay passes over them. It is used by one goroutine at a time.
type Journal struct {
	path string
	file *os.File
	size int64 // where the next record goes: the end of the last whole one
	buf  []byte
}

// OpenJournal opens or makes the journal at path and returns the reports it
// holds, in order.
func OpenJournal(path string) (*Journal, []ax.Report, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, nil, ax.WithHint(fmt.Errorf("open report journal: %w", err),
			"check that the data folder %s belongs to the user axd runs as", filepath.Dir(path))
	}
	j := &Journal{path: path, file: f}
	reports, err := j.read()
	if err == nil {
		err = errors.Join(f.Truncate(j.size), syncFolder(filepath.Dir(path)))
	}
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("read report journal: %w", err), f.Close())
	}
	return j, reports, nil
}

// Append writes reports and returns when they are on disk. After an error none
// of them counts as written.
func (j *Journal) Append(reports []ax.Report) error {
	b, err := encode(j.buf[:0], reports)
	if err != nil {
		return err
	}
	j.buf = b
	if _, err := j.file.WriteAt(b, j.size); err != nil {
		return errors.Join(fmt.Errorf("write report journal: %w", err), j.file.Truncate(j.size))
	}
	if err := j.file.Sync(); err != nil {
		return errors.Join(fmt.Errorf("sync report journal: %w", err), j.file.Truncate(j.size))
	}
	j.size += int64(len(b))
	return nil
}

// Shrink gives space back when it is worth it: live are the reports that the
// store does not have yet.
func (j *Journal) Shrink(live []ax.Report) error {
	switch {
	case len(live) == 0 && j.size >= emptyAt:
		return j.Reset()
	case j.size >= compactAt:
		return j.rewrite(live)
	default:
		return nil
	}
}

// Reset empties the journal; the store has everything.
func (j *Journal) Reset() error {
	if err := j.file.Truncate(0); err != nil {
		return fmt.Errorf("empty report journal: %w", err)
	}
	j.size = 0
	return nil
}

// Size returns the journal's length in bytes.
func (j *Journal) Size() int64 { return j.size }

// Close closes the file.
func (j *Journal) Close() error { return j.file.Close() }

// rewrite replaces the file by one that holds live only. A crash leaves either
// of them.
func (j *Journal) rewrite(live []ax.Report) error {
	b, err := encode(nil, live)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(j.path+".new", os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("compact report journal: %w", err)
	}
	_, err = f.WriteAt(b, 0)
	err = errors.Join(err, f.Sync())
	if err == nil {
		err = os.Rename(f.Name(), j.path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("compact report journal: %w", err), f.Close())
	}
	// From here on the new file is the one that a start finds, even if the
	// folder's fsync fails.
	old := j.file
	j.file, j.size = f, int64(len(b))
	if err := errors.Join(syncFolder(filepath.Dir(j.path)), old.Close()); err != nil {
		return fmt.Errorf("compact report journal: %w", err)
	}
	return nil
}

// read returns the whole records and sets size to their end.
func (j *Journal) read() ([]ax.Report, error) {
	b, err := io.ReadAll(j.file)
	if err != nil {
		return nil, err
	}
	var reports []ax.Report
	for {
		rest := b[j.size:]
		if len(rest) < 8 {
			return reports, nil
		}
		n, sum := binary.BigEndian.Uint32(rest), binary.BigEndian.Uint32(rest[4:])
		if n > maxRecordBytes || int(n) > len(rest)-8 {
			return reports, nil
		}
		body := rest[8 : 8+n]
		var r ax.Report
		if crc32.Checksum(body, castagnoli) != sum || json.Unmarshal(body, &r) != nil {
			return reports, nil
		}
		reports = append(reports, r)
		j.size += 8 + int64(n)
	}
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func encode(b []byte, reports []ax.Report) ([]byte, error) {
	for _, r := range reports {
		body, err := json.Marshal(r)
		if err != nil {
			return nil, fmt.Errorf("encode report of %s: %w", r.BatchNo, err)
		}
		if len(body) > maxRecordBytes {
			return nil, fmt.Errorf("report of %s has %d bytes", r.BatchNo, len(body))
		}
		b = binary.BigEndian.AppendUint32(b, uint32(len(body)))
		b = binary.BigEndian.AppendUint32(b, crc32.Checksum(body, castagnoli))
		b = append(b, body...)
	}
	return b, nil
}

func syncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
