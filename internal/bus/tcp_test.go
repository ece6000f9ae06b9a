package bus_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"thru/internal/bus"
	"thru/internal/bus/bustest"
	"thru/internal/fault"
)

const otherID = "VICTIMVICTIMVICTIMVICTIM22"

func TestWrongSecret(t *testing.T) {
	s, _ := serve(t, bustest.New(), bus.ServerConfig{})
	for _, secret := range []bus.Secret{"", "wrong"} {
		conf := config(s)
		conf.Secret = secret
		_, err := bus.Dial(t.Context(), conf)
		if !errors.Is(err, bus.ErrSecret) || !strings.Contains(fault.Hint(err), "thru join") {
			t.Errorf("%v, hint %q", err, fault.Hint(err))
		}
	}
}

func TestNoAuth(t *testing.T) {
	s, _ := serve(t, bustest.New(), bus.ServerConfig{NoAuth: true})
	if s.Join(nil).Secret != "" {
		t.Error("a join string of an agent without authentication has a secret")
	}
	dial(t, s)
}

func TestWrongPin(t *testing.T) {
	h := bustest.New()
	s, _ := serve(t, h, bus.ServerConfig{})
	other, err := bus.NewState()
	if err != nil {
		t.Fatal(err)
	}
	conf := config(s)
	conf.Pin = bus.Join{CertSHA256: other.CertSHA256()}.Pin
	_, err = bus.Dial(t.Context(), conf)
	if !errors.Is(err, bus.ErrCertificate) || fault.Hint(err) == "" {
		t.Error(err)
	}
	if len(h.Calls()) != 0 {
		t.Error("a client with the wrong pin was heard")
	}
}

// stranger logs in with its own NATS client, which breaks the rules.
func stranger(t *testing.T, s *bus.Server, id string, more ...nats.Option) (*nats.Conn, chan error, error) {
	t.Helper()
	j := s.Join(nil)
	violations := make(chan error, 16)
	nc, err := nats.Connect("nats://x", append(more, nats.SkipHostLookup(), nats.NoReconnect(),
		nats.SetCustomDialer(tlsDialer(j.Control[0])), nats.UserInfo(id, string(j.Secret)),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { violations <- err }))...)
	if err == nil {
		t.Cleanup(nc.Close)
	}
	return nc, violations, err
}

// ownInbox sets the inbox where a stranger may receive replies.
func ownInbox() nats.Option { return nats.CustomInboxPrefix("_INBOX." + strangerID) }

type tlsDialer string

func (d tlsDialer) Dial(string, string) (net.Conn, error) {
	return tls.Dial("tcp", string(d), &tls.Config{InsecureSkipVerify: true})
}

const strangerID = "STRANGERSTRANGERSTRANGER22"

func TestPermissions(t *testing.T) {
	h := bustest.New()
	s, _ := serve(t, h, bus.ServerConfig{})
	nc, violations, err := stranger(t, s, strangerID)
	if err != nil {
		t.Fatal(err)
	}
	for _, subject := range []string{">", "_INBOX.>", "_INBOX." + otherID + ".>", "thru.2.>", "thru.hello.*", "$SRV.>", "$SYS.>"} {
		if _, err := nc.Subscribe(subject, func(*nats.Msg) {}); err != nil {
			t.Fatal(err)
		}
		wantViolation(t, violations, "subscribing to "+subject)
	}
	for _, subject := range []string{
		"thru.2." + otherID + ".release", "thru.hello." + otherID, "_INBOX." + otherID + ".event",
		"_INBOX." + strangerID + ".event", "$SRV.PING", "$SYS.REQ.SERVER.PING", "anything",
	} {
		if err := nc.Publish(subject, []byte("{}")); err != nil {
			t.Fatal(err)
		}
		nc.Flush()
		wantViolation(t, violations, "publishing to "+subject)
	}
	if len(h.Calls()) != 0 {
		t.Errorf("the agent heard %v", h.Calls())
	}
}

func wantViolation(t *testing.T, violations <-chan error, what string) {
	t.Helper()
	select {
	case err := <-violations:
		if !errors.Is(err, nats.ErrPermissionViolation) {
			t.Errorf("%s: %v", what, err)
		}
	case <-time.After(patience):
		t.Errorf("%s was allowed", what)
	}
}

