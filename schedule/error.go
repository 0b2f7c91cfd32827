package schedule

// Error is one fault in a schedule block.
type Error struct {
	// Attribute names where it is: cron, every, at, timezone or from; "" when
	// it is the block as a whole.
	Attribute string
	Index     int // which of the specs, from 0
	Item      int // which of at's instants, from 0
	Summary   string
	Detail    string
	// Column and Len mark the fault within the attribute's text, in bytes;
	// columns count from 1, Column 0 is the whole text.
	Column, Len int
}

func (e *Error) Error() string {
	if e.Detail == "" {
		return e.Summary
	}
	return e.Summary + ": " + e.Detail
}

// Warning is a remark on a schedule that is right but may not mean what its
// writer thinks. Its fields are those of Error.
type Warning struct {
	Attribute       string
	Summary, Detail string
	Column, Len     int
}
