//go:build unix

package sock

import (
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Kept keeps a duplicate of a socket while another process uses it. This process does not read, poll or change it before Conn.
type Kept struct {
	once sync.Once
	fd   int
}

// Keep duplicates the socket of c, which may be closed after that.
func Keep(c syscall.Conn) (*Kept, error) {
	k := &Kept{}
	err := Reach(c, func(fd uintptr) (err error) {
		k.fd, err = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("sock: duplicating a socket: %w", err)
	}
	return k, nil
}

// Conn returns a connection of the socket, once; it releases the duplicate.
func (k *Kept) Conn() (c net.Conn, err error) {
	err = net.ErrClosed
	k.once.Do(func() {
		f := os.NewFile(uintptr(k.fd), "kept")
		defer f.Close()
		c, err = net.FileConn(f)
	})
	if err != nil {
		return nil, fmt.Errorf("sock: using a duplicated socket: %w", err)
	}
	return c, nil
}

// Close closes the duplicate, unless Conn has taken it.
func (k *Kept) Close() error {
	var err error
	k.once.Do(func() { err = unix.Close(k.fd) })
	return err
}
