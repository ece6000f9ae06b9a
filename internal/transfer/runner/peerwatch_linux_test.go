package runner

import (
	"context"
	"io"
	"net"
	"slices"
	"testing"

	"thru/internal/measure"
	"thru/internal/transfer"
)

// plug receives a server's data on an existing connection, and on a new one
// for each file, as FTP does.
type plug struct {
	addr   string
	dialer *Dialer
}

func (p *plug) Open(ctx context.Context) (transfer.Session, error) {
	c, err := p.dialer.Dial(ctx, "tcp", p.addr)
	if err != nil {
		return nil, err
	}
	return plugged{visit{&shelf{}}, p, c}, nil
}

type plugged struct {
	visit
	*plug
	commands net.Conn
}

func (p plugged) Close() error { return p.commands.Close() }

func (p plugged) Get(ctx context.Context, _ string, w io.Writer) (int64, error) {
	c, err := p.dialer.Dial(ctx, "tcp", p.addr)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	return io.Copy(w, c)
}

// witness records the connections that it is told.
type witness struct {
	conns     func() []measure.Addresses
	began     []measure.Addresses
	ended     []measure.Addresses
	beginning int
}

func (w *witness) Begin(_ context.Context, conns func() []measure.Addresses) {
	w.beginning++
	w.conns, w.began = conns, conns()
}

func (w *witness) End() { w.ended = w.conns() }

// TestObserverOfServer: the observer at the server learns the start when all
// clients are logged in, each connection, and the end; a connection of an
// earlier run is left out.
func TestObserverOfServer(t *testing.T) {
	const size = 100_000
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { // nobody reads from the command connections
				c.Write(make([]byte, size))
				c.Close()
			}()
		}
	}()
	p := &plug{addr: l.Addr().String(), dialer: &Dialer{}}
	earlier, err := p.dialer.Dial(t.Context(), "tcp", p.addr)
	if err != nil {
		t.Fatal(err)
	}
	earlier.Close()
	w := &witness{}
	out, err := Run(t.Context(), Job{
		Direction: measure.Download, Clients: []transfer.Client{p, p}, Files: 2, Bytes: size, Dialer: p.dialer, PeerWatch: w,
		Name: func(int, int) string { return "f" }, Sink: func(int, int) (Sink, error) { return Nowhere(), nil },
	})
	if err != nil || out.Run.Bytes != 4*size {
		t.Fatal(out.Run, err)
	}
	if w.beginning != 1 || len(w.began) != 2 || len(w.ended) != 6 || !slices.Equal(w.ended[:2], w.began) {
		t.Errorf("%d times, %v, then %v", w.beginning, w.began, w.ended)
	}
	for _, c := range w.ended {
		if c.Peer != p.addr || c.Local == earlier.LocalAddr().String() {
			t.Errorf("%+v is not of this run", c)
		}
	}
	if out.Run.HereHost == nil || out.Run.HereHost.NIC == nil || out.Run.HereHost.NIC.Name != "lo" || out.Run.HereHost.Worker == nil {
		t.Errorf("this host: %+v", out.Run.HereHost)
	}
	p.addr = "127.0.0.1:1"
	late := &witness{}
	if _, err := Run(t.Context(), Job{Direction: measure.Download, Clients: []transfer.Client{p}, Files: 1, Dialer: p.dialer, PeerWatch: late}); err == nil || late.beginning != 0 {
		t.Errorf("without a login: %v, %d", err, late.beginning)
	}
}
