package bus

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"

	"github.com/nats-io/nats.go"

	"thru/internal/fault"
	"thru/internal/sock"
)

// lookupError explains why a name has no addresses.
func lookupError(host string, err error) error {
	if dns, is := errors.AsType[*net.DNSError](err); is && dns.IsNotFound {
		return fault.Failf(sock.LookupHint(err, ""), "bus: %s: %w", fault.Named(host), ErrUnknownHost)
	}
	return fault.Failf(sock.LookupHint(err, "give its address"), "bus: %s: %w: %w", fault.Named(host), ErrUnknownHost, sock.Cause(err))
}

// connectError explains why a TCP connection failed.
func (d dialer) connectError(t target, err error) error {
	var hinted *fault.Error // of the device
	switch {
	case errors.As(err, &hinted):
		return fault.Failf(hinted.Hint, "bus: connecting to %s: %w", t.addr, hinted.Err)
	case sock.Is(err, syscall.ECONNREFUSED):
		return fault.Failf(fmt.Sprintf("check that `thru serve` runs there; its port is %d unless --port changes it", DefaultPort),
			"bus: connecting to %s: %w", t.name(), ErrRefused)
	case sock.Is(err, syscall.EADDRNOTAVAIL) && d.LocalAddr != "":
		return fault.Failf("name an address of this host, of the same family as the end point's", "bus: connecting to %s from %s: %w", t.name(), d.LocalAddr, sock.Cause(err))
	case t.noFamily(err):
		return fault.Failf("use the other address family, or give this host an address and a route",
			"bus: connecting to %s: this host has no %s address or route to it: %w", t.name(), t.family(), ErrFamily)
	case sock.Is(err, syscall.ENETUNREACH), sock.Is(err, syscall.EHOSTUNREACH):
		return fault.Failf("check the address, the route to it and its gateway", "bus: connecting to %s: %w", t.name(), ErrUnreachable)
	case errors.Is(err, syscall.EINVAL) && strings.HasPrefix(t.addr, "[fe80:"):
		return fault.Failf("add the interface to a link-local address: [fe80::1%eth0]", "bus: connecting to %s: %w", t.name(), sock.Cause(err))
	case timedOut(err):
		return d.timeout(t)
	}
	return fault.Failf("", "bus: connecting to %s: %w", t.name(), sock.Cause(err))
}

// noFamily reports whether this host lacks the address family, rather than the
// route: a host without any IPv6 address reports an unreachable network.
func (t target) noFamily(err error) bool {
	if sock.Is(err, syscall.EAFNOSUPPORT) {
		return true
	}
	unreachable := sock.Is(err, syscall.ENETUNREACH) || sock.Is(err, syscall.EADDRNOTAVAIL)
	if !unreachable {
		return false
	}
	for _, ip := range interfaceIPs("") {
		if (ip.To4() != nil) == t.ip.Addr().Is4() && !ip.IsLoopback() && !ip.IsLinkLocalUnicast() {
			return false
		}
	}
	return true
}

func (t target) family() string {
	if t.ip.Addr().Is4() {
		return "IPv4"
	}
	return "IPv6"
}

// name returns the address as given, with the IP address of a host name.
func (t target) name() string {
	if ip := t.ip.String(); canonical(t.addr) != canonical(ip) {
		return fmt.Sprintf("%s (%s)", t.addr, ip)
	}
	return t.addr
}

// timeout returns the error of an address that does not answer.
func (d dialer) timeout(t target) error {
	return fault.Failf("check the address, the firewalls, and whether the host is up",
		"bus: connecting to %s: %w within %v", t.name(), ErrTimeout, d.Timeout)
}

func timedOut(err error) bool {
	var timeout net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()
}

// tlsError explains why TLS failed: no answer, or another protocol.
func (d dialer) tlsError(ctx context.Context, t target, err error) error {
	if timedOut(err) || errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fault.Failf("check whether another program uses that port, or a firewall passes only the first packets",
			"bus: connecting to %s: connected, but %w within %v", t.name(), ErrTimeout, d.Timeout)
	}
	return notThru(t, sock.Cause(err))
}

// notThru returns the error of a port that another program has.
func notThru(t target, err error) error {
	return fault.Failf(fmt.Sprintf("check the port (`thru serve` listens on %d): another program such as iperf3 or a web server uses it, or the end point is full", DefaultPort),
		"bus: connecting to %s: %w: %w", t.name(), ErrNotThru, err)
}

// loginError explains why an agent with the right certificate rejects the login.
func (d dialer) loginError(addr string, err error) error {
	switch {
	case errors.Is(err, nats.ErrAuthorization) && d.Secret == "":
		return fault.Failf("run `thru join NAME` here and paste the join string that `thru serve` prints there",
			"bus: %s requires a join string: %w", addr, ErrSecret)
	case errors.Is(err, nats.ErrAuthorization):
		return fault.Failf("get a new one from `thru serve` there, and run `thru join NAME --replace` here",
			"bus: the join string of %s is not valid: %w", addr, ErrSecret)
	case timedOut(err), errors.Is(err, nats.ErrTimeout):
		return fault.Failf("check the end point (overloaded) and the path (packet loss)", "bus: logging in at %s: %w within %v", addr, ErrTimeout, d.Timeout)
	}
	return fault.Failf("try again: the end point may be full or shutting down", "bus: logging in at %s: %w", addr, err)
}

// furthest returns the error of the address that came closest to success, followed
// by the others.
func furthest(failed []error) error {
	order := []error{ErrCertificate, ErrNotThru, ErrTimeout, ErrRefused, ErrUnreachable, ErrFamily, ErrUnknownHost}
	best := 0
	rank := func(err error) int {
		for i, kind := range order {
			if errors.Is(err, kind) {
				return i
			}
		}
		return len(order)
	}
	for i, err := range failed {
		if rank(err) < rank(failed[best]) {
			best = i
		}
	}
	if len(failed) == 1 {
		return failed[0]
	}
	var others []string
	for i, err := range failed {
		if i != best && err.Error() != failed[best].Error() {
			others = append(others, fault.Plain(err.Error()))
		}
	}
	if len(others) == 0 {
		return failed[best]
	}
	return fmt.Errorf("%w; also %s", failed[best], strings.Join(others, "; "))
}
