package iperf2

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"time"

	"thru/internal/engine"
	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/sock"
)

// Bounds of connecting: of one target, and of all streams together.
const (
	dialTime   = 4 * time.Second
	dialBudget = 10 * time.Second
)

// dialAll opens the streams of a call to the first target that answers. Over
// UDP nothing answers: the first target that the kernel has a route to is taken.
func dialAll(ctx context.Context, e engine.End) (conns []net.Conn, skipped []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, dialBudget)
	defer cancel()
	for _, target := range e.Targets {
		first, err := dialOne(ctx, e, target, 0)
		if fault.Hint(err) != "" { // of our own options: another target would fail alike
			return nil, skipped, err
		}
		if err != nil {
			skipped = append(skipped, fmt.Sprintf("%s: %v", target, err))
			continue
		}
		conns, err = dialRest(ctx, e, target, first)
		return conns, skipped, err
	}
	return nil, skipped, fault.Failf("does `iperf -s` run there, with -p of the same number, and does a firewall let the port through?",
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
			closeAll(conns)
			return nil, fmt.Errorf("iperf2: opening stream %d of %d: %w", i+1, len(conns), err)
		}
	}
	return conns, nil
}

func closeAll(conns []net.Conn) {
	for _, c := range conns {
		if c != nil {
			c.Close()
		}
	}
}

// dialOne opens stream i.
func dialOne(ctx context.Context, e engine.End, target string, i int) (net.Conn, error) {
	d := net.Dialer{Timeout: dialTime, Control: options(e).Control}
	d.SetMultipathTCP(false)
	local, err := localAddr(e.Spec, i)
	if err != nil {
		return nil, err
	}
	if local != nil {
		d.LocalAddr = local
	}
	network := e.Spec.Protocol
	if e.Spec.Family != 0 {
		network += fmt.Sprint(e.Spec.Family)
	}
	c, err := d.DialContext(ctx, network, target)
	switch {
	case errors.Is(err, syscall.EADDRNOTAVAIL), errors.Is(err, syscall.EADDRINUSE):
		return nil, fault.Failf("-B wants an address of this host (`ip addr`), and --cport a port that is free there", "iperf2: connecting: %w", err)
	case err != nil:
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

// datagramBuffer is asked for where the user asks for none: a datagram that
// finds its receiver's buffer full is lost.
const datagramBuffer = 4 << 20

// options are what a dialling end asks of its sockets. As in iperf, -w sets
// both buffers.
func options(e engine.End) sock.Options {
	s := e.Spec
	window := s.Window.Recv
	if e.Sends {
		window = s.Window.Send
	}
	o := sock.Options{SendBuffer: window, RecvBuffer: window, Congestion: s.Congestion, MSS: s.MSS, DSCP: s.DSCP,
		Device: s.BindDev, ReuseAddr: s.BindPort != 0}
	if s.Protocol == measure.UDP {
		o.Congestion, o.MSS, o.ReuseAddr, o.DontFragment = "", 0, false, s.DontFragment
		if window == 0 {
			o.SendBuffer, o.RecvBuffer = datagramBuffer, datagramBuffer
		}
	}
	return o
}

// localAddr is where stream i is to begin; nil for the kernel's choice.
func localAddr(s measure.Spec, i int) (net.Addr, error) {
	if s.BindAddr == "" && s.BindPort == 0 {
		return nil, nil
	}
	from, p := netip.IPv6Unspecified(), 0
	if s.BindPort != 0 {
		p = s.BindPort + i
	}
	var err error
	if s.BindAddr != "" {
		if from, err = netip.ParseAddr(s.BindAddr); err != nil {
			return nil, fault.Usagef("-B wants an address of this host, such as 10.0.0.1", "iperf2: binding to %q: %w", s.BindAddr, err)
		}
	}
	ip := net.IP(from.AsSlice())
	if s.BindAddr == "" {
		ip = nil
	}
	if s.Protocol == measure.UDP {
		return &net.UDPAddr{IP: ip, Port: p, Zone: from.Zone()}, nil
	}
	return &net.TCPAddr{IP: ip, Port: p, Zone: from.Zone()}, nil
}

// idleRTT is what the handshake of a TCP connection took; nil where the kernel does not say.
func idleRTT(c net.Conn) *measure.RTT {
	tc, ok := c.(*net.TCPConn)
	if !ok {
		return nil
	}
	raw, err := tc.SyscallConn()
	if err != nil {
		return nil
	}
	var info measure.TCPInfo
	raw.Control(func(fd uintptr) {
		b := make([]byte, sock.TCPInfoSize)
		info = sock.ParseTCPInfo(b[:sock.ReadTCPInfo(fd, b)])
	})
	if info.RTTUs == nil {
		return nil
	}
	ns := int64(*info.RTTUs) * 1000
	return &measure.RTT{Min: ns, Median: ns, Max: ns, Samples: 1}
}
