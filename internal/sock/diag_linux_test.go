package sock

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"testing"
)

// TestDiagFinds reads the kernel's state of a connection of this process, over both families and on a socket that carries IPv4 as IPv6.
func TestDiagFinds(t *testing.T) {
	d, err := OpenDiag()
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for _, tt := range []struct{ name, network, listen, dial string }{
		{"IPv4", "tcp4", "127.0.0.1:0", "127.0.0.1"},
		{"IPv6", "tcp6", "[::1]:0", "::1"},
		{"IPv4 at a socket of IPv6", "tcp", ":0", "127.0.0.1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l, err := net.Listen(tt.network, tt.listen)
			if err != nil {
				t.Skip(err)
			}
			defer l.Close()
			_, port, _ := net.SplitHostPort(l.Addr().String())
			c, err := net.Dial("tcp", net.JoinHostPort(tt.dial, port))
			if err != nil {
				t.Skip(err)
			}
			defer c.Close()
			s, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			const sent = 5000
			c.Write(make([]byte, sent))
			io.ReadFull(s, make([]byte, 1000))
			far, near := netip.MustParseAddrPort(c.RemoteAddr().String()), netip.MustParseAddrPort(c.LocalAddr().String())
			got, err := d.Find(far, near)
			if err != nil || !got.IsKnown || got.State != 1 || got.Inode == 0 || *got.TCP.BytesReceived != sent || got.Unread != sent-1000 ||
				got.Granted.RecvBuffer <= 0 || got.Granted.SendBuffer <= 0 || got.Granted.Congestion == "" {
				t.Errorf("the server's end: %+v, %v", got, err)
			}
			if got, err = d.Find(near, far); err != nil || !got.IsKnown || *got.TCP.BytesSent < sent {
				t.Errorf("the client's end: %+v, %v", got, err)
			}
			if _, err = d.Find(far, netip.AddrPortFrom(near.Addr(), near.Port()^1)); !errors.Is(err, ErrNoConnection) {
				t.Error("another port:", err)
			}
			if _, err = d.Find(far, netip.AddrPort{}); !errors.Is(err, ErrNoConnection) {
				t.Error("no address:", err)
			}
		})
	}
}
