package bus_test

import (
	"context"
	"sync/atomic"
	"testing"

	"thru/internal/bus"
	"thru/internal/bus/bustest"
)

// asksWhose returns a fake that records whether its last caller was in its own process.
func asksWhose() (*bustest.Handler, *atomic.Bool) {
	h, own := bustest.New(), &atomic.Bool{}
	h.On = func(ctx context.Context, _ bustest.Call) error {
		own.Store(bus.IsOwn(ctx))
		return nil
	}
	return h, own
}

func TestOwnRequests(t *testing.T) {
	h, isOwn := asksWhose()
	s, _ := serve(t, h, bus.ServerConfig{})
	own, err := s.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	for _, c := range []struct {
		client *bus.Client
		own    bool
	}{{own, true}, {dial(t, s), false}, {own, true}} {
		if _, err := bus.Call(t.Context(), c.client, bus.Facts, bus.FactsRequest{}); err != nil {
			t.Fatal(err)
		}
		if isOwn.Load() != c.own {
			t.Errorf("a request of own %v is taken for own %v", c.own, isOwn.Load())
		}
	}
}
