package bus

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"

	"thru/internal/fault"
)

// dialTime is the default time limit of Dial: name lookup, connections, TLS and
// login together.
const dialTime = 5 * time.Second

// dialStagger is the head start of an address over the next one, as in RFC 8305:
// an address that drops packets costs this time only.
const dialStagger = 250 * time.Millisecond

// DialConfig says how to reach an agent.
type DialConfig struct {
	Addrs     []string // HOST:PORT, tried in order; every address of a name
	Secret    Secret
	Device    string // device or VRF to send from (Linux)
	LocalAddr string // address to send from
	Timeout   time.Duration
	Family    int    // 4, 6, or 0 for either
	Version   string // of this thru, sent to the agent
	// Pin accepts or rejects the SHA-256 of the agent's certificate, after the agent
	// has proved to hold its key and before anything is sent to it. Addr is as
	// in Addrs. It is not called concurrently.
	Pin func(addr string, sum [32]byte) error
}

// target is one address to try.
type target struct {
	addr string // as in DialConfig.Addrs
	ip   netip.AddrPort
}

// attempt is the result of trying a target.
type attempt struct {
	target
	conn *tls.Conn
	err  error
}

// Dial connects to the first of the addresses at which the right agent
// answers. Errors wrap one of the Err values of this package and carry a hint.
func Dial(ctx context.Context, c DialConfig) (*Client, error) {
	if c.Pin == nil || len(c.Addrs) == 0 {
		return nil, errors.New("bus: dialling: an address and a pin are needed")
	}
	if c.Timeout <= 0 {
		c.Timeout = dialTime
	}
	began := time.Now()
	won, err := c.reach(ctx)
	if err != nil {
		return nil, err
	}
	client, err := connect(won.conn, c.Secret, max(c.Timeout-time.Since(began), time.Second))
	if err != nil {
		return nil, dialer{DialConfig: c}.loginError(won.addr, err)
	}
	client.addr, client.version = won.ip.String(), c.Version
	return client, nil
}

// reach connects to the first address with the right certificate, and sends
// nothing yet.
func (c DialConfig) reach(ctx context.Context) (attempt, error) {
	limited, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	d := dialer{DialConfig: c, control: socketControl(c.Device)}
	targets, failed := d.resolve(limited)
	won, failed := d.race(limited, targets, failed)
	if ctx.Err() != nil && won.conn == nil {
		return won, fmt.Errorf("bus: dialling: %w", context.Cause(ctx))
	}
	if won.conn == nil {
		return won, furthest(failed)
	}
	return won, nil
}

// dialer is the state of one Dial.
type dialer struct {
	DialConfig
	control func(network, address string, c syscall.RawConn) error
}

// resolve turns addresses into targets of the wanted family.
func (d dialer) resolve(ctx context.Context) (targets []target, failed []error) {
	for _, addr := range d.Addrs {
		host, port, err := net.SplitHostPort(addr)
		if err != nil {
			failed = append(failed, fault.Usagef("name it as HOST:PORT", "bus: %q is not an address: %w", addr, err))
			continue
		}
		n, err := net.DefaultResolver.LookupPort(ctx, "tcp", port)
		if err != nil {
			failed = append(failed, fault.Usagef("ports go from 1 to 65535", "bus: %q has no port: %w", addr, err))
			continue
		}
		ips, err := d.lookup(ctx, host)
		if err != nil {
			failed = append(failed, err)
		}
		for _, ip := range ips {
			targets = append(targets, target{addr, netip.AddrPortFrom(ip, uint16(n))})
		}
	}
	return targets, failed
}

// lookup returns the addresses of a host in the wanted family.
func (d dialer) lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	found := []netip.Addr{}
	if ip, err := netip.ParseAddr(host); err == nil {
		found = append(found, ip)
	} else if found, err = net.DefaultResolver.LookupNetIP(ctx, "ip", host); err != nil {
		return nil, lookupError(host, err)
	}
	var fit []netip.Addr
	for _, ip := range found {
		ip = ip.Unmap()
		if d.Family == 0 || ip.Is4() == (d.Family == 4) {
			fit = append(fit, ip)
		}
	}
	if len(fit) == 0 {
		return nil, fault.Failf(fmt.Sprintf("leave out -%d, or name an IPv%d address", d.Family, d.Family),
			"bus: %s has no IPv%d address: %w", host, d.Family, ErrFamily)
	}
	return fit, nil
}

// race tries the targets, each with a head start over the next, until one answers
// with the right certificate. All attempts have ended when it returns.
func (d dialer) race(ctx context.Context, targets []target, failed []error) (attempt, []error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make(chan attempt)
	running, next := 0, 0
	launch := func() {
		if next < len(targets) {
			t := targets[next]
			next, running = next+1, running+1
			go func() { results <- d.try(ctx, t) }()
		}
	}
	var won attempt
	for launch(); running > 0; {
		var stagger <-chan time.Time
		if next < len(targets) && won.conn == nil {
			stagger = time.After(dialStagger)
		}
		select {
		case <-stagger:
			launch()
			continue
		case a := <-results:
			running--
			switch a = d.settle(a, won.conn != nil); {
			case a.conn != nil:
				won = a
				cancel() // ends the others at once
			case won.conn == nil:
				failed = append(failed, a.err)
				launch()
			}
		}
	}
	return won, failed
}

// settle checks an attempt that connected: it closes late ones and those with the
// wrong certificate.
func (d dialer) settle(a attempt, late bool) attempt {
	if a.err == nil && late {
		a.err = context.Canceled
	} else if a.err == nil {
		a.err = d.Pin(a.addr, sha256.Sum256(a.conn.ConnectionState().PeerCertificates[0].Raw))
	}
	if a.err != nil && a.conn != nil {
		a.conn.Close()
		a.conn = nil
	}
	return a
}

// try connects to one target and makes the TLS handshake.
func (d dialer) try(ctx context.Context, t target) attempt {
	dial := net.Dialer{Control: d.control, KeepAliveConfig: keepAlive()}
	if d.LocalAddr != "" {
		local, err := netip.ParseAddr(d.LocalAddr)
		if err != nil {
			return attempt{t, nil, fault.Usagef("name an address of this host", "bus: %q is not a source address: %w", d.LocalAddr, err)}
		}
		dial.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(local, 0))
	}
	conn, err := dial.DialContext(ctx, "tcp", t.ip.String())
	if err != nil {
		return attempt{t, nil, d.connectError(t, err)}
	}
	secure := tls.Client(conn, clientTLS())
	if err := secure.HandshakeContext(ctx); err != nil {
		conn.Close()
		return attempt{t, nil, d.tlsError(ctx, t, err)}
	}
	if secure.ConnectionState().NegotiatedProtocol != alpn {
		secure.Close()
		return attempt{t, nil, notThru(t, errors.New("it uses TLS for another protocol"))}
	}
	return attempt{t, secure, nil}
}

// clientTLS checks neither names nor authorities: Pin checks the certificate
// itself. The handshake still proves that the peer holds its key.
func clientTLS() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13, NextProtos: []string{alpn}, InsecureSkipVerify: true}
}
