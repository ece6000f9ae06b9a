//go:build !linux

package native

import (
	"errors"
	"net"
)

// crr is the listener of connections that come and go.
type crr struct{ listener *net.TCPListener }

func newCRR(c openCommand, l *link) (*crr, error) {
	if c.Dials {
		return &crr{}, nil
	}
	if len(l.listeners) == 0 {
		return nil, errors.New("native: answering: no listener")
	}
	return &crr{l.listeners[0].(*net.TCPListener)}, nil
}
