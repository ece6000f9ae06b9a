package transfer

import (
	"net"
	"testing"

	"golang.org/x/sys/unix"
)

// TestBuffer: both buffers have the requested size, which Linux doubles
// (socket(7)).
func TestBuffer(t *testing.T) {
	w := NewWires(Config{Buffer: 65535})
	if _, err := w.Data(t.Context(), quiet(t)); err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	raw, err := w.Sockets()[0].(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	raw.Control(func(fd uintptr) {
		for name, option := range map[string]int{"SO_SNDBUF": unix.SO_SNDBUF, "SO_RCVBUF": unix.SO_RCVBUF} {
			if n, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, option); n != 2*65535 || err != nil {
				t.Errorf("%s is %d, %v", name, n, err)
			}
		}
	})
}
