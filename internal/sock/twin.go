package sock

import (
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
)

// filer is a method of package net's connections that net.Conn lacks.
type filer interface{ File() (*os.File, error) }

// Twin returns a second connection on the same socket. Closing one leaves the other open.
func Twin(c net.Conn) (net.Conn, error) {
	if runtime.GOOS == "windows" { // where one connection of a socket gets all its completions
		return nil, fmt.Errorf("sock: duplicating a connection: %w on Windows", errors.ErrUnsupported)
	}
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
