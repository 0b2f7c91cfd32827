package dispatch

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/axctl/ax"
	"github.com/axctl/ax/failpoint"
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
// records, each a length, a CRC-32C and a report as JSON. What is damaged, as by
// a crash that cut the last record short, is passed over. Records that the store
// has already do no harm, since replay passes over them. It is used by one
// goroutine at a time.
type Journal struct {
	path string
	file *os.File
	size int64 // where the next record goes: the end of the last whole one
	buf  []byte
}

// OpenJournal opens or makes the journal at path and returns the reports it
// holds, in order. Damage is logged.
func OpenJournal(path string, log *slog.Logger) (*Journal, []ax.Report, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, nil, ax.WithHint(fmt.Errorf("open report journal: %w", err),
			"check that the data folder %s belongs to the user axd runs as", filepath.Dir(path))
	}
	j := &Journal{path: path, file: f}
	reports, lost, err := j.read()
	if lost > 0 {
		log.Warn("the report journal is damaged; an attempt whose end was in the damaged part is taken for lost",
			"path", path, "bytes", lost, "reports_read", len(reports))
	}
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
	failpoint.Hit(failpoint.JournalAppend)
	if _, err := j.file.WriteAt(b, j.size); err != nil {
		return errors.Join(fmt.Errorf("write report journal: %w", err), j.file.Truncate(j.size))
	}
	failpoint.Hit(failpoint.JournalSync)
	if err := j.file.Sync(); err != nil {
		return errors.Join(fmt.Errorf("sync report journal: %w", err), j.file.Truncate(j.size))
	}
	failpoint.Hit(failpoint.JournalSynced)
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

// read returns the whole records and sets size to the end of the last one. It
// looks for the next one behind what is damaged; lost is how many bytes are in
// no record.
func (j *Journal) read() (reports []ax.Report, lost int64, err error) {
	info, err := j.file.Stat()
	if err != nil {
		return nil, 0, err
	}
	r := bufio.NewReaderSize(j.file, headerBytes+maxRecordBytes)
	at, lost := int64(0), info.Size()
	for {
		report, n, err := nextRecord(r)
		switch {
		case errors.Is(err, io.EOF):
			return reports, lost, nil
		case err != nil:
			return nil, 0, err
		case n == 0:
			_, _ = r.Discard(1) // it was seen just now
			at++
		default:
			_, _ = r.Discard(n)
			at += int64(n)
			j.size = at
			lost -= int64(n)
			reports = append(reports, report)
		}
	}
}

// headerBytes is the length of a record's length and sum.
const headerBytes = 8

// nextRecord returns the record at which r stands and its length, 0 when there
// is none; r stays. A report begins with a brace and is text, which is far too
// large as a length: nothing within a record looks like the start of one. The
// error is io.EOF when too little for a record is left.
func nextRecord(r *bufio.Reader) (report ax.Report, n int, err error) {
	header, err := r.Peek(headerBytes + 1)
	if err != nil {
		return report, 0, err
	}
	size, sum := binary.BigEndian.Uint32(header), binary.BigEndian.Uint32(header[4:])
	if size > maxRecordBytes || header[headerBytes] != '{' {
		return report, 0, nil
	}
	record, err := r.Peek(headerBytes + int(size))
	switch {
	case errors.Is(err, io.EOF):
		return report, 0, nil
	case err != nil:
		return report, 0, err
	}
	body := record[headerBytes:]
	if crc32.Checksum(body, castagnoli) != sum || json.Unmarshal(body, &report) != nil {
		return ax.Report{}, 0, nil
	}
	return report, len(record), nil
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
