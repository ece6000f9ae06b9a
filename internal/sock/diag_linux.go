package sock

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"

	"golang.org/x/sys/unix"
)

// Diag queries the kernel for TCP connections of the network namespace in which it was opened (sock_diag(7)). It needs no privilege. Several goroutines may
// use it.
type Diag struct {
	mu  sync.Mutex
	fd  int
	seq uint32
	buf []byte
}

// OpenDiag opens a netlink socket, which Close closes.
func OpenDiag() (*Diag, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_INET_DIAG)
	if err != nil {
		return nil, fmt.Errorf("sock: opening a socket to read connections: %w", err)
	}
	wait := unix.NsecToTimeval(int64(diagWait))
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("sock: opening a socket to read connections: %w", err)
	}
	return &Diag{fd: fd, buf: make([]byte, 8<<10)}, nil
}

// diagWait is the timeout of an answer, in ns: the kernel answers at once.
const diagWait = 1e9

// Find reads the connection between two addresses; local is the address on this host. It returns ErrNoConnection where there is none.
func (d *Diag) Find(local, peer netip.AddrPort) (Connection, error) {
	if !local.IsValid() || !peer.IsValid() || local.Addr().Unmap().Is4() != peer.Addr().Unmap().Is4() {
		return Connection{}, ErrNoConnection
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seq++
	if err := unix.Sendto(d.fd, askDiag(local, peer, d.seq), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return Connection{}, fmt.Errorf("sock: reading a connection from the kernel: %w", err)
	}
	for {
		n, _, err := unix.Recvfrom(d.fd, d.buf, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return Connection{}, fmt.Errorf("sock: reading a connection from the kernel: %w", err)
		}
		if c, done, err := parseDiag(d.buf[:n], d.seq); done {
			return c, err
		}
	}
}

// Close closes the netlink socket.
func (d *Diag) Close() error { return unix.Close(d.fd) }
