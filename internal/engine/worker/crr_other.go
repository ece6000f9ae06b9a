//go:build !linux

package worker

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
	at := l.tcp[len(l.tcp)-1].LocalAddr().(*net.TCPAddr).IP
	for _, x := range l.listeners {
		if own := x.Addr().(*net.TCPAddr).IP; own.IsUnspecified() || own.Equal(at) {
			return &crr{x.(*net.TCPListener)}, nil
		}
	}
	return nil, errors.New("worker: answering: no listener has the address of the connection")
}
