package storetest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/axctl/ax"
	"github.com/axctl/ax/store/memory"
	"github.com/axctl/ax/store/storetest"
)

func TestFaulty(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	host := ax.Host{Name: "h1", Boot: "b1", StartedMs: 1}
	tests := []struct {
		fault storetest.Fault
		err   error
		there bool // the host joined
	}{
		{storetest.NoFault, nil, true},
		{storetest.Fail, ax.ErrUnavailable, false},
		{storetest.LoseAnswer, ax.ErrUnavailable, true},
		{storetest.Delay, context.Canceled, false},
	}
	for _, tt := range tests {
		f := &storetest.Faulty{Store: memory.New(time.Now), Plan: storetest.FailCall(2, tt.fault)}
		if _, err := f.Changed(ctx); err != nil {
			t.Fatal(err)
		}
		callCtx, cancel := context.WithCancel(ctx)
		if tt.fault == storetest.Delay {
			cancel()
		}
		err := f.Join(callCtx, host)
		cancel()
		if !errors.Is(err, tt.err) {
			t.Errorf("fault %d: error is %v, want %v", tt.fault, err, tt.err)
		}
		hosts, err := f.Hosts(ctx) // reads for people are not counted
		if err != nil || (len(hosts) == 1) != tt.there {
			t.Errorf("fault %d: hosts are %v, %v", tt.fault, hosts, err)
		}
		if f.Calls() != 2 {
			t.Errorf("fault %d: %d calls were counted", tt.fault, f.Calls())
		}
	}
}

func TestFaultyWaits(t *testing.T) {
	t.Parallel()
	waited := false
	f := &storetest.Faulty{
		Store: memory.New(time.Now), Plan: func(_ int, method string) storetest.Fault {
			if method == "Leave" {
				return storetest.Delay
			}
			return storetest.NoFault
		},
		Wait: func(context.Context) { waited = true },
	}
	if err := f.Leave(t.Context(), "h1", "b1", 1); err != nil || !waited {
		t.Errorf("a delayed call: waited %v, error %v", waited, err)
	}
}
