package bus_test

import (
	"context"
	"testing"
	"time"

	"thru/internal/bus"
	"thru/internal/bus/bustest"
)

// TestLease ends a silent client, with its connection, and not earlier.
func TestLease(t *testing.T) {
	h := bustest.New()
	s, v := serve(t, h, bus.ServerConfig{})
	nc, _, err := stranger(t, s, strangerID) // sends no keepalives
	if err != nil {
		t.Fatal(err)
	}
	v.EndSilent(time.Hour)
	if h.GoneTimes(strangerID) != 0 || nc.IsClosed() {
		t.Error("a client was ended before its lease was over")
	}
	v.EndSilent(0)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := h.WaitGone(ctx, strangerID); err != nil {
		t.Fatal(err)
	}
	v.EndSilent(0)
	if n := h.GoneTimes(strangerID); n != 1 {
		t.Errorf("Gone was called %d times", n)
	}
}

// TestLeaseIsKept: a client without requests stays, by its keepalives.
func TestLeaseIsKept(t *testing.T) {
	t.Parallel()
	h := bustest.New()
	c, _ := overTCP(t, h)
	id := clientID(t, c, h)
	select {
	case <-c.Lost():
		t.Error(c.Err())
	case <-time.After(13 * time.Second):
	}
	if _, err := c.Hello(t.Context()); err != nil || h.GoneTimes(id) != 0 {
		t.Error(err)
	}
}

// BenchmarkInProcess measures the cost of an agent in the own process, until Hello.
func BenchmarkInProcess(b *testing.B) {
	for b.Loop() {
		c, err := bus.InProcess(bustest.New())
		if err != nil {
			b.Fatal(err)
		}
		if _, err := c.Hello(b.Context()); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		c.Close()
		b.StartTimer()
	}
}
