package sock

import (
	"fmt"
	"net"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"thru/internal/fault"
	"thru/internal/measure"
)

// Options are set on a socket before it connects or listens, so that the handshake already carries them (window scale, MSS) and no other congestion control
// has set a pacing rate on it.
type Options struct {
	SendBuffer int64  // SO_SNDBUF in bytes as passed to the kernel; 0 leaves autotuning on
	RecvBuffer int64  // SO_RCVBUF likewise
	Congestion string // TCP_CONGESTION
	MSS        int    // TCP_MAXSEG
	NoDelay    bool   // TCP_NODELAY; false turns off Go's default of "on"
	DSCP       int    // upper six bits of TOS and traffic class
	Device     string // SO_BINDTODEVICE: an interface or VRF
	// DontFragment makes the kernel refuse datagrams above the path MTU (IP_MTU_DISCOVER).
	DontFragment bool
	ReuseAddr    bool // SO_REUSEADDR: a fixed source port may be reused at once, towards another port
	// LongestRetry is the longest time between two retransmissions of a segment (TCP_RTO_MAX_MS since Linux 6.15, and on all versions
	// TCP_THIN_LINEAR_TIMEOUTS: the first retransmissions of a connection that sends little are evenly spaced). Other systems double the time up to minutes.
	LongestRetry time.Duration
	UserTimeout  time.Duration // as in SetUserTimeout
	// Arrivals makes the kernel timestamp arriving packets, for Arrival.
	Arrivals bool
}

// Control applies o; it is a function for net.Dialer and net.ListenConfig.
func (o Options) Control(network, _ string, c syscall.RawConn) error {
	var err error
	if cerr := c.Control(func(fd uintptr) { err = o.apply(fd, strings.HasSuffix(network, "6")) }); cerr != nil {
		return fmt.Errorf("sock: accessing the socket: %w", cerr)
	}
	return err
}

// apply sets each option; its error names the option and what would work.
func (o Options) apply(fd uintptr, ipv6 bool) error {
	steps := []struct {
		name string
		want bool
		set  func() error
	}{
		{"bind to device " + o.Device, o.Device != "", func() error { return setDevice(fd, o.Device) }},
		{"congestion control " + o.Congestion, o.Congestion != "", func() error { return setCongestion(fd, o.Congestion) }},
		{"SO_REUSEADDR", o.ReuseAddr, func() error { return setReuseAddr(fd) }},
		{"SO_SNDBUF", o.SendBuffer > 0, func() error { return setSendBuffer(fd, int(o.SendBuffer)) }},
		{"SO_RCVBUF", o.RecvBuffer > 0, func() error { return setRecvBuffer(fd, int(o.RecvBuffer)) }},
		{"TCP_MAXSEG", o.MSS > 0, func() error { return setMSS(fd, o.MSS) }},
		{"don't fragment", o.DontFragment, func() error { return setDontFragment(fd, ipv6) }},
		{"TCP_USER_TIMEOUT", o.UserTimeout > 0, func() error { return setUserTimeout(fd, o.UserTimeout) }},
		{"TCP_RTO_MAX_MS", o.LongestRetry > 0, func() error { return setLongestRetry(fd, o.LongestRetry) }},
		{"SO_TIMESTAMPNS", o.Arrivals, func() error { return setArrivals(fd, 1) }},
		{"DSCP", o.DSCP > 0, func() error { return setDSCP(fd, o.DSCP, ipv6) }},
	}
	for _, s := range steps {
		if !s.want {
			continue
		}
		if err := s.set(); err != nil {
			return o.explain(s.name, err)
		}
	}
	return nil
}

// explain turns the kernel's refusal of an option into an error with a hint.
func (o Options) explain(name string, err error) error {
	hint := "omit the option, or run as root"
	switch {
	case strings.HasPrefix(name, "congestion"):
		hint = "use one that this host has: " + strings.Join(AvailableCongestion(), " ") + " (`modprobe tcp_" + o.Congestion + "` as root may add it)"
		if avail := AvailableCongestion(); slices.Contains(avail, o.Congestion) {
			hint = "allow it for this user: sysctl net.ipv4.tcp_allowed_congestion_control"
		}
	case name == "TCP_MAXSEG":
		hint = "use an MSS of 88 to 32767 bytes"
	case strings.HasPrefix(name, "bind"):
		hint = "list the devices: ip link; kernels before 5.7 require root"
		if runtime.GOOS != "linux" {
			hint = "name an address of the device instead: --bind or -B ADDRESS"
		}
	}
	return fault.Failf(hint, "sock: setting %s: %w", name, err)
}

// SetUserTimeout ends a TCP connection whose peer acknowledges nothing for that time (TCP_USER_TIMEOUT, tcp(7)); on systems without it this does nothing.
func SetUserTimeout(c *net.TCPConn, d time.Duration) error {
	return Reach(c, func(fd uintptr) error { return setUserTimeout(fd, d) })
}

// InfoOf returns the kernel's current TCP_INFO of a connection; empty where it is not available.
func InfoOf(c net.Conn) measure.TCPInfo {
	return Read(c, func(fd uintptr) measure.TCPInfo {
		b := make([]byte, TCPInfoSize)
		return ParseTCPInfo(b[:ReadTCPInfo(fd, b)])
	})
}

// SetNoDelay sets TCP_NODELAY; Go turns it on for every connection.
func SetNoDelay(c *net.TCPConn, on bool) error {
	if err := c.SetNoDelay(on); err != nil {
		return fmt.Errorf("sock: setting TCP_NODELAY: %w", err)
	}
	return nil
}

// Granted holds the options that the kernel reports for a connected socket.
type Granted struct {
	SendBuffer, RecvBuffer int // bytes; BufferOverhead times the usable size
	Congestion             string
	MSS                    int
}