// TestReplyGoesToTheAsker: the agent may publish anywhere, so a client must not be able to
// set another's inbox, or a verb, as its reply subject.
func TestReplyGoesToTheAsker(t *testing.T) {
	h := bustest.New()
	s, _ := serve(t, h, bus.ServerConfig{})
	victim := dial(t, s)
	victimID := clientID(t, victim, h)
	nc, _, err := stranger(t, s, strangerID, ownInbox())
	if err != nil {
		t.Fatal(err)
	}
	before := len(h.Calls())
	for _, reply := range []string{"_INBOX." + victimID + ".event", "thru.2." + victimID + ".release", "_INBOX." + strangerID} {
		if err := nc.PublishRequest("thru.hello."+strangerID, reply, []byte(`{"session":"x","kind":"done"}`)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := nc.Request("thru.hello."+strangerID, []byte("{}"), patience); err != nil {
		t.Fatal(err) // the same subject: earlier messages are handled by then
	}
	if got := len(h.Calls()) - before; got != 1 {
		t.Errorf("%d requests were answered, want the one with a reply of its own", got)
	}
}

func TestClientIDs(t *testing.T) {
	s, _ := serve(t, bustest.New(), bus.ServerConfig{})
	if _, _, err := stranger(t, s, strangerID); err != nil {
		t.Fatal(err)
	}
	for name, id := range map[string]string{
		"in use": strangerID, "short": "SHORT", "wildcard": strings.Repeat("*", 26), "dots": "A.B" + strings.Repeat("C", 26),
		"empty": "", "blank": strings.Repeat("A", 22) + " ", "long": strings.Repeat("A", 65),
	} {
		if _, _, err := stranger(t, s, id); !errors.Is(err, nats.ErrAuthorization) {
			t.Errorf("an id that is %s: %v", name, err)
		}
	}
}

// TestGarbage sends invalid messages; the agent answers each with an error.
func TestGarbage(t *testing.T) {
	h := bustest.New()
	s, _ := serve(t, h, bus.ServerConfig{})
	nc, _, err := stranger(t, s, strangerID, ownInbox())
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range []string{"", "{", "[]", `"x"`, `{} {}`, `{"spec":7}`, "\x00\xff", strings.Repeat("[", 100000)} {
		r, err := nc.Request("thru.2."+strangerID+".prepare", []byte(body), patience)
		if err != nil || r.Header.Get("Nats-Service-Error-Code") != "1" {
			t.Errorf("%.20q: %v", body, err)
		}
	}
	for _, body := range []string{`{"transfer":"x","offset_bytes":1}`, `{"offset_bytes":-1}`, `{}`} {
		r, err := nc.Request("thru.2."+strangerID+".part", []byte(body), patience)
		if err != nil || r.Header.Get("Nats-Service-Error-Code") != "1" {
			t.Errorf("%s: %v", body, err)
		}
	}
	if r, err := nc.Request("thru.2."+strangerID+".prepare", []byte(`{"of_a_newer_minor":1}`), patience); err != nil || r.Header.Get("Nats-Service-Error-Code") != "" {
		t.Errorf("a field of a newer minor: %v", err)
	}
}

// TestHelloOfAnotherMajor: the reply comes, so that the client can say which side is older.
func TestHelloOfAnotherMajor(t *testing.T) {
	s, _ := serve(t, bustest.New(), bus.ServerConfig{})
	nc, _, err := stranger(t, s, strangerID, ownInbox())
	if err != nil {
		t.Fatal(err)
	}
	r, err := nc.Request("thru.hello."+strangerID, []byte(`{"wire_major":7,"new":[1]}`), patience)
	var reply bus.HelloReply
	if err != nil || json.Unmarshal(r.Data, &reply) != nil || reply.WireMajor != bus.WireMajor {
		t.Errorf("%v %+v", err, reply)
	}
}

func TestServerEnds(t *testing.T) {
	h := bustest.New()
	s, v := serve(t, h, bus.ServerConfig{})
	c := dial(t, s)
	id := clientID(t, c, h)
	v.Close()
	if h.GoneTimes(id) != 1 {
		t.Error("Close of the service does not report that the client is gone")
	}
	s.Close()
	select {
	case <-c.Lost():
	case <-time.After(patience):
		t.Fatal("the client does not notice")
	}
	if err := c.Err(); !errors.Is(err, bus.ErrLost) || fault.Hint(err) == "" {
		t.Error(err)
	}
	if _, err := c.Hello(t.Context()); !errors.Is(err, bus.ErrLost) {
		t.Error(err)
	}
	if h.GoneTimes(id) != 1 {
		t.Error("Gone was called again")
	}
}

// behindProxy returns a client whose connection goes through a proxy.
func behindProxy(t *testing.T, h bus.Handler) (*bus.Client, *proxy) {
	t.Helper()
	s, _ := serve(t, h, bus.ServerConfig{})
	cut := newProxy(t, s.Join(nil).Control[0])
	conf := config(s)
	conf.Addrs = []string{cut.addr()}
	c, err := bus.Dial(t.Context(), conf)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c, cut
}

// TestClientCut cuts the connection of a client as the end of its process does.
func TestClientCut(t *testing.T) {
	h := bustest.New()
	c, cut := behindProxy(t, h)
	id := clientID(t, c, h)
	cut.close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := h.WaitGone(ctx, id); err != nil {
		t.Error("the agent does not notice:", err)
	}
	select {
	case <-c.Lost():
	case <-ctx.Done():
		t.Error("the client does not notice")
	}
}

// TestSilentCut keeps the connections open and drops all data.
func TestSilentCut(t *testing.T) {
	t.Parallel()
	h := bustest.New()
	c, cut := behindProxy(t, h)
	id := clientID(t, c, h)
	cut.stop()
	ctx, cancel := context.WithTimeout(t.Context(), 3*patience)
	defer cancel()
	select {
	case <-c.Lost():
	case <-ctx.Done():
		t.Error("the client does not notice")
	}
	if !errors.Is(c.Err(), bus.ErrLost) {
		t.Error(c.Err())
	}
	if err := h.WaitGone(ctx, id); err != nil || h.GoneTimes(id) != 1 {
		t.Error("the agent does not notice:", err)
	}
}

// proxy passes connections on until it is told to stop.
type proxy struct {
	l       net.Listener
	to      string
	mu      sync.Mutex
	conns   []net.Conn
	stopped bool
	wg      sync.WaitGroup
}

func newProxy(t *testing.T, to string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{l: l, to: to}
	p.wg.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to)
			if err != nil {
				in.Close()
				continue
			}
			p.mu.Lock()
			p.conns = append(p.conns, in, out)
			p.mu.Unlock()
			p.wg.Go(func() { p.pass(in, out) })
			p.wg.Go(func() { p.pass(out, in) })
		}
	})
	t.Cleanup(p.close)
	return p
}

