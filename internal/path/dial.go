package path

import (
	"bufio"
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"time"

	"thru/internal/fault"
	"thru/internal/host"
	"thru/internal/sock"
)

// Timeouts of the dialling end.
const (
	probeTime  = 30 * time.Second // for the whole probe
	dialTime   = 3 * time.Second  // for one target to answer and accept the token
	dialBudget = 10 * time.Second // for all targets
	replyTime  = 5 * time.Second  // for the answer to one request
)

// link is the TCP connection of the dialling end.
type link struct {
	conn          *net.TCPConn
	in            *bufio.Reader
	tcp           tcpState // state right after the handshake
	local, remote netip.AddrPort
}

// connect dials the targets in order. It uses the first connection that passes greet.
func connect(ctx context.Context, d Dial, greet func(*link) error) (*link, error) {
	if len(d.Targets) == 0 {
		return nil, fault.Failf("", "path: dialling: no target address")
	}
	dialer, err := d.dialer()
	if err != nil {
		return nil, err
	}
	var skipped []string
	each := min(dialTime, dialBudget/time.Duration(len(d.Targets)))
	for _, target := range d.Targets {
		l, err := dialOne(ctx, d, dialer, target, each, greet)
		if err == nil {
			return l, nil
		}
		if fault.Hint(err) != "" { // caused by our own options: another target would fail the same way
			return nil, err
		}
		skipped = append(skipped, fmt.Sprintf("%s: %v", target, err))
	}
	return nil, fault.Failf("let the firewall pass TCP and UDP to these ports, or use others: thru serve --data-ports FIRST-LAST",
		"path: no connection for the probe: %s", strings.Join(skipped, "; "))
}

// dialer returns a dialer with the source address and device of d.
func (d Dial) dialer() (*net.Dialer, error) {
	dialer := &net.Dialer{Control: sock.Options{Device: d.Device}.Control}
	dialer.SetMultipathTCP(false) // not the protocol to probe
	if d.Source == "" {
		return dialer, nil
	}
	a, err := netip.ParseAddr(d.Source)
	if err != nil {
		return nil, fault.Usagef("set --bind to an address of this host, such as 10.0.0.1", "path: binding to %q: %w", d.Source, err)
	}
	dialer.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(a, 0))
	return dialer, nil
}

// dialOne dials one target within a time limit.
func dialOne(ctx context.Context, d Dial, dialer *net.Dialer, target string, limit time.Duration, greet func(*link) error) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	network := "tcp"
	if d.Family == 4 || d.Family == 6 {
		network = fmt.Sprintf("tcp%d", d.Family)
	}
	c, err := dialer.DialContext(ctx, network, target)
	if sock.Is(err, syscall.EADDRNOTAVAIL) && d.Source != "" {
		return nil, fault.Failf("set --bind to an address of this host; `ip addr` lists them", "path: dialling from %s: %w", d.Source, err)
	}
	if err != nil {
		return nil, err
	}
	conn := c.(*net.TCPConn)
	l := &link{
		conn: conn, in: bufio.NewReader(conn), tcp: readTCP(conn),
		local: plain(conn.LocalAddr().(*net.TCPAddr).AddrPort()), remote: plain(conn.RemoteAddr().(*net.TCPAddr).AddrPort()),
	}
	if err := sock.SetNoDelay(conn, true); err != nil {
		conn.Close()
		return nil, err
	}
	quit := context.AfterFunc(ctx, func() { conn.Close() })
	if err := greet(l); err != nil || !quit() {
		conn.Close()
		return nil, cmp.Or(err, ctx.Err())
	}
	return l, nil
}

// ask sends a request and waits for its reply. The timeout is the usual one plus the time that the request takes at the other end.
func (l *link) ask(q request, takes time.Duration) (reply, error) {
	var r reply
	l.conn.SetDeadline(time.Now().Add(replyTime + takes))
	if err := writeJSON(l.conn, q); err != nil {
		return r, err
	}
	return r, readJSON(l.in, &r)
}

// hear reads the hello message.
func (l *link) hear() (h hello, cookie []byte, err error) {
	l.conn.SetDeadline(time.Now().Add(replyTime))
	if err := readJSON(l.in, &h); err != nil {
		return h, nil, err
	}
	cookie, err = hex.DecodeString(h.Cookie)
	if err != nil || len(cookie) != cookieSize {
		return h, nil, fmt.Errorf("path: the other end sent cookie %q, which is not 8 bytes in hexadecimal", h.Cookie)
	}
	return h, cookie, h.check()
}

// hostOf returns the host that provides routes.
func (d Dial) hostOf() *host.Host {
	if d.Host == nil {
		return host.New()
	}
	return d.Host
}
