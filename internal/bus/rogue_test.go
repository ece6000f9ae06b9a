package bus_test

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"thru/internal/bus"
	"thru/internal/bus/bustest"
)

// thruDialer makes the TLS handshake as thru does, and trusts any certificate.
type thruDialer string

func (d thruDialer) Dial(string, string) (net.Conn, error) {
	return tls.Dial("tcp", string(d), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"thru"}})
}

// rogue is a member of a fleet that breaks the rules.
type rogue struct {
	*nats.Conn
	key        string
	violations chan error
}

// admitted returns a rogue that a hub admits.
func admitted(t testing.TB, j bus.Join) *rogue {
	t.Helper()
	r, err := rogueOfHub(t, j)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// rogueOfHub logs in with a join string and its own key.
func rogueOfHub(t testing.TB, j bus.Join, more ...nats.Option) (*rogue, error) {
	t.Helper()
	pair, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	key, _ := pair.PublicKey()
	return newRogue(t, key, append([]nats.Option{nats.SetCustomDialer(thruDialer(j.Control[0])), nats.SkipHostLookup(),
		nats.UserInfo(j.Privilege, string(j.Secret)), nats.Nkey(key, signAt(j, pair))}, more...)...)
}

// signAt signs as members of that hub do.
func signAt(j bus.Join, pair nkeys.KeyPair) func([]byte) ([]byte, error) {
	return func(nonce []byte) ([]byte, error) {
		return pair.Sign(append(append([]byte("thru hub login\n"), j.CertSHA256[:]...), nonce...))
	}
}

// rogueOfNATS logs in with a key that the server knows.
func rogueOfNATS(t testing.TB, c bus.NATSConfig, key string) (*rogue, error) {
	t.Helper()
	login, err := nats.NkeyOptionFromSeed(c.Nkey)
	if err != nil {
		t.Fatal(err)
	}
	return newRogue(t, key, login, nats.RootCAs(c.CA), func(o *nats.Options) error { o.Servers = []string{c.URL}; return nil })
}

func newRogue(t testing.TB, key string, options ...nats.Option) (*rogue, error) {
	r := &rogue{key: key, violations: make(chan error, 64)}
	var err error
	r.Conn, err = nats.Connect("nats://x", append(options, nats.NoReconnect(),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { r.violations <- err }))...)
	if err == nil {
		t.Cleanup(r.Close)
	}
	return r, err
}

// TestRogueAgent: an agent can neither read nor send in the name of another, nor ask as an
// operator or answer as a controller; with a hub and with the configuration that NATSUsers
// returns.
func TestRogueAgent(t *testing.T) {
	forms := map[string]func(t *testing.T) (*rogue, string){
		"hub": func(t *testing.T) (*rogue, string) {
			g := openRig(t, nil)
			p := g.attach(t, bustest.New(), "bee")
			r := admitted(t, g.agent)
			return r, p.ID()
		},
		"library": func(t *testing.T) (*rogue, string) { return rogueBeside(t, library) },
		"program": func(t *testing.T) (*rogue, string) { return rogueBeside(t, program) },
	}
	const run = "AAAAAAAAAAAAAAAAAAAAAAAAAA"
	for form, open := range forms {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			r, victim := open(t)
			for _, subject := range []string{
				">", "thru.>", "thru.to.>", "thru.to." + victim + ".>", "thru.re.>", "thru.re." + victim + ".>", "thru.here.*", "thru.here." + victim,
				"thru.spool.>", "thru.spool." + victim + ".any", "thru.ack." + victim + ".>", "thru.registry.>", "_INBOX.>", "$SYS.>",
			} {
				if _, err := r.Subscribe(subject, func(*nats.Msg) {}); err != nil {
					t.Fatal(err)
				}
				wantViolation(t, r.violations, "subscribing to "+subject)
			}
			for _, subject := range []string{
				"thru.to." + victim + "." + r.key + "." + run + ".hello", "thru.to." + r.key + "." + r.key + "." + run + ".hello", "thru.re." + r.key + "." + run + "." + victim + ".r.1",
				"thru.re." + r.key + "." + run + ".registry.r.1", "thru.here." + victim, "thru.spool." + victim + ".any", "thru.alive." + r.key + "." + run, "thru.roll." + r.key,
				"thru.ack." + victim + ".name", "thru.ack." + r.key + ".name", "thru.registry." + r.key + "." + run + ".hosts", "_INBOX.x", "$SYS.REQ.SERVER.PING", "anything",
			} {
				if err := r.Publish(subject, []byte("{}")); err != nil {
					t.Fatal(err)
				}
				wantViolation(t, r.violations, "publishing to "+subject)
			}
		})
	}
}

