package storetest_test

import (
	"context"
	"errors"
	"reflect"
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

// Every call of a port that the runtime, an apply or a person's command works
// with can be at fault: one that is added to a port and not to Faulty would
// never be in the simulation. What people only read is left out.
func TestFaultyCoversEveryPort(t *testing.T) {
	t.Parallel()
	reads := map[string]bool{"Close": true}
	for _, port := range []reflect.Type{reflect.TypeFor[ax.Queries](), reflect.TypeFor[ax.Auditor]()} {
		for i := range port.NumMethod() {
			reads[port.Method(i).Name] = true
		}
	}
	store := reflect.TypeFor[storetest.Store]()
	asked := 0
	for i := range store.NumMethod() {
		name := store.Method(i).Name
		if reads[name] || store.Method(i).Type.NumIn() == 0 { // it asks no store
			continue
		}
		var planned []string
		f := &storetest.Faulty{Plan: func(_ int, method string) storetest.Fault { // there is no store below
			planned = append(planned, method)
			return storetest.Fail
		}}
		method := reflect.ValueOf(f).MethodByName(name)
		args := []reflect.Value{reflect.ValueOf(t.Context())}
		for p := 1; p < method.Type().NumIn(); p++ {
			args = append(args, reflect.Zero(method.Type().In(p)))
		}
		func() {
			defer func() {
				if recover() != nil {
					t.Errorf("%s goes to the store without a fault", name)
				}
			}()
			results := method.Call(args)
			if err, _ := results[len(results)-1].Interface().(error); !errors.Is(err, ax.ErrUnavailable) {
				t.Errorf("%s fails with %v", name, err)
			}
		}()
		asked++
		if len(planned) != 1 || planned[0] != name {
			t.Errorf("%s asks for the faults of %v", name, planned)
		}
	}
	if asked < 20 {
		t.Errorf("%d calls of ports, which are too few", asked)
	}
}
