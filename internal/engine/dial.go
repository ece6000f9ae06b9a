package engine

import (
	"context"
	"io"
	"net"
	"net/netip"
	"syscall"
	"time"

	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/sock"
)

// Socket options and dialling that all engines share, whatever protocol they speak.

// DatagramBuffer is the receive buffer in bytes where the user sets none, because a datagram that arrives at a full buffer is lost; the kernel grants what it
// allows. A sender without a rate keeps the system's default: datagrams in the queue of its own host fill that buffer before the queue overflows, so the
// sender runs at the rate of the link and not at the rate at which the host drops.
const DatagramBuffer = 4 << 20

// SocketOptions returns the options that a Spec sets on a data socket of a protocol, for a sender or a receiver. As in iperf3, -w sets both buffers of an end.
func SocketOptions(s measure.Spec, protocol string, sends bool) sock.Options {
	window := s.Window.Recv
	if sends {
		window = s.Window.Send
	}
	o := sock.Options{SendBuffer: window, RecvBuffer: window, DSCP: s.DSCP}
	if protocol == measure.TCP {
		o.Congestion, o.MSS = s.Congestion, s.MSS
		return o
	}
	o.DontFragment = s.DontFragment
	if window == 0 {
		o.RecvBuffer = DatagramBuffer
		if s.Rate > 0 || s.Search {
			o.SendBuffer = DatagramBuffer
		}
	}
	return o
}

// Dialer returns a dialer with the source address, device and port of a Spec. Port 0 leaves the source port to the kernel.
func Dialer(s measure.Spec, protocol string, o sock.Options, port int, timeout time.Duration) (*net.Dialer, error) {
	// UDP sockets do not share a port: the kernel would give one to two streams.
	o.Device, o.ReuseAddr = s.BindDev, port != 0 && protocol == measure.TCP
	d := &net.Dialer{Timeout: timeout, Control: o.Control}
	d.SetMultipathTCP(false) // Go's dialer uses MPTCP where the kernel supports it: not the requested protocol
	if s.BindAddr == "" && port == 0 {
		return d, nil
	}
	var ip net.IP
	var zone string
	if s.BindAddr != "" {
		a, err := netip.ParseAddr(s.BindAddr)
		if err != nil {
			return nil, fault.Usagef("give -B an address of this host, such as 10.0.0.1", "engine: binding to %q: %w", s.BindAddr, err)
		}
		ip, zone = a.AsSlice(), a.Zone()
	}
	if d.LocalAddr = (&net.TCPAddr{IP: ip, Port: port, Zone: zone}); protocol == measure.UDP {
		d.LocalAddr = &net.UDPAddr{IP: ip, Port: port, Zone: zone}
	}
	return d, nil
}

// DialTime limits one connect: SYN retransmissions after 1 and 3 s fit in.
const DialTime = 4 * time.Second

// Dial opens data connection index of a test to a target.
func Dial(ctx context.Context, s measure.Spec, protocol string, o sock.Options, index int, target string) (net.Conn, error) {
	d, err := Dialer(s, protocol, o, SourcePort(s, index), DialTime)
	if err != nil {
		return nil, err
	}
	c, err := d.DialContext(ctx, Network(protocol, s.Family), target)
	return c, DialHint(s, err)
}

// CloseAll closes the connections that are not nil.
func CloseAll[C interface {
	comparable
	io.Closer
}](conns []C) {
	var none C
	for _, c := range conns {
		if c != none {
			c.Close()
		}
	}
}

// SourcePort returns the source port of stream index; 0 leaves it to the kernel.
func SourcePort(s measure.Spec, index int) int {
	if s.BindPort == 0 {
		return 0
	}
	return s.BindPort + index
}

// Network returns the name in package net for a protocol and an IP family.
func Network(protocol string, family int) string {
	switch family {
	case 4:
		return protocol + "4"
	case 6:
		return protocol + "6"
	}
	return protocol
}

// DialHint adds a hint to errors that this end's own settings cause; it returns other errors without a hint.
func DialHint(s measure.Spec, err error) error {
	switch {
	case sock.Is(err, syscall.EADDRNOTAVAIL) && s.BindPort != 0:
		return fault.Failf("wait, or choose another --cport: the kernel keeps connections with that source port for a minute; and give -B an address of this host",
			"engine: dialling: %w", err)
	case sock.Is(err, syscall.EADDRNOTAVAIL):
		return fault.Failf("give -B an address of this host (`ip addr`)", "engine: dialling: %w", err)
	case sock.Is(err, syscall.EADDRINUSE):
		return fault.Failf("choose another --cport: another connection uses that source port", "engine: dialling: %w", err)
	}
	return sock.Cause(err)
}

// IdleRTT returns the kernel's round-trip time of a TCP connection before any test traffic; nil where the kernel does not report it.
func IdleRTT(c net.Conn) *measure.RTT {
	info := sock.InfoOf(c)
	if info.RTT == nil {
		return nil
	}
	smooth := *info.RTT
	r := &measure.RTT{Min: smooth, Median: smooth, Max: smooth, Samples: 1}
	if info.MinRTT != nil {
		r.Min = min(*info.MinRTT, smooth)
	}
	return r
}
