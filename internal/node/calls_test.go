package node

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"thru/internal/bus"
	"thru/internal/engine"
)

// A rejected iperf client is reported.
func TestServersTellOfTheRefused(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	lines := make(chan string, 8)
	d, warnings, err := Calls{IPerf3Port: port}.Open(t.Context(), engine.Listen{Addrs: []string{"127.0.0.1"}}, bus.Limits{},
		func(addr string, reason error) { lines <- addr + ": " + reason.Error() })
	if err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() { defer close(over); d.Serve(ctx, func(engine.Call) {}) }()
	defer func() { cancel(); <-over }()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.Write([]byte("GET / HTTP/1.1\r\nHost: example.com\r\n\r\n"))
	select {
	case s := <-lines:
		if !strings.HasPrefix(s, c.LocalAddr().String()) || !strings.Contains(s, "not an iperf3 client") {
			t.Errorf("unexpected line %q", s)
		}
	case <-time.After(30 * time.Second):
		t.Error("no line was printed")
	}
}
