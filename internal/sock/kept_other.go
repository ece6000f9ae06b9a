//go:build !unix

package sock

import (
	"net"
	"syscall"
)

// Kept is not available: this system does not duplicate the sockets of a process.
type Kept struct{}

// Keep returns an error: this system does not duplicate the sockets of a process.
func Keep(syscall.Conn) (*Kept, error) { return nil, unsupported("a second descriptor of a socket") }

// Conn returns an error, as Keep does.
func (*Kept) Conn() (net.Conn, error) { return nil, unsupported("a second descriptor of a socket") }

// Close does nothing.
func (*Kept) Close() error { return nil }
