package faults

import (
	"context"
	"fmt"
	"io"
	"net"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"thru/lab"
)

// proxyPort is where the proxy in the router takes connections that it intercepts.
const proxyPort = 5299

// behindProxy is a router that terminates every connection of iperf3 and opens another to the server from the
// client's address, as a WAN optimizer does: both ends see each other's addresses
// (Documentation/networking/tproxy.rst).
func behindProxy(t testing.TB) *Scene {
	t.Helper()
	x := lab.NewRouted(t, 1500)
	x.R.Nft(fmt.Sprintf("table ip proxy {\nchain in {\ntype filter hook prerouting priority mangle\nmeta l4proto tcp socket transparent 1 meta mark set 1 accept\ntcp dport 5201 tproxy to :%d meta mark set 1 accept\n}\n}\n", proxyPort))
	x.R.IP(flags("rule add fwmark 1 lookup 100")...)
	x.R.IP(flags("route add local 0.0.0.0/0 dev lo table 100")...)
	for h, dev := range map[*lab.Host]string{x.A: lab.DataDev, x.B: lab.DataDev} {
		h.Must("tc", flags("qdisc replace dev %s root tbf rate 200mbit burst 256kb limit 1mb", dev)...)
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	var listener net.Listener
	x.R.Inside(func() (err error) {
		listener, err = (&net.ListenConfig{Control: transparent}).Listen(ctx, "tcp4", fmt.Sprintf("0.0.0.0:%d", proxyPort))
		return err
	})
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return // closed
			}
			go pass(ctx, x.R, near)
		}
	}()
	return &Scene{Client: x.A, Server: x.B, Target: x.Addr()}
}

// pass connects to the destination that the client wanted, and copies both directions.
func pass(ctx context.Context, router *lab.Host, near net.Conn) {
	defer near.Close()
	var far net.Conn
	var err error
	router.Inside(func() error {
		far, err = (&net.Dialer{LocalAddr: near.RemoteAddr(), Control: transparent}).DialContext(ctx, "tcp4", near.LocalAddr().String())
		return nil
	})
	if err != nil {
		return // the client sees its connection end
	}
	defer far.Close()
	back := make(chan struct{})
	go func() { defer close(back); carry(near, far) }()
	carry(far, near)
	<-back
}

// carry copies one direction, and closes it at its end.
func carry(to, from net.Conn) {
	_, _ = io.Copy(to, from) // either may have ended
	_ = to.(*net.TCPConn).CloseWrite()
}

// transparent lets a socket have addresses of others (ip(7), IP_TRANSPARENT).
func transparent(_, _ string, c syscall.RawConn) error {
	var failed error
	err := c.Control(func(fd uintptr) { failed = unix.SetsockoptInt(int(fd), unix.SOL_IP, unix.IP_TRANSPARENT, 1) })
	if err == nil {
		err = failed
	}
	return err
}
