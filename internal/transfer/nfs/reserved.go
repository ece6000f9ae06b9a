package nfs

import (
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"net"

	"thru/internal/sock"
)

// Ports from which a client that may binds: those of Linux, which leave the
// well-known ones alone (net/sunrpc/xprtsock.c, RPC_DEF_MIN_RESVPORT).
const (
	firstReserved = 665
	lastReserved  = 1023
	tries         = 20
)

// reserved dials from a port below 1024 where that is allowed and one is free,
// else from any.
func reserved(buffer int) func(ctx context.Context, network, addr string) (net.Conn, error) {
	buffers := sock.Options{SendBuffer: int64(buffer), RecvBuffer: int64(buffer), NoDelay: true}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		for range tries {
			local := &net.TCPAddr{Port: firstReserved + rand.IntN(lastReserved-firstReserved+1)}
			conn, err := (&net.Dialer{LocalAddr: local, Control: buffers.Control}).DialContext(ctx, network, addr)
			if err == nil {
				return conn, nil
			}
			if errors.Is(err, fs.ErrPermission) || !inUse(err) {
				break
			}
		}
		return (&net.Dialer{Control: buffers.Control}).DialContext(ctx, network, addr)
	}
}
