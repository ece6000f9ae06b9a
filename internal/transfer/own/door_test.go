package own_test

import (
	"net"
	"net/netip"
	"strconv"
	"testing"

	"thru/internal/sock"
	"thru/internal/token"
	"thru/internal/transfer/own"
)

// TestDoorStrangers: a client is admitted although more silent connections
// than there is room for came before it.
func TestDoorStrangers(t *testing.T) {
	door, err := own.OpenDoor(t.Context(), sock.Range{Addrs: []string{"127.0.0.1"}}, "", 0, netip.Addr{})
	if err != nil {
		t.Fatal(err)
	}
	defer door.Close()
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(door.Port()))
	came := make(chan error, 1)
	go func() {
		conn, err := door.Await(t.Context())
		if err == nil {
			conn.Close()
		}
		came <- err
	}()
	for range 300 {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	client, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	holds, err := token.Parse(door.Token())
	if err == nil {
		err = holds.Introduce(client, token.File, nil)
	}
	if err != nil {
		t.Errorf("the client is turned away: %v", err)
		client.Close()
	}
	if err := <-came; err != nil {
		t.Error(err)
	}
}
