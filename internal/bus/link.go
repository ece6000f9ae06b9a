package bus

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"thru/internal/access"
)

// link is one connection of a client: outer is the client's side, inner the
// embedded server's, which has no listener of its own.
type link struct {
	outer net.Conn // TLS, or a pipe within the process
	life  *life    // of the peer on outer
	inner net.Conn
	read  *bufio.Reader // of inner
	info  []byte        // the server's first line
	own   bool          // of this process itself
	letIn func()        // frees its pre-auth slot
	id    uint64        // the server's number for the connection
	login *login        // nil until the client has logged in; guarded by Server.mu
	pace  *rate.Limiter // of the bytes that the client sends; limited once the client is known
	done  chan struct{} // closed by close
	once  sync.Once
	owner string       // of a member of a fleet: its key; guarded by Server.mu
	agent bool         // the member is an agent; guarded by Server.mu
	given access.Given // of a user or an operator: what it may; guarded by Server.mu
}

// newLink reads the server's greeting, which has the connection number that the
// server passes to the login check.
func newLink(outer, inner net.Conn) (*link, error) {
	life := lifeOf(outer)
	l := &link{outer: pulse{outer, life}, life: life, inner: inner, pace: rate.NewLimiter(rate.Inf, agentBurst), done: make(chan struct{}), read: bufio.NewReaderSize(inner, 32<<10)}
	inner.SetReadDeadline(time.Now().Add(writeTime))
	line, err := l.read.ReadSlice('\n')
	if err != nil {
		return nil, fmt.Errorf("bus: reading the server's greeting: %w", err)
	}
	inner.SetReadDeadline(time.Time{})
	l.info = bytes.Clone(line)
	if l.id, err = connectionID(l.info); err != nil {
		return nil, err
	}
	return l, nil
}

// connectionID parses the INFO line of the NATS protocol.
func connectionID(line []byte) (uint64, error) {
	doc, ok := bytes.CutPrefix(line, []byte("INFO "))
	var info struct {
		ClientID uint64 `json:"client_id"`
	}
	if !ok {
		return 0, errors.New("bus: the server's greeting is not INFO")
	}
	if err := json.Unmarshal(doc, &info); err != nil {
		return 0, fmt.Errorf("bus: reading the server's greeting: %w", err)
	}
	if info.ClientID == 0 {
		return 0, errors.New("bus: the server's greeting has no client id")
	}
	return info.ClientID, nil
}

// run copies bytes in both directions until one side ends.
func (l *link) run() {
	defer l.close()
	if err := l.send(l.info); err != nil {
		return
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		io.Copy(l.inner, pacedReader{l.outer, l.pace, l.done})
		l.inner.Close() // not outer: the server's last data may still be in transit
	})
	l.carryOut()
	l.close()
	wg.Wait()
}

// carryOut copies from the server to the client. It cuts off a client that does not
// read for writeTime.
func (l *link) carryOut() {
	buf := make([]byte, 32<<10)
	for {
		n, err := l.read.Read(buf)
		if n > 0 && l.send(buf[:n]) != nil {
			return
		}
		if err != nil {
			return
		}
	}
}

func (l *link) send(b []byte) error {
	l.outer.SetWriteDeadline(time.Now().Add(writeTime))
	_, err := l.outer.Write(b)
	return err
}

// close closes both sides; it may be called more than once.
func (l *link) close() {
	l.once.Do(func() { close(l.done) })
	l.inner.Close()
	l.outer.Close()
}
