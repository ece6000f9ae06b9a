package bus_test

import (
	"net"
	"sync"
	"testing"
	"time"

	"thru/internal/bus"
	"thru/internal/bus/bustest"
)

// carried returns a client over a pipe to a server without a listener.
func carried(t *testing.T, h bus.Handler) (client *bus.Client, far net.Conn, ended <-chan struct{}) {
	t.Helper()
	s, err := bus.Memory()
	if err != nil {
		t.Fatal(err)
	}
	v, err := bus.Serve(s, h)
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := net.Pipe()
	over := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { s.Carry(theirs); close(over) })
	c, err := bus.Over(ours, "host", "test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); wg.Wait(); v.Close(); s.Close() })
	return c, theirs, over
}

// A client of Carry has all the rights of the own process.
func TestCarriedClientIsOwn(t *testing.T) {
	h, isOwn := asksWhose()
	c, _, ended := carried(t, h)
	if _, err := bus.Call(t.Context(), c, bus.Facts, bus.FactsRequest{}); err != nil {
		t.Fatal(err)
	}
	if !isOwn.Load() {
		t.Error("it is taken for a client from the network")
	}
	if c.RemoteAddr() != "host" {
		t.Errorf("its peer is %q", c.RemoteAddr())
	}
	c.Close()
	within(t, ended, "the server is done with a client that has gone")
}

func TestCarriedConnectionBreaks(t *testing.T) {
	c, far, ended := carried(t, bustest.New())
	far.Close()
	within(t, c.Lost(), "the client knows")
	within(t, ended, "the server knows")
}

// within waits for a channel to be closed.
func within(t *testing.T, c <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(10 * time.Second):
		t.Fatalf("not within 10 s: %s", what)
	}
}