func rogueBeside(t *testing.T, start run) (*rogue, string) {
	t.Helper()
	x := openExternal(t, 2, start)
	p, _, _ := fleetOn(t, x, bustest.New(), nil)
	r, err := rogueOfNATS(t, x.agents[1], x.agentKeys[1])
	if err != nil {
		t.Fatal(err)
	}
	return r, p.ID()
}

// TestRogueOperator: an operator can neither read another's replies, nor send requests or
// keepalives as another, nor send as an agent or a controller.
func TestRogueOperator(t *testing.T) {
	t.Parallel()
	g := openRig(t, nil)
	p := g.attach(t, bustest.New(), "bee")
	other := admitted(t, g.operate)
	r := admitted(t, g.operate)
	const run = "AAAAAAAAAAAAAAAAAAAAAAAAAA"
	for _, subject := range []string{">", "thru.re.>", "thru.re." + other.key + ".>", "thru.to.>", "thru.here.>", "thru.spool.>", "thru.alive.>"} {
		if _, err := r.Subscribe(subject, func(*nats.Msg) {}); err != nil {
			t.Fatal(err)
		}
		wantViolation(t, r.violations, "subscribing to "+subject)
	}
	for _, subject := range []string{
		"thru.to." + p.ID() + "." + other.key + "." + run + ".release", "thru.alive." + other.key + "." + run, "thru.re." + other.key + "." + run + "." + p.ID() + ".event",
		"thru.here." + p.ID(), "thru.here." + r.key, "thru.spool." + p.ID() + ".any", "thru.ack." + p.ID() + ".name", "thru.roll." + r.key, "thru.registry." + other.key + "." + run + ".forget",
	} {
		if err := r.Publish(subject, []byte("{}")); err != nil {
			t.Fatal(err)
		}
		wantViolation(t, r.violations, "publishing to "+subject)
	}
}

