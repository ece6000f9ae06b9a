package loopback

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
)

// door accepts clients, and closes all their connections at its end.
type door struct {
	listener net.Listener
	inside   sync.WaitGroup

	mu   sync.Mutex
	open map[io.Closer]bool // nil: it is closed
}

// listen opens a free port of loopback.
func listen() (net.Listener, error) { return net.Listen("tcp", "127.0.0.1:0") }

// openDoor calls serve with each connection, which serve need not close.
func openDoor(serve func(d *door, conn net.Conn)) (*door, error) {
	l, err := listen()
	if err != nil {
		return nil, err
	}
	d := &door{listener: l, open: map[io.Closer]bool{}}
	d.inside.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			d.inside.Go(func() {
				if d.add(conn) {
					serve(d, conn)
				}
				d.drop(conn)
			})
		}
	})
	return d, nil
}

// add registers something to close with the door; false where the door is
// closed.
func (d *door) add(c io.Closer) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open == nil {
		return false
	}
	d.open[c] = true
	return true
}

// drop closes something earlier.
func (d *door) drop(c io.Closer) {
	d.mu.Lock()
	delete(d.open, c)
	d.mu.Unlock()
	_ = c.Close() // its user knows
}

// close closes all connections, and waits.
func (d *door) close() error {
	d.mu.Lock()
	open := d.open
	d.open = nil
	d.mu.Unlock()
	if open == nil {
		return nil
	}
	err := d.listener.Close()
	for c := range open {
		_ = c.Close()
	}
	d.inside.Wait()
	return err
}

// server returns the server as its clients see it.
func (d *door) server() (*Server, error) {
	host, port, err := net.SplitHostPort(d.listener.Addr().String())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("where it listens: %w", err), d.close())
	}
	return &Server{Is: "a server in this process", host: host, port: port, close: d.close}, nil
}
