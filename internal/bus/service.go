package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"thru/internal/fault"
)

// maxPatience bounds how long a request may run.
const maxPatience = 60 * time.Second

// Service answers the requests of a server's clients by a Handler, as the
// NATS micro service "thru".
type Service struct {
	server *Server
	h      Handler
	nc     *nats.Conn
	micro  micro.Service
	long   transfers
	done   chan struct{}
	close  sync.Once
	wg     sync.WaitGroup
}

// answer runs one verb: JSON in, JSON out.
type answer func(ctx context.Context, client string, body []byte) ([]byte, error)

// Serve starts to answer. A handler is called concurrently, in a goroutine a
// request; its context ends when the client is gone or has stopped waiting.
// Gone is called once a client, after its last request.
func Serve(s *Server, h Handler) (*Service, error) {
	nc, err := nats.Connect("nats://thru",
		nats.InProcessServer(s.nats), nats.UserInfo(s.agentUser, string(s.agentSecret)),
		nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}), // the default prints
	)
	if err != nil {
		return nil, fmt.Errorf("bus: connecting the agent to its control plane: %w", err)
	}
	v := &Service{server: s, h: h, nc: nc, long: transfers{all: map[string]*transfer{}}, done: make(chan struct{})}
	if err := v.register(); err != nil {
		nc.Close()
		return nil, fmt.Errorf("bus: starting the service: %w", err)
	}
	s.onGone(v.gone)
	v.wg.Go(v.watch)
	return v, nil
}

// register adds an endpoint a verb.
func (v *Service) register() (err error) {
	v.micro, err = micro.AddService(v.nc, micro.Config{
		Name: "thru", Version: fmt.Sprintf("%d.%d.0", WireMajor, WireMinor), QueueGroupDisabled: true,
	})
	if err != nil {
		return err
	}
	for verb, run := range map[string]answer{
		verbHello:    handle(v.h.Hello),
		verbClock:    handle(v.h.Clock),
		verbFacts:    handle(v.h.Facts),
		verbAnswer:   handle(v.h.Answer),
		verbProbe:    handle(v.h.Probe),
		verbReserve:  handle(v.h.Reserve),
		verbPrepare:  handle(v.h.Prepare),
		verbStart:    handle(v.h.Start),
		verbCollect:  handle(v.h.Collect),
		verbCaptured: handle(v.h.Captured),
		verbRelease:  handle(v.h.Release),
		verbPart:     v.part,
	} {
		if err := v.endpoint(verb, v.request(verb, run)); err != nil {
			return err
		}
	}
	if err := v.endpoint(verbAlive, v.alive); err != nil {
		return err
	}
	return v.nc.Flush() // no client may come before the subscriptions
}

func (v *Service) endpoint(verb string, f micro.HandlerFunc) error {
	return v.micro.AddEndpoint(verb, f, micro.WithEndpointSubject(subject("*", verb)))
}

// handle turns a method of Handler into an answer.
func handle[Q, A any](method func(context.Context, string, Q) (A, error)) answer {
	return func(ctx context.Context, client string, body []byte) ([]byte, error) {
		var q Q
		if err := decode(body, &q); err != nil {
			return nil, fmt.Errorf("bus: reading the request: %w", err)
		}
		a, err := method(ctx, client, q)
		if err != nil {
			return nil, err
		}
		return json.Marshal(a)
	}
}

// part answers a request for the next part of a long reply.
func (v *Service) part(_ context.Context, client string, body []byte) ([]byte, error) {
	var p partRequest
	if err := decode(body, &p); err != nil {
		return nil, fmt.Errorf("bus: reading the request: %w", err)
	}
	return v.long.part(client, p)
}

// alive keeps a lease.
func (v *Service) alive(r micro.Request) {
	if l := v.server.login(clientOf(r.Subject())); l != nil {
		l.touch()
	}
}

// request answers one verb. The reply goes to the inbox of the client that
// asked and to no other, since the server lets the agent publish anywhere.
func (v *Service) request(verb string, run answer) micro.HandlerFunc {
	return func(r micro.Request) {
		client := clientOf(r.Subject())
		l := v.server.login(client)
		if l == nil || !strings.HasPrefix(r.Reply(), inbox(client)+".") {
			return
		}
		if err := l.begin(); err != nil {
			v.refuse(r.Reply(), fault.Failf("", "bus: %s: %w", verb, err))
			return
		}
		go func() {
			defer l.done()
			ctx, cancel := context.WithTimeout(context.WithValue(l.ctx, loginKey{}, l), patience(r.Headers().Get(headerPatience)))
			defer cancel()
			v.reply(client, r.Reply(), verb, func() ([]byte, error) { return guard(ctx, verb, client, r.Data(), run) })
		}()
	}
}

