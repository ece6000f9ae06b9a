package sock

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"syscall"

	"thru/internal/fault"
)

// Range is where an end listens for data: on the first free port of a range, the same on all addresses.
type Range struct {
	Addrs               []string // of this host; empty: all
	First, Last, Offset int      // the range, and where in it to start; First 0: any port
}

// Ports returns the ports of the range in the order of the tries; a single 0 means any port.
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

// Listen opens the first free port for TCP, after applying control to each socket. It returns an error where no port is free.
func (r Range) Listen(ctx context.Context, control Control) (all []net.Listener, err error) {
	err = r.Try(func(port int) error {
		all, err = r.ListenAt(ctx, "tcp", port, control)
		return err
	})
	return all, err
}

// Try opens the first free port. It returns an error where none is free.
func (r Range) Try(open func(port int) error) error {
	for _, port := range r.Ports() {
		err := open(port)
		switch {
		case Is(err, syscall.EADDRINUSE):
			continue
		case Is(err, syscall.EADDRNOTAVAIL), Is(err, syscall.EAFNOSUPPORT):
			return fault.Failf("check `ip addr`: this host has no such address, or no IPv6", "sock: listening: %w", err)
		case err != nil:
			return fmt.Errorf("sock: listening: %w", err)
		}
		return nil
	}
	return fault.Failf("end other programs on these ports, or give a larger range: thru serve --data-ports FIRST-LAST",
		"sock: listening: data ports %d-%d are all in use", r.First, r.Last)
}

// Hosts returns the addresses in the form of package net; "" means all.
func (r Range) Hosts() []string {
	if len(r.Addrs) == 0 {
		return []string{""}
	}
	return r.Addrs
}

// Control is the function that package net calls for a socket before its use.
type Control = func(network, address string, c syscall.RawConn) error

// ListenAt opens one port on all addresses, for "tcp", "tcp4" or "tcp6".
func (r Range) ListenAt(ctx context.Context, network string, port int, control Control) (all []net.Listener, err error) {
	lc := net.ListenConfig{Control: control}
	lc.SetMultipathTCP(false) // not the requested protocol
	for _, a := range r.Hosts() {
		l, err := lc.Listen(ctx, network, net.JoinHostPort(a, strconv.Itoa(port)))
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
