package sock

import (
	"context"
	"net"
	"strings"
	"testing"

	"thru/internal/fault"
)

// dialSelf connects a socket with options o to a listener with the same.
func dialSelf(t *testing.T, o Options) (*net.TCPConn, error) {
	t.Helper()
	lc := net.ListenConfig{Control: o.Control}
	l, err := lc.Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { l.Close() })
	d := net.Dialer{Control: o.Control}
	c, err := d.Dial("tcp", l.Addr().String())
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { c.Close() })
	return c.(*net.TCPConn), nil
}

func TestOptionsReachTheKernel(t *testing.T) {
	c, err := dialSelf(t, Options{SendBuffer: 64 << 10, RecvBuffer: 32 << 10, Congestion: "reno", MSS: 1000, DSCP: 46})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	raw.Control(func(fd uintptr) {
		g := ReadGranted(fd)
		if g.SendBuffer != BufferOverhead*64<<10 || g.RecvBuffer != BufferOverhead*32<<10 {
			t.Errorf("buffers %d and %d", g.SendBuffer, g.RecvBuffer)
		}
		if g.Congestion != "reno" {
			t.Errorf("congestion control %q", g.Congestion)
		}
		if g.MSS == 0 || g.MSS > 1000 {
			t.Errorf("MSS %d", g.MSS)
		}
		b := make([]byte, TCPInfoSize)
		n := ReadTCPInfo(fd, b)
		if n == 0 || n > TCPInfoSize {
			t.Fatalf("TCP_INFO of %d bytes", n)
		}
		if i := ParseTCPInfo(b[:n]); i.State == nil || *i.State != 1 {
			t.Errorf("state %v, want ESTABLISHED", i.State)
		}
	})
}

func TestRefusalsHaveHints(t *testing.T) {
	for name, o := range map[string]Options{
		"congestion": {Congestion: "nosuch"},
		"MAXSEG":     {MSS: 1 << 30},
		"device":     {Device: "nosuch0"},
	} {
		_, err := dialSelf(t, o)
		if err == nil || !strings.Contains(err.Error(), name) || fault.Hint(err) == "" {
			t.Errorf("%s: error %v, hint %q", name, err, fault.Hint(err))
		}
	}
}
