package bus

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"time"
)

// maxRunning bounds the concurrent requests of one client.
const maxRunning = 32

// graceTime is how long the end of a client waits for its running requests, whose
// context has ended.
const graceTime = 2 * time.Second

// Reasons for rejecting a request.
var (
	errEnded = errors.New("the client has disconnected")
	errBusy  = errors.New("too many requests at once")
)

// login is a client from its login to the end of its connection.
type login struct {
	client     string
	privileges []string
	own        bool            // of this process itself
	addr       netip.Addr      // from which it is connected; not valid: unknown
	cut        func()          // closes its connection
	ctx        context.Context // ends with the login
	cancel     context.CancelFunc
	once       sync.Once
	wg         sync.WaitGroup // running requests
	*life

	mu      sync.Mutex
	running int
	ended   bool
}

func newLogin(client string, privileges []string, own bool, life *life, cut func()) *login {
	ctx, cancel := context.WithCancel(context.Background())
	return &login{client: client, privileges: privileges, own: own, cut: cut, ctx: ctx, cancel: cancel, life: life}
}

// begin takes a slot for a request; done frees it.
func (l *login) begin() error {
	l.touch()
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.ended:
		return errEnded
	case l.running >= maxRunning:
		return errBusy
	}
	l.running++
	l.wg.Add(1)
	return nil
}

func (l *login) done() {
	l.mu.Lock()
	l.running--
	l.mu.Unlock()
	l.wg.Done()
}

// end rejects new requests, cancels the running ones, and calls gone once. A second
// call returns when the first has.
func (l *login) end(gone func(client string)) {
	l.once.Do(func() {
		l.mu.Lock()
		l.ended = true
		l.mu.Unlock()
		l.cancel()
		idle := make(chan struct{})
		go func() { l.wg.Wait(); close(idle) }()
		select {
		case <-idle:
		case <-time.After(graceTime): // a handler that hangs must not delay the end of the client
		}
		if gone != nil {
			gone(l.client)
		}
	})
}
