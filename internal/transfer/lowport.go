package transfer

import (
	"context"
	"math/rand/v2"
	"net"
	"syscall"

	"thru/internal/sock"
)

// Privileged local ports: those that Linux's own NFS client uses, which
// avoids the well-known ones (net/sunrpc/xprtsock.c, RPC_DEF_MIN_RESVPORT).
const (
	firstLow = 665
	lastLow  = 1023
)

// lowPort is the context key of LowPort.
type lowPort struct{}

// LowPort requests connections from a port below 1024, by which servers such
// as those of NFS recognise root (exports(5), "secure"). A custom Dial obeys
// it by dialling with Dial.
func LowPort(ctx context.Context) context.Context { return context.WithValue(ctx, lowPort{}, true) }

// Dial dials with d: from a port below 1024 where LowPort requests it, this
// process may use one and one is free, otherwise from any port.
func Dial(ctx context.Context, d net.Dialer, network, addr string) (net.Conn, error) {
	if ctx.Value(lowPort{}) == nil {
		return d.DialContext(ctx, network, addr)
	}
	const ports = lastLow - firstLow + 1
	low, begin := d, rand.IntN(ports)
	for i := range ports {
		low.LocalAddr = &net.TCPAddr{Port: firstLow + (begin+i)%ports}
		conn, err := low.DialContext(ctx, network, addr)
		if err == nil {
			return conn, nil
		}
		if !sock.Is(err, syscall.EADDRINUSE) && !sock.Is(err, syscall.EADDRNOTAVAIL) {
			break
		}
	}
	return d.DialContext(ctx, network, addr)
}
