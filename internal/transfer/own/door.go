package own

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"thru/internal/fault"
	"thru/internal/sock"
	"thru/internal/token"
)

// Limits of a door.
const (
	comeTime   = 15 * time.Second // for the client to connect
	greetTime  = 3 * time.Second  // for a connection to show the token
	mostGuests = 128              // connections that have not shown it yet
	pauseTime  = 10 * time.Millisecond
)

// ErrNobody means that the client did not connect in time.
var ErrNobody = errors.New("the client has not connected")

// Door is the agent's end of one transfer before its connection: a port, and
// a one-time token.
type Door struct {
	token string
	all   []net.Listener
	from  netip.Addr
}

// OpenDoor listens with socket buffers of so many bytes (0: the kernel tunes
// them). Where from is valid, it admits only that address.
func OpenDoor(ctx context.Context, r sock.Range, device string, buffer int, from netip.Addr) (*Door, error) {
	options := sock.Options{Device: device, SendBuffer: int64(buffer), RecvBuffer: int64(buffer), NoDelay: true}
	all, err := r.Listen(ctx, options.Control)
	if err != nil {
		return nil, err
	}
	return &Door{token: token.New(), all: all, from: from}, nil
}

// Port returns the listening port.
func (d *Door) Port() int { return d.all[0].Addr().(*net.TCPAddr).Port }

// Token returns the token.
func (d *Door) Token() string { return d.token }

// Close stops listening.
func (d *Door) Close() {
	for _, l := range d.all {
		l.Close()
	}
}

// Await returns the first connection that shows the token, and closes the
// door. Other connections do not delay it.
func (d *Door) Await(ctx context.Context) (*net.TCPConn, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, comeTime, fault.Failf("open its data ports in the firewall, or choose others: thru serve --data-ports", "own: waiting for %v: %w", comeTime, ErrNobody))
	defer cancel()
	found := make(chan *net.TCPConn)
	var guests sync.WaitGroup
	in := &lobby{}
	for _, l := range d.all {
		guests.Go(func() { d.take(ctx, l, in, found) })
	}
	var conn *net.TCPConn
	select {
	case conn = <-found:
	case <-ctx.Done():
	}
	err := context.Cause(ctx)
	cancel()
	d.Close()
	guests.Wait()
	if conn == nil {
		return nil, err
	}
	return conn, nil
}

// take accepts connections and checks them, until the listener is closed.
func (d *Door) take(ctx context.Context, l net.Listener, in *lobby, found chan<- *net.TCPConn) {
	var guests sync.WaitGroup
	defer guests.Wait()
	for {
		c, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // out of descriptors, or already reset: the next one may succeed
			time.Sleep(pauseTime)
			continue
		}
		if !d.isMeant(c) {
			c.Close()
			continue
		}
		in.enter(c)
		guests.Go(func() {
			defer in.leave(c)
			d.ask(ctx, c.(*net.TCPConn), in, found)
		})
	}
}

// lobby holds the connections that have not shown the token yet, the oldest
// first.
type lobby struct {
	mu     sync.Mutex
	guests []net.Conn
}

// enter adds one. When it is full it drops the oldest: a client shows its
// token at once, so a silent one is older.
func (l *lobby) enter(c net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.guests) >= mostGuests {
		l.guests[0].Close()
		l.guests = l.guests[1:]
	}
	l.guests = append(l.guests, c)
}

// leave removes one; false where it was dropped before.
func (l *lobby) leave(c net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.guests, c)
	if i >= 0 {
		l.guests = slices.Delete(l.guests, i, i+1)
	}
	return i >= 0
}

// ask passes on a connection that shows the token in time, or closes it.
func (d *Door) ask(ctx context.Context, c *net.TCPConn, in *lobby, found chan<- *net.TCPConn) {
	hurry := context.AfterFunc(ctx, func() { c.Close() })
	c.SetDeadline(time.Now().Add(greetTime))
	if d.knows(c) && in.leave(c) && hurry() {
		c.SetDeadline(time.Time{})
		select {
		case found <- c:
			return
		case <-ctx.Done():
		}
	}
	c.Close()
}

// isMeant reports whether a connection comes from the client's address.
func (d *Door) isMeant(c net.Conn) bool {
	at, ok := c.RemoteAddr().(*net.TCPAddr)
	return ok && (!d.from.IsValid() || at.AddrPort().Addr().Unmap().WithZone("") == d.from)
}

// knows checks the token, and proves that this end has it too.
func (d *Door) knows(c *net.TCPConn) bool {
	own, err := token.Parse(d.token)
	if err != nil {
		return false
	}
	_, answer, err := own.Hear(c, token.File, 0)
	if err == nil {
		_, err = c.Write(answer)
	}
	return err == nil
}
