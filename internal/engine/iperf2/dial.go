package iperf2

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"thru/internal/engine"
	"thru/internal/fault"
	"thru/internal/sock"
)

// dialBudget limits the time to connect all streams together.
const dialBudget = 10 * time.Second

// dialAll opens the streams of a call to the first target that answers. Over UDP nothing answers: it takes the first target with a route.
func dialAll(ctx context.Context, e engine.End) (conns []net.Conn, skipped []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, dialBudget)
	defer cancel()
	var last error
	for _, target := range e.Targets {
		first, err := dialOne(ctx, e, target, 0)
		if fault.Hint(err) != "" { // caused by our own options: another target would fail the same way
			return nil, skipped, err
		}
		if err != nil {
			skipped, last = append(skipped, fmt.Sprintf("%s: %v", target, err)), err
			continue
		}
		conns, err = dialRest(ctx, e, target, first)
		return conns, skipped, err
	}
	return nil, skipped, fault.Failf(sock.LookupHint(last, "check that `iperf -s` runs there with the same -p, and that firewalls allow the port"),
		"iperf2: connecting: %s", strings.Join(skipped, "; "))
}

func dialRest(ctx context.Context, e engine.End, target string, first net.Conn) ([]net.Conn, error) {
	conns, errs := make([]net.Conn, e.Spec.Streams), make([]error, e.Spec.Streams)
	conns[0] = first
	var wg sync.WaitGroup
	for i := 1; i < len(conns); i++ {
		wg.Go(func() { conns[i], errs[i] = dialOne(ctx, e, target, i) })
	}
	wg.Wait()
	for i, err := range errs {
		if err != nil {
			engine.CloseAll(conns)
			return nil, fmt.Errorf("iperf2: opening stream %d of %d: %w", i+1, len(conns), err)
		}
	}
	return conns, nil
}

// dialOne opens stream i.
func dialOne(ctx context.Context, e engine.End, target string, i int) (net.Conn, error) {
	s := e.Spec
	c, err := engine.Dial(ctx, s, s.Protocol, engine.SocketOptions(s, s.Protocol, e.Sends), i, target)
	if err != nil {
		return nil, err
	}
	if tc, ok := c.(*net.TCPConn); ok {
		if err := sock.SetNoDelay(tc, e.Spec.NoDelay); err != nil {
			c.Close()
			return nil, err
		}
	}
	return c, nil
}
