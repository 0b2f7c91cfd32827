package logs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// Stream says where a chunk came from.
type Stream byte

// The streams.
const (
	Stdout Stream = 1
	Stderr Stream = 2
	Note   Stream = 3 // from ax, about the output: "1048576 bytes dropped"
)

// String returns the stream's name on the wire and on the screen.
func (s Stream) String() string {
	switch s {
	case Stdout:
		return "stdout"
	case Stderr:
		return "stderr"
	case Note:
		return "note"
	default:
		return fmt.Sprintf("stream %d", byte(s))
	}
}

// Chunk is some bytes that one attempt printed, in order.
type Chunk struct {
	Instance int64
	Attempt  int
	Stream   Stream
	AtMs     int64 // when they arrived
	Data     []byte
	// Seq is the number that the attempt's executor gave the chunk, from 1: by
	// it a chunk that is sent again is known. 0: none.
	Seq uint64
}

// MaxChunk is the most bytes one chunk may carry.
const MaxChunk = 1 << 20

const (
	headerSize = 29
	seqSize    = 8
	numbered   = 0x80 // flag of the stream's byte: the number precedes the data
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// errTorn ends the reading of a segment: its tail is not written yet, or never
// will be.
var errTorn = errors.New("torn record")

// appendRecord appends c's record to b.
func appendRecord(b []byte, c Chunk) []byte {
	at := len(b)
	size, stream := len(c.Data), byte(c.Stream)
	if c.Seq != 0 {
		size, stream = size+seqSize, stream|numbered
	}
	b = binary.BigEndian.AppendUint32(b, uint32(size))
	b = binary.BigEndian.AppendUint32(b, 0)
	b = binary.BigEndian.AppendUint64(b, uint64(c.Instance))
	b = binary.BigEndian.AppendUint32(b, uint32(c.Attempt))
	b = append(b, stream)
	b = binary.BigEndian.AppendUint64(b, uint64(c.AtMs))
	if c.Seq != 0 {
		b = binary.BigEndian.AppendUint64(b, c.Seq)
	}
	b = append(b, c.Data...)
	binary.BigEndian.PutUint32(b[at+4:], crc32.Checksum(b[at+8:], castagnoli))
	return b
}

// readRecord reads one record. It returns io.EOF at a clean end and errTorn at
// any other; n is the record's size in the file.
func readRecord(r io.Reader) (c Chunk, n int64, err error) {
	var h [headerSize]byte
	switch _, err := io.ReadFull(r, h[:]); {
	case errors.Is(err, io.EOF):
		return Chunk{}, 0, io.EOF
	case errors.Is(err, io.ErrUnexpectedEOF):
		return Chunk{}, 0, errTorn
	case err != nil:
		return Chunk{}, 0, err
	}
	size := binary.BigEndian.Uint32(h[0:])
	if size > MaxChunk+seqSize {
		return Chunk{}, 0, errTorn
	}
	c = Chunk{
		Instance: int64(binary.BigEndian.Uint64(h[8:])),
		Attempt:  int(binary.BigEndian.Uint32(h[16:])),
		Stream:   Stream(h[20] &^ numbered),
		AtMs:     int64(binary.BigEndian.Uint64(h[21:])),
		Data:     make([]byte, size),
	}
	if _, err := io.ReadFull(r, c.Data); err != nil {
		return Chunk{}, 0, errTorn
	}
	sum := crc32.Update(crc32.Checksum(h[8:], castagnoli), castagnoli, c.Data)
	if sum != binary.BigEndian.Uint32(h[4:]) {
		return Chunk{}, 0, errTorn
	}
	if h[20]&numbered != 0 {
		if size < seqSize {
			return Chunk{}, 0, errTorn
		}
		c.Seq, c.Data = binary.BigEndian.Uint64(c.Data), c.Data[seqSize:]
	}
	return c, int64(headerSize) + int64(size), nil
}