// loginKey leads from the context of a request to the login that made it.
type loginKey struct{}

// IsOwn tells a handler whether a request comes from its own process, and not
// from the network.
func IsOwn(ctx context.Context) bool {
	l, _ := ctx.Value(loginKey{}).(*login)
	return l != nil && l.link.own
}

// Granted are the privileges of the client that makes a request. The own
// process has all.
func Granted(ctx context.Context) []string {
	l, _ := ctx.Value(loginKey{}).(*login)
	switch {
	case l == nil:
		return nil
	case l.link.own:
		return append([]string{PrivilegeMeasure}, Privileges()...)
	}
	return slices.Clone(l.privileges)
}

// Allows tells a handler whether the client that makes a request has a privilege.
func Allows(ctx context.Context, privilege string) bool {
	return slices.Contains(Granted(ctx), privilege)
}

// patience reads how long the client waits for a reply.
func patience(header string) time.Duration {
	ms, err := strconv.ParseInt(header, 10, 32)
	if err != nil || ms <= 0 {
		return maxPatience
	}
	return min(time.Duration(ms)*time.Millisecond, maxPatience)
}

// guard turns a panic of the handler into an error of this one request.
func guard(ctx context.Context, verb, client string, body []byte, run answer) (reply []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fault.Failf("this is a bug of thru at the end point: please report it", "agent: %s: internal error: %v", verb, p)
		}
	}()
	return run(ctx, client, body)
}

// reply sends what run returns: whole, or its first part and where the rest is.
func (v *Service) reply(client, to, verb string, run func() ([]byte, error)) {
	body, err := run()
	if err != nil {
		v.refuse(to, err)
		return
	}
	m := nats.NewMsg(to)
	m.Data = body
	if len(body) > partBytes && verb != verbPart {
		id, err := v.long.put(client, body)
		if err != nil {
			v.refuse(to, err)
			return
		}
		m.Header.Set(headerTransfer, id)
		m.Header.Set(headerSize, strconv.Itoa(len(body)))
		m.Data = body[:partBytes]
	}
	v.nc.PublishMsg(m) // fails only when the agent ends, and then the client sees that
}

// refuse sends an error with its hint and exit code.
func (v *Service) refuse(to string, err error) {
	m := nats.NewMsg(to)
	code, body := encodeError(err)
	m.Header.Set(headerError, "failed")
	m.Header.Set(headerCode, code)
	m.Data = body
	v.nc.PublishMsg(m)
}

// Publish pushes an event to a client; it fits the type Publish. An event to
// a client that is gone goes nowhere.
func (v *Service) Publish(client string, e Event) {
	if v.server.login(client) == nil {
		return
	}
	e.Error, e.Hint = cut(e.Error), cut(e.Hint)
	if b, err := json.Marshal(e); err == nil {
		v.nc.Publish(eventSubject(client), b)
	}
}

// watch ends the connections of clients whose lease is over.
func (v *Service) watch() {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			v.endSilent(leaseTime)
			v.long.expire()
		case <-v.done:
			return
		}
	}
}

func (v *Service) endSilent(after time.Duration) {
	for _, l := range v.server.everyone() {
		if l.silent() > after {
			l.link.close() // its goroutine then tells of the end
		}
	}
}

// gone forgets a client and tells the handler.
func (v *Service) gone(client string) {
	v.long.drop(client)
	defer func() { _ = recover() }() // a handler's bug must not end the agent
	v.h.Gone(client)
}

// Close stops answering. Every client is gone when it returns: requests have
// ended, or were given time to, and the handler is not called any more.
func (v *Service) Close() error {
	var err error
	v.close.Do(func() {
		close(v.done)
		v.wg.Wait()
		err = v.micro.Stop()
		if errors.Is(err, nats.ErrConnectionClosed) {
			err = nil
		}
		var ends sync.WaitGroup
		for _, l := range v.server.everyone() {
			ends.Go(func() { l.end(v.gone); l.link.close() })
		}
		ends.Wait()
		v.server.onGone(nil) // not before: a link that ends by itself just now must tell too
		v.nc.Close()
	})
	return err
}
