package transfer

import (
	"errors"
	"io/fs"
	"net"
	"testing"
)

// TestDial: a privileged process gets a low port where requested, and another
// one connects anyway.
func TestDial(t *testing.T) {
	addr := quiet(t)
	l, err := net.Listen("tcp", "127.0.0.1:1022")
	may := !errors.Is(err, fs.ErrPermission)
	if err == nil {
		l.Close()
	}
	for _, asked := range []bool{true, false} {
		ctx := t.Context()
		if asked {
			ctx = LowPort(ctx)
		}
		conn, err := Dial(ctx, net.Dialer{}, "tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		port := conn.LocalAddr().(*net.TCPAddr).Port
		if got, want := port < 1024, asked && may; got != want {
			t.Errorf("asked %v: port %d", asked, port)
		}
	}
}
