// Package logs keeps what attempts print, in segment files of the data folder,
// and reads it back, also while it is being written. It owns DIR/logs and
// nothing else; the store knows only how many bytes there were.
//
//	logs/20261130/1764514800000-000001.seg   records, appended
//	logs/20261130/1764514800000-000001.idx   written when the segment is closed
//
// One file for each run would use up inodes long before the disk is full, so
// many attempts share a segment: records carry the instance they belong to.
// What is written is authoritative as far as its checksum holds; a torn tail
// (power cut, kill) ends the reading of that segment and harms nothing else.
//
// # Implementation
//
// A record is a 29-byte header (length, CRC-32C of the rest, instance, attempt,
// stream, instant), the number that its executor gave the chunk, if any, and the
// bytes as they were printed. A segment's name begins
// with its first instant in ms, so a reader opens only the segments of the time
// an instance ran, and of those only the part that the index names. A segment
// that was never closed has no index and is read whole; NewWriter closes it.
package logs
