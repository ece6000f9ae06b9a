package sock

import (
	"errors"
	"fmt"
	"syscall"
)

// Reach runs do with the descriptor of a connection, which stays open during the call.
func Reach(conn any, do func(fd uintptr) error) error {
	c, ok := conn.(syscall.Conn)
	if !ok {
		return fmt.Errorf("sock: accessing a socket: %w", errors.ErrUnsupported)
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return fmt.Errorf("sock: accessing a socket: %w", err)
	}
	ctl := raw.Control(func(fd uintptr) { err = do(fd) })
	return errors.Join(ctl, err)
}

// Read returns the result of of for a connection's descriptor; the zero value where there is no descriptor.
func Read[T any](conn any, of func(fd uintptr) T) (v T) {
	_ = Reach(conn, func(fd uintptr) error {
		v = of(fd)
		return nil
	})
	return v
}
