package planner

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/axctl/ax"
)

// MaxPlanBytes bounds a saved plan.
const MaxPlanBytes = 256 << 20

// Encode writes p as one line of JSON, for a file or for -json.
func Encode(p *Plan) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(p); err != nil {
		return nil, fmt.Errorf("encode plan: %w", err)
	}
	if b.Len() > MaxPlanBytes {
		return nil, fmt.Errorf("encode plan: %d bytes are more than a plan may have (%d)", b.Len(), MaxPlanBytes)
	}
	return b.Bytes(), nil
}

// Decode reads what Encode wrote. It refuses what is no plan, a plan of a
// format it does not know, and one that is not valid, such as one that was
// edited.
func Decode(data []byte) (*Plan, error) {
	if len(data) > MaxPlanBytes {
		return nil, fmt.Errorf("read plan: %d bytes are more than a plan may have (%d)", len(data), MaxPlanBytes)
	}
	var head struct {
		FormatVersion string `json:"format_version"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, again(fmt.Errorf("read plan: this is no plan that axctl plan -out wrote: %w", err))
	}
	if head.FormatVersion == "" {
		return nil, again(errors.New("read plan: this is no plan that axctl plan -out wrote: it has no format_version"))
	}
	ours, _, _ := strings.Cut(FormatVersion, ".")
	if major, _, _ := strings.Cut(head.FormatVersion, "."); major != ours {
		return nil, again(fmt.Errorf("read plan: it has format %s, this axctl reads %s", head.FormatVersion, FormatVersion))
	}
	p := &Plan{}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(p); err != nil {
		return nil, again(fmt.Errorf("read plan (format %s): %w", head.FormatVersion, err))
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, again(errors.New("read plan: something follows the plan"))
	}
	if err := p.compact(); err != nil {
		return nil, again(fmt.Errorf("read plan: %w", err))
	}
	if err := p.Valid(); err != nil {
		return nil, again(fmt.Errorf("read plan: it is not as axctl plan wrote it: %w", err))
	}
	return p, nil
}

func again(err error) error {
	return ax.WithHint(err, "make the plan again: axctl plan -out FILE")
}

// compact undoes what a program that lays JSON out anew has done to the raw
// parts; their hashes are over the bytes without blanks.
func (p *Plan) compact() error {
	for i := range p.Changes {
		c := &p.Changes[i]
		raws := []*json.RawMessage{&c.Definition}
		for j := range c.Attributes {
			raws = append(raws, &c.Attributes[j].Before, &c.Attributes[j].After)
		}
		for _, raw := range raws {
			if *raw == nil {
				continue
			}
			var b bytes.Buffer
			if err := json.Compact(&b, *raw); err != nil {
				return fmt.Errorf("%s: %w", c.Address, err)
			}
			*raw = b.Bytes()
		}
	}
	return nil
}

// Valid checks that p holds together: what every plan of Diff does, and no
// edited one is likely to.
func (p *Plan) Valid() error {
	var counts Counts
	for i, c := range p.Changes {
		if i > 0 && p.Changes[i-1].Address >= c.Address {
			return fmt.Errorf("%s is out of order", c.Address)
		}
		if err := c.valid(p); err != nil {
			return fmt.Errorf("%s: %w", c.Address, err)
		}
		switch c.Action {
		case ax.ActionCreate:
			counts.Added++
		case ax.ActionUpdate:
			counts.Changed++
		default:
			counts.Deleted++
		}
	}
	counts.Unchanged = len(p.Read) - counts.Changed - counts.Deleted
	switch {
	case p.Stack == "":
		return errors.New("it names no stack")
	case p.MadeAtMs <= 0:
		return errors.New("it has no made_at_ms")
	case counts != p.Counts:
		return fmt.Errorf("it counts %+v and has %+v", p.Counts, counts)
	case p.PlanHash != planHash(p):
		return errors.New("plan_hash is not that of its changes")
	}
	return nil
}

func (c *PlannedChange) valid(p *Plan) error {
	if c.Address != ax.Address(c.Kind, c.Name) || c.Kind != ax.KindTask && c.Kind != ax.KindPlugin {
		return fmt.Errorf("kind %q and name %q are not its own", c.Kind, c.Name)
	}
	read, there := p.Read[c.Address]
	switch c.Action {
	case ax.ActionCreate:
		if there || c.FromVersion != 0 || c.ToVersion < 1 {
			return errors.New("it is created, but was there")
		}
	case ax.ActionUpdate, ax.ActionDelete:
		onlyRow := c.Action == ax.ActionUpdate && c.ToVersion == read
		if !there || c.FromVersion != read || c.ToVersion != read+1 && !onlyRow {
			return fmt.Errorf("v%d to v%d does not follow the version read, v%d", c.FromVersion, c.ToVersion, read)
		}
	default:
		return fmt.Errorf("unknown action %q", c.Action)
	}
	if gone := c.Action == ax.ActionDelete; gone != (c.Definition == nil) || gone != (c.Hash == "") {
		return errors.New("a definition belongs to every change but a delete")
	}
	if sum := sha256.Sum256(c.Definition); c.Definition != nil && hex.EncodeToString(sum[:]) != c.Hash {
		return errors.New("its definition is not that of its hash")
	}
	return c.Effects.valid(p.MadeAtMs)
}

// valid checks that no effect lies in the past, and all are in order.
func (e *Effects) valid(nowMs int64) error {
	if !e.Moved && e.NextFireAfterMs != e.NextFireBeforeMs {
		return errors.New("the next fire differs, but has not moved")
	}
	at := e.NextFireAfterMs
	if e.Moved && at != 0 && at <= nowMs {
		return errors.New("the next fire is in the past")
	}
	for _, f := range e.Then {
		if f.DueMs <= at {
			return errors.New("firings are out of order")
		}
		at = f.DueMs
	}
	return nil
}
