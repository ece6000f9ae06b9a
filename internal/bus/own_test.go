package bus_test

import (
	"context"
	"sync/atomic"
	"testing"

	"thru/internal/bus"
	"thru/internal/bus/bustest"
)

// asksWhose notes whether the last request was of the own process.
type asksWhose struct {
	bus.Handler
	own *atomic.Bool
}

func (a asksWhose) Facts(ctx context.Context, client string, m bus.FactsRequest) (bus.FactsReply, error) {
	a.own.Store(bus.IsOwn(ctx))
	return a.Handler.Facts(ctx, client, m)
}

func TestOwnRequests(t *testing.T) {
	h := asksWhose{bustest.New(), &atomic.Bool{}}
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
		if _, err := c.client.Facts(t.Context(), bus.FactsRequest{}); err != nil {
			t.Fatal(err)
		}
		if h.own.Load() != c.own {
			t.Errorf("a request of own %v is taken for own %v", c.own, h.own.Load())
		}
	}
}
