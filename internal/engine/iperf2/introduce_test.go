//go:build unix

package iperf2

import (
	"io"
	"net"
	"testing"

	"thru/internal/engine/worker"
)

// TestBothDirectionsFails: where a connection cannot be duplicated, the connections stay with their owner.
func TestBothDirectionsFails(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var given []worker.Conn
	for range 3 {
		c := tcpDial(t, l.Addr().(*net.TCPAddr).Port)
		given = append(given, worker.Conn{Conn: c})
	}
	ours, theirs := net.Pipe() // it has no descriptor
	defer theirs.Close()
	defer ours.Close()
	if _, err := bothDirections(append(given, worker.Conn{Conn: ours})); err == nil {
		t.Fatal("a pipe has a twin")
	}
	for i, g := range given {
		if _, err := g.Conn.Write([]byte("still here")); err != nil {
			t.Errorf("connection %d: %v", i, err)
		}
	}
	go ours.Write([]byte("x"))
	if _, err := io.ReadFull(theirs, make([]byte, 1)); err != nil {
		t.Errorf("the last one: %v", err)
	}
}