func (p *proxy) addr() string { return p.l.Addr().String() }

func (p *proxy) pass(from, to net.Conn) {
	buf := make([]byte, 4096)
	for {
		n, err := from.Read(buf)
		p.mu.Lock()
		stopped := p.stopped
		p.mu.Unlock()
		if err != nil && !stopped {
			to.Close()
			return
		}
		if err != nil {
			return // a failed network reports no end
		}
		if !stopped {
			to.Write(buf[:n])
		}
	}
}

func (p *proxy) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped = true
}

func (p *proxy) close() {
	p.l.Close()
	p.mu.Lock()
	for _, c := range p.conns {
		c.Close()
	}
	p.mu.Unlock()
	p.wg.Wait()
}

// TestStuckClients: connections that never send, or stop in the handshake, disturb no other.
func TestStuckClients(t *testing.T) {
	s, _ := serve(t, bustest.New(), bus.ServerConfig{})
	addr := s.Join(nil).Control[0]
	var stuck net.Conn
	for i := range 40 {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if stuck = c; i%2 == 0 {
			c.Write([]byte{22, 3, 1, 2, 0}) // a TLS record that never continues
		}
	}
	mute, err := tlsDialer(addr).Dial("", "") // TLS, then no login
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	c := dial(t, s)
	if _, err := c.Hello(t.Context()); err != nil {
		t.Error(err)
	}
	for name, c := range map[string]net.Conn{"logs in": mute, "speaks": stuck} {
		c.SetReadDeadline(time.Now().Add(patience))
		if _, err := io.Copy(io.Discard, c); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("who never %s is not dropped", name)
		}
	}
}

func TestTwentyClients(t *testing.T) {
	h := bustest.New()
	s, v := serve(t, h, bus.ServerConfig{})
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			c, err := bus.Dial(t.Context(), config(s))
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			for range 10 {
				if _, err := bus.Call(t.Context(), c, bus.Prepare, bus.PrepareRequest{Token: fmt.Sprint(i)}); err != nil {
					t.Error(err)
				}
			}
			id := ""
			for _, call := range h.Calls() {
				if m, ok := call.Message.(bus.PrepareRequest); ok && m.Token == fmt.Sprint(i) {
					id = call.Client
				}
			}
			v.Publish(id, bus.Event{Kind: bus.EventDone, Session: fmt.Sprint(i)})
			select {
			case e := <-c.Events():
				if e.Session != fmt.Sprint(i) {
					t.Errorf("client %d hears of session %s", i, e.Session)
				}
			case <-time.After(patience):
				t.Error("no event")
			}
		})
	}
	wg.Wait()
}

// TestRefusalIsHeard: the reason of a rejected login arrives, in whatever order the
// messages come.
func TestRefusalIsHeard(t *testing.T) {
	s, _ := serve(t, bustest.New(), bus.ServerConfig{})
	conf := config(s)
	conf.Secret = "wrong"
	var wg sync.WaitGroup
	for range 60 {
		wg.Go(func() {
			if _, err := bus.Dial(t.Context(), conf); !errors.Is(err, bus.ErrSecret) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}
