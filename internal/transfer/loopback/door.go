package loopback

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
)

// door lets clients in, and ends with all that came through it.
type door struct {
	listener net.Listener
	inside   sync.WaitGroup

	mu   sync.Mutex
	open map[io.Closer]bool // nil: it is closed
}

// listen is a free port of loopback.
func listen() (net.Listener, error) { return net.Listen("tcp", "127.0.0.1:0") }

// openDoor has serve called with each connection, which it need not close.
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

// add has something closed with the door; false where that has happened.
func (d *door) add(c io.Closer) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open == nil {
		return false
	}
	d.open[c] = true
	return true
}

// drop closes something before.
func (d *door) drop(c io.Closer) {
	d.mu.Lock()
	delete(d.open, c)
	d.mu.Unlock()
	_ = c.Close() // who used it knows
}

// close ends all, and waits for it.
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

// server is what clients see of it.
func (d *door) server() (*Server, error) {
	host, port, err := net.SplitHostPort(d.listener.Addr().String())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("where it listens: %w", err), d.close())
	}
	return &Server{Is: "a server in this process", host: host, port: port, close: d.close}, nil
}
