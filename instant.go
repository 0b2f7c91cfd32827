package ax

import "time"

// FormatInstant writes an instant, ms since epoch UTC, as RFC 3339 with the
// offset of zone, and with milliseconds where there are any. All documents and
// texts have instants in this form but those laid out for people.
func FormatInstant(ms int64, zone *time.Location) string {
	return time.UnixMilli(ms).In(zone).Format("2006-01-02T15:04:05.999Z07:00")
}