// TestHubDoor: the secret alone, another's key, an old signature or the wrong privilege
// are rejected.
func TestHubDoor(t *testing.T) {
	t.Parallel()
	g := openRig(t, nil)
	pair, _ := nkeys.CreateUser()
	key, _ := pair.PublicKey()
	other, _ := nkeys.CreateUser()
	account, _ := nkeys.CreateAccount()
	accountKey, _ := account.PublicKey()
	var replayed []byte
	signOnce := func(nonce []byte) ([]byte, error) {
		if replayed == nil {
			replayed, _ = signAt(g.agent, pair)(nonce)
		}
		return replayed, nil
	}
	if _, err := rogueOfHub(t, g.agent, nats.Nkey(key, signOnce)); err != nil {
		t.Fatal("the right one:", err)
	}
	for name, c := range map[string]struct {
		user    string
		secret  bus.Secret
		options []nats.Option
	}{
		"a signature of another login":    {"agent", g.agent.Secret, []nats.Option{nats.Nkey(key, signOnce)}},
		"another's key":                   {"agent", g.agent.Secret, []nats.Option{nats.Nkey(key, signAt(g.agent, other))}},
		"a key of an account":             {"agent", g.agent.Secret, []nats.Option{nats.Nkey(accountKey, signAt(g.agent, account))}},
		"the secret of agents, operating": {"operate", g.agent.Secret, []nats.Option{nats.Nkey(key, signAt(g.agent, pair))}},
		"the secret of operators":         {"agent", g.operate.Secret, []nats.Option{nats.Nkey(key, signAt(g.agent, pair))}},
		"a signature for another hub":     {"agent", g.agent.Secret, []nats.Option{nats.Nkey(key, signAt(bus.Join{CertSHA256: [32]byte{1}}, pair))}},
		"a signature of the nonce alone":  {"agent", g.agent.Secret, []nats.Option{nats.Nkey(key, pair.Sign)}},
		"no secret":                       {"agent", "", []nats.Option{nats.Nkey(key, signAt(g.agent, pair))}},
		"a privilege of agents":           {"measure", g.agent.Secret, []nats.Option{nats.Nkey(key, signAt(g.agent, pair))}},
	} {
		_, err := rogueOfHub(t, g.agent, append(c.options, nats.UserInfo(c.user, string(c.secret)))...)
		if !errors.Is(err, nats.ErrAuthorization) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := newRogue(t, "", nats.SetCustomDialer(thruDialer(g.agent.Control[0])), nats.SkipHostLookup(),
		nats.UserInfo("agent", string(g.agent.Secret))); !errors.Is(err, nats.ErrAuthorization) {
		t.Errorf("the secret without a key: %v", err)
	}
	if _, err := bus.DialFleet(t.Context(), bus.FleetConfig{Join: &g.agent}); err == nil || !strings.Contains(err.Error(), "operate") {
		t.Errorf("an operator with the join string of agents: %v", err)
	}
}

// TestName: the first key that uses a name owns it; another that claims it is listed as
// refused, learns so, and may have it after it was forgotten.
func TestName(t *testing.T) {
	t.Parallel()
	dir := t.TempDir() + "/state"
	book, err := bus.OpenNameBook(dir)
	if err != nil {
		t.Fatal(err)
	}
	g := openRigAt(t, bus.HubConfig{Addrs: []string{"127.0.0.1:0"}}, bus.RegistryConfig{Book: book})
	first := g.attach(t, bustest.New(), "bee")
	f := g.operator(t)
	waitHosts(t, f, func(h []bus.Host) bool { return named(h, "bee") != nil })
	liar := g.attach(t, bustest.New(), "bee")
	status := waitStatus(t, liar, func(s bus.Status) bool { return s.Connected && s.Err != nil })
	if !strings.Contains(status.Err.Error(), "bee") {
		t.Error(status.Err)
	}
	hosts := waitHosts(t, f, func(h []bus.Host) bool { return len(h) == 2 })
	for _, h := range hosts {
		if (h.ID == liar.ID()) != (h.Refused != "") {
			t.Errorf("%+v", h)
		}
	}
	first.Close()
	again, err := bus.OpenNameBook(dir) // as a restarted controller does
	if err != nil {
		t.Fatal(err)
	}
	if refused, err := again.Claim("bee", liar.ID(), nil, time.Now()); refused == "" || err != nil {
		t.Error("the name does not stay with its key:", refused, err)
	}
	if err := f.Forget(t.Context(), "bee"); err != nil {
		t.Fatal(err)
	}
	waitHosts(t, f, func(h []bus.Host) bool {
		b := named(h, "bee")
		return b != nil && b.ID == liar.ID() && b.Online // the name is free before the host announces itself
	})
	if err := f.Forget(t.Context(), "nobody"); err == nil {
		t.Error("a name that nobody has was forgotten")
	}
}

// TestLinksOfKey: one member cannot take all places.
func TestLinksOfKey(t *testing.T) {
	t.Parallel()
	g := openRig(t, nil)
	pair, _ := nkeys.CreateUser()
	key, _ := pair.PublicKey()
	for range 8 {
		if _, err := rogueOfHub(t, g.agent, nats.Nkey(key, signAt(g.agent, pair))); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := rogueOfHub(t, g.agent, nats.Nkey(key, signAt(g.agent, pair))); !errors.Is(err, nats.ErrAuthorization) {
		t.Errorf("a ninth connection: %v", err)
	}
}

// TestPaceOfAgent: an agent is slowed down beyond its burst, an operator is not.
func TestPaceOfAgent(t *testing.T) {
	t.Parallel()
	g := openRig(t, nil)
	r := admitted(t, g.agent)
	began := time.Now()
	for range 24 { // 8 MiB more than the burst, at 4 MiB/s
		r.Publish("thru.here."+r.key, make([]byte, 1<<20-100))
	}
	if err := r.FlushTimeout(patience); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < time.Second {
		t.Errorf("24 MiB of an agent took %v", took)
	}
}

// TestFlood: an agent that floods its operator is cut off, and no other.
func TestFlood(t *testing.T) {
	t.Parallel()
	g := openRig(t, nil)
	good := g.attach(t, bustest.New(), "good")
	bad := admitted(t, g.agent)
	replies := make(chan string, 1)
	if _, err := bad.Subscribe("thru.to."+bad.key+".>", func(m *nats.Msg) {
		bad.Publish(m.Reply, []byte(`{"wire_major":2,"hostname":"bad"}`))
		select {
		case replies <- m.Reply:
		default:
		}
	}); err != nil {
		t.Fatal(err)
	}
	f := g.operator(t)
	victim, fine := f.Client(bad.key), f.Client(good.ID())
	if _, err := victim.Hello(t.Context()); err != nil {
		t.Fatal(err)
	}
	to := <-replies
	var stop atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for !stop.Load() && bad.Publish(to, make([]byte, 1000)) == nil {
		}
	}()
	select {
	case <-victim.Lost():
	case <-time.After(patience):
		t.Error("the flood goes on")
	}
	if err := victim.Err(); !errors.Is(err, bus.ErrLost) || !strings.Contains(err.Error(), "sends too many") {
		t.Error(err)
	}
	for range 20 {
		if _, err := fine.Hello(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	stop.Store(true)
	bad.Close()
	<-done
	if f.Err() != nil {
		t.Error(f.Err())
	}
}

// TestFloodOfPresence: a registry keeps working while an agent floods it with presence messages.
func TestFloodOfPresence(t *testing.T) {
	t.Parallel()
	g := openRig(t, nil)
	bad := admitted(t, g.agent)
	here := func(name string) []byte {
		b, _ := json.Marshal(bus.Presence{Instance: "AAAAAAAAAAAAAAAAAAAAAAAAAA", Name: name, WireMajor: bus.WireMajor})
		return b
	}
	for range 20000 {
		bad.Publish("thru.here."+bad.key, here("worse"))
		bad.Publish("thru.here."+bad.key, []byte("{"))
	}
	bad.Publish("thru.spool."+bad.key+".any", []byte("{"))
	bad.Publish("thru.re.x.y."+bad.key+".event", []byte("{"))
	if err := bad.Flush(); err != nil {
		t.Fatal(err)
	}
	g.attach(t, bustest.New(), "good")
	o := g.operator(t)
	waitFor(t, func() ([]bus.Host, bool) {
		hosts, err := o.Hosts(t.Context())
		if err != nil && !errors.Is(err, bus.ErrTimeout) { // a slow machine reads the flood for longer than one question waits
			t.Fatal(err)
		}
		return hosts, named(hosts, "good") != nil
	})
}

// TestNothingWaitsForARogue: an agent cannot make the hub queue messages to itself, nor
// receive one message many times.
func TestNothingWaitsForARogue(t *testing.T) {
	t.Parallel()
	g := openRig(t, nil)
	r := admitted(t, g.agent)
	if _, err := r.Subscribe("thru.here."+r.key, func(*nats.Msg) {}); err != nil {
		t.Fatal(err)
	}
	wantViolation(t, r.violations, "hearing its own presence")
	for range 9 {
		if _, err := r.Subscribe("thru.to."+r.key+".>", func(*nats.Msg) {}); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case err := <-r.violations:
		if !strings.Contains(strings.ToLower(err.Error()), "subscriptions") {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Error("an agent may subscribe to one thing any number of times")
	}
	o := admitted(t, g.operate)
	for range 100 {
		if _, err := o.Subscribe("thru.re."+o.key+".>", func(*nats.Msg) {}); err != nil {
			t.Fatal(err)
		}
	}
	if err := o.FlushTimeout(patience); err != nil {
		t.Errorf("an operator, who has a subscription for each host: %v", err)
	}
}

// TestRunsOfKey: one operator with many clients does not lock out another, and gets the
// reason; a reply to another subject is not sent.
func TestRunsOfKey(t *testing.T) {
	t.Parallel()
	g := openRig(t, nil)
	p := g.attach(t, bustest.New(), "bee")
	waitStatus(t, p, func(s bus.Status) bool { return s.Connected })
	r := admitted(t, g.operate)
	replies := make(chan *nats.Msg, 1024)
	if _, err := r.ChanSubscribe("thru.re."+r.key+".>", replies); err != nil {
		t.Fatal(err)
	}
	ask := func(run int, rest string) {
		id := fmt.Sprintf("%026s", strings.Map(func(c rune) rune { return 'A' + c - '0' }, fmt.Sprint(run)))
		id = strings.ReplaceAll(id, "0", "A")
		for _, x := range [][2]string{{"thru.to." + p.ID() + "." + r.key + "." + id + ".clock", p.ID()}, {"thru.registry." + r.key + "." + id + ".hosts", "registry"}} {
			r.PublishMsg(&nats.Msg{Subject: x[0], Reply: "thru.re." + r.key + "." + id + "." + x[1] + ".r." + rest, Data: []byte("{}")})
		}
	}
	for i := range 300 {
		ask(i, "1")
	}
	refused := 0
	for range 2 * 300 {
		m := <-replies
		if m.Header.Get("Nats-Service-Error") != "" {
			refused++
		}
	}
	if refused != 300-64+300-128 {
		t.Errorf("%d of 300 clients of one key at two places were refused", refused)
	}
	if _, err := g.operator(t).Client(p.ID()).Hello(t.Context()); err != nil {
		t.Errorf("another operator: %v", err)
	}
	ask(0, "2.3") // one token more
	ask(0, "4")
	for range 3 {
		select {
		case m := <-replies:
			if strings.Contains(m.Subject, p.ID()) && !strings.HasSuffix(m.Subject, ".alive") && strings.HasSuffix(m.Subject, ".2.3") {
				t.Errorf("a reply to %s", m.Subject)
			}
		case <-time.After(patience):
			t.Fatal("no reply")
		}
	}
}

// TestGapIsAskedForOnce: further events after a missing one do not each request all of
// them again.
func TestGapIsAskedForOnce(t *testing.T) {
	t.Parallel()
	g := openRig(t, nil)
	bad := admitted(t, g.agent)
	var asked atomic.Int32
	replies := make(chan string, 1)
	if _, err := bad.Subscribe("thru.to."+bad.key+".>", func(m *nats.Msg) {
		if strings.HasSuffix(m.Subject, ".again") {
			asked.Add(1)
			return
		}
		bad.Publish(m.Reply, []byte(`{"wire_major":2,"hostname":"bad"}`))
		select {
		case replies <- m.Reply:
		default:
		}
	}); err != nil {
		t.Fatal(err)
	}
	c := g.operator(t).Client(bad.key)
	if _, err := c.Hello(t.Context()); err != nil {
		t.Fatal(err)
	}
	to, _, _ := strings.Cut(<-replies, ".r.")
	report := func(number int) {
		bad.PublishMsg(&nats.Msg{Subject: to + ".event", Header: nats.Header{"Thru-Number": {fmt.Sprint(number)}}, Data: fmt.Appendf(nil, `{"kind":"done","session":"%d"}`, number)})
	}
	for n := range 100 { // the first is missing
		report(n + 2)
	}
	report(1)
	select {
	case e := <-c.Events():
		if e.Session != "1" {
			t.Errorf("%+v", e)
		}
	case <-time.After(patience):
		t.Fatal("no event")
	}
	if _, err := c.Hello(t.Context()); err != nil { // after all requests before it
		t.Fatal(err)
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("a gap was asked for %d times", n)
	}
}
