package sock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"

	"thru/internal/fault"
)

// Range says where an end listens for data: on the first free port of a range,
// the same on all addresses.
type Range struct {
	Addrs               []string // of this host; empty: all
	First, Last, Offset int      // the range, and where in it to begin; First 0: any port
}

// Ports are those of the range in the order in which they are tried; 0 alone is any.
func (r Range) Ports() []int {
	if r.First <= 0 || r.Last < r.First {
		return []int{0}
	}
	n := r.Last - r.First + 1
	all := make([]int, n)
	for i := range all {
		all[i] = r.First + (max(r.Offset, 0)+i)%n
	}
	return all
}

// Listen opens the first free port for TCP; control is applied to each socket
// before. An error says that no port could be had.
func (r Range) Listen(ctx context.Context, control func(network, address string, c syscall.RawConn) error) ([]net.Listener, error) {
	lc := net.ListenConfig{Control: control}
	lc.SetMultipathTCP(false) // another protocol than was asked for
	for _, port := range r.Ports() {
		all, err := r.listenAt(ctx, &lc, port)
		switch {
		case errors.Is(err, syscall.EADDRINUSE):
			continue
		case errors.Is(err, syscall.EADDRNOTAVAIL), errors.Is(err, syscall.EAFNOSUPPORT):
			return nil, fault.Failf("see `ip addr`: this host has no such address, or no IPv6", "sock: listening: %w", err)
		case err != nil:
			return nil, fmt.Errorf("sock: listening: %w", err)
		}
		return all, nil
	}
	return nil, fault.Failf("end other programs on these ports, or give a larger range: thru serve --data-ports FIRST-LAST",
		"sock: listening: ports %d-%d are all in use", r.First, r.Last)
}

// listenAt opens one port on all addresses.
func (r Range) listenAt(ctx context.Context, lc *net.ListenConfig, port int) (all []net.Listener, err error) {
	addrs := r.Addrs
	if len(addrs) == 0 {
		addrs = []string{""}
	}
	for _, a := range addrs {
		l, err := lc.Listen(ctx, "tcp", net.JoinHostPort(a, strconv.Itoa(port)))
		if err != nil {
			for _, l := range all {
				l.Close()
			}
			return nil, err
		}
		all, port = append(all, l), l.Addr().(*net.TCPAddr).Port
	}
	return all, nil
}
