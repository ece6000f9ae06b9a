package sock

import (
	"fmt"
	"net"
	"os"
)

// filer is a method of package net's connections that net.Conn lacks.
type filer interface{ File() (*os.File, error) }

// Twin returns a second connection on the same socket. Closing one leaves the other open.
func Twin(c net.Conn) (net.Conn, error) {
	f, ok := c.(filer)
	if !ok {
		return nil, fmt.Errorf("sock: duplicating a connection: %T has no descriptor", c)
	}
	file, err := f.File()
	if err != nil {
		return nil, fmt.Errorf("sock: duplicating a connection: %w", err)
	}
	defer file.Close()
	twin, err := net.FileConn(file)
	if err != nil {
		return nil, fmt.Errorf("sock: duplicating a connection: %w", err)
	}
	return twin, nil
}
