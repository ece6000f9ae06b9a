package transfer

import (
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"net"
)

// Local ports that only a privileged process may have: those that Linux's own NFS
// client takes, which leave the well-known ones alone (net/sunrpc/xprtsock.c,
// RPC_DEF_MIN_RESVPORT).
const (
	firstLow = 665
	lastLow  = 1023
)

// lowPort is the key of what LowPort asks for.
type lowPort struct{}

// LowPort asks for connections from a port below 1024, by which servers such as
// those of NFS know root (exports(5), "secure"). A Dial of one's own keeps to it
// by dialling with Dial.
func LowPort(ctx context.Context) context.Context { return context.WithValue(ctx, lowPort{}, true) }

// Dial dials with d: where LowPort asks for it, this process may and one is free,
// from a port below 1024, else from any.
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
		if errors.Is(err, fs.ErrPermission) || !inUse(err) {
			break
		}
	}
	return d.DialContext(ctx, network, addr)
}
