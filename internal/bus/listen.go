package bus

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"syscall"
	"time"

	"thru/internal/fault"
	"thru/internal/sock"
)

// keepAlive detects on an idle connection that the peer's machine is gone.
func keepAlive() net.KeepAliveConfig {
	return net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: 5 * time.Second, Count: 3}
}

// controlMSS fits the least MTU that IPv6 allows (RFC 8200, section 5): control
// works where a path drops larger packets, so that thru can detect that.
const controlMSS = 1280 - 40 - 20

// longestRetry bounds the TCP retransmission timeout: the least that Linux accepts.
// Behind a longer queue some retransmissions are spurious, which costs little:
// they are few and short.
const longestRetry = time.Second

// socketControl sets the options of a control connection. Control shares the path
// with test traffic, where packet loss may be high for a while: so it retransmits
// at short intervals, and the kernel gives up after the lease, not before.
func socketControl(device string) func(network, address string, c syscall.RawConn) error {
	return func(network, address string, c syscall.RawConn) error {
		// Some systems cannot limit the MSS; then control packets are as large as the MTU.
		_ = sock.Options{MSS: controlMSS}.Control(network, address, c)
		_ = sock.Options{LongestRetry: longestRetry, UserTimeout: writeTime}.Control(network, address, c)
		return sock.Options{Device: device}.Control(network, address, c)
	}
}

// listen opens each address. An address that cannot be used is a warning if another
// can.
func listen(ctx context.Context, addrs []string, device string) ([]net.Listener, []string, error) {
	conf := net.ListenConfig{Control: socketControl(device), KeepAliveConfig: keepAlive()}
	conf.SetMultipathTCP(false) // multipath TCP is Go's default, and its sockets reject the options above (Linux)
	var open []net.Listener
	var warnings []string
	var first error
	for _, a := range addrs {
		l, err := conf.Listen(ctx, "tcp", a)
		if err == nil {
			open = append(open, l)
			continue
		}
		warnings = append(warnings, fmt.Sprintf("control cannot listen on %s: %v", a, sock.Cause(err)))
		if first == nil {
			first = fault.Failf(listenHint(err), "bus: listening on %s: %w", a, sock.Cause(err))
		}
	}
	if len(open) == 0 && first == nil {
		first = fault.Usagef("name one with --bind", "bus: no address to listen on")
	}
	if len(open) == 0 {
		return nil, nil, first
	}
	return open, warnings, nil
}

// optimize sets the options of control connections on an open listener, whose connections inherit them.
func optimize(l net.Listener) {
	if t, ok := l.(*net.TCPListener); ok {
		if raw, err := t.SyscallConn(); err == nil {
			_ = socketControl("")("tcp", l.Addr().String(), raw) // without them control is slower on a path with loss
		}
	}
}

func listenHint(err error) string {
	if own := fault.Hint(err); own != "" { // of the device
		return own
	}
	switch {
	case sock.Is(err, syscall.EADDRINUSE):
		return "choose another port with --port: another program, or another `thru serve`, uses this one"
	case sock.Is(err, syscall.EADDRNOTAVAIL):
		return "choose an address of this host with --bind"
	case errors.Is(err, syscall.EACCES):
		return "choose another port with --port: ports below 1024 need root"
	}
	return "choose another address with --bind, or another port with --port"
}

// reachable lists HOST:PORT for the listeners; it expands a wildcard to the
// addresses of the device, or of all interfaces.
func reachable(listeners []net.Listener, device string) []string {
	var all []string
	for _, l := range listeners {
		tcp, ok := l.Addr().(*net.TCPAddr)
		if !ok {
			continue
		}
		hosts := []string{tcp.IP.String()}
		if tcp.Zone != "" {
			hosts[0] += "%" + tcp.Zone
		}
		if tcp.IP.IsUnspecified() {
			hosts = hostAddrs(device, tcp.IP.To4() != nil)
		}
		for _, h := range hosts {
			if a := net.JoinHostPort(h, strconv.Itoa(tcp.Port)); !slices.Contains(all, a) {
				all = append(all, a)
			}
		}
	}
	return all[:min(len(all), maxJoinAddrs)]
}

// hostAddrs lists the addresses of a device, or of this host: IPv4 first, and
// loopback only where there is nothing else.
func hostAddrs(device string, onlyIPv4 bool) []string {
	var v4, v6, loop []string
	for _, ip := range interfaceIPs(device) {
		switch {
		case ip.IsLoopback() && ip.To4() != nil:
			loop = append(loop, ip.String())
		case ip.IsLoopback() || !ip.IsGlobalUnicast():
		case ip.To4() != nil:
			v4 = append(v4, ip.String())
		case !onlyIPv4:
			v6 = append(v6, ip.String())
		}
	}
	if all := append(v4, v6...); len(all) > 0 {
		return all
	}
	return loop
}

// interfaceIPs returns the addresses of a device; of all interfaces if it is
// empty or has none, as a VRF may.
func interfaceIPs(device string) []net.IP {
	addrs, _ := net.InterfaceAddrs()
	if i, err := net.InterfaceByName(device); err == nil {
		if own, err := i.Addrs(); err == nil && len(own) > 0 {
			addrs = own
		}
	}
	var ips []net.IP
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok {
			ips = append(ips, n.IP)
		}
	}
	return ips
}

// HostAddrs lists the addresses of a device, or of this host: IPv4 first, and
// loopback only where there is nothing else.
func HostAddrs(device string) []string { return hostAddrs(device, false) }
