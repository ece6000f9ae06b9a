package bus

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"thru/internal/fault"
)

// uplink is a process's connection to the bus of a fleet: the hub of `thru control` by a
// join string, or an external NATS.
type uplink struct {
	id      identity
	where   string // name of the other side in messages
	options []nats.Option
	explain func(error) error
	seen    *lastError
	cancel  context.CancelFunc // ends an attempt to connect
}

// uplinkConfig selects the bus: one of join and nats is set.
type uplinkConfig struct {
	join   *Join
	nats   *NATSConfig
	device string // to send from (Linux)
	source string // address to send from
}

// uplink prepares to connect. A join string must be for one of the privileges; its bearer is
// identified by the key given, or by a new one.
func (w uplinkConfig) uplink(key func() (identity, error), privileges ...string) (*uplink, error) {
	if (w.join == nil) == (w.nats == nil) {
		return nil, errors.New("bus: reaching a fleet: either a join string or a NATS server is needed")
	}
	ctx, cancel := context.WithCancel(context.Background())
	t := &uplink{seen: &lastError{}, cancel: cancel}
	var err error
	if w.join != nil {
		err = t.viaHub(ctx, w, key, privileges)
	} else {
		err = t.viaNATS(ctx, w)
	}
	if err != nil {
		cancel()
		return nil, err
	}
	return t, nil
}

func (t *uplink) viaHub(ctx context.Context, w uplinkConfig, key func() (identity, error), privileges []string) (err error) {
	if !slices.Contains(privileges, w.join.Privilege) {
		return fault.Usagef("get the right one from `thru control`: it prints one for agents (`thru serve`), one to operate (run tests)",
			"bus: the join string grants %q, but %q is needed here", w.join.Privilege, privileges[0])
	}
	if t.id, err = key(); err != nil {
		return err
	}
	conf := DialConfig{Addrs: w.join.Control, Secret: w.join.Secret, Pin: w.join.Pin, Timeout: dialTime, Device: w.device, LocalAddr: w.source}
	t.where = w.join.Name
	t.where = cmp.Or(t.where, w.join.Control[0])
	t.explain = func(err error) error { return hubError(t.where, w.join, err) }
	t.options = []nats.Option{
		nats.SetCustomDialer(hubDialer{ctx, conf, t.seen}), nats.SkipHostLookup(), nats.IgnoreDiscoveredServers(),
		nats.UserInfo(w.join.Privilege, string(w.join.Secret)), nats.Nkey(t.id.pub, t.id.signFor(w.join.CertSHA256)),
	}
	return nil
}

func (t *uplink) viaNATS(ctx context.Context, w uplinkConfig) error {
	id, login, err := w.nats.login()
	if err != nil {
		return err
	}
	servers, err := w.nats.servers()
	if err != nil {
		return err
	}
	secure, err := w.nats.tls()
	if err != nil {
		return err
	}
	dial := net.Dialer{Control: socketControl(w.device), KeepAliveConfig: keepAlive()}
	if ip := net.ParseIP(w.source); ip != nil {
		dial.LocalAddr = &net.TCPAddr{IP: ip}
	}
	t.id, t.where = id, w.nats.URL
	t.explain = func(err error) error { return w.nats.explain(id.pub, err) }
	t.options = append(login, nats.Secure(secure), nats.CustomInboxPrefix("thru.re."+id.pub+"."+wordOwn), nats.SetCustomDialer(natsDialer{ctx, dial, t.seen}),
		func(o *nats.Options) error { o.Url, o.Servers = servers[0], servers; return nil })
	return nil
}

// connect logs in. Without the option to retry for ever, it returns the first failure.
func (t *uplink) connect(more ...nats.Option) (*nats.Conn, error) {
	options := slices.Concat([]nats.Option{
		nats.Timeout(dialTime), nats.FlusherTimeout(aliveEvery), nats.PingInterval(pingEvery), nats.MaxPingsOutstanding(pingsOut),
		nats.MaxReconnects(-1), nats.CustomReconnectDelay(reconnectDelay), nats.IgnoreAuthErrorAbort(),
	}, t.options, more)
	nc, err := nats.Connect("nats://thru", options...)
	if err != nil {
		t.cancel()
		return nil, t.why(err)
	}
	return nc, nil
}

// why translates an error of the library; where that says only that no server answered,
// it takes the error of the last attempt.
func (t *uplink) why(err error) error {
	if errors.Is(err, nats.ErrNoServers) {
		if last := t.seen.Load(); last != nil {
			err = *last
		}
	}
	return t.explain(err)
}

// hubDialer connects to a hub as to the agent of a pair: its certificate is pinned.
type hubDialer struct {
	ctx  context.Context
	conf DialConfig
	seen *lastError
}

// Dial implements nats.CustomDialer.
func (d hubDialer) Dial(string, string) (net.Conn, error) {
	won, err := d.conf.reach(d.ctx)
	if err != nil {
		d.seen.Store(&err)
		return nil, err
	}
	return won.conn, nil
}

// hubError explains why a hub rejects a login.
func hubError(where string, j *Join, err error) error {
	var hinted *fault.Error
	user := errors.Is(err, nats.ErrAuthorization) && (j.Privilege == PrivilegeUser || j.Privilege == loginOIDC)
	switch {
	case errors.As(err, &hinted): // the text for an agent fits a controller too
		return &fault.Error{Code: hinted.Code, Hint: strings.ReplaceAll(hinted.Hint, "thru serve", "thru control"), Err: err}
	case user && j.OIDC != nil:
		return fault.Failf("log in again: thru login NAME; what you may is configured there (thru control --oidc-role)", "bus: the controller %s does not accept your login: it has expired or was revoked, or none of your groups has a role: %w", where, ErrSecret)
	case user:
		return fault.Failf("ask an administrator for a new one, and run `thru join NAME --replace` here", "bus: your token for the controller %s is not valid: it has expired or was revoked: %w", where, ErrSecret)
	case errors.Is(err, nats.ErrAuthorization):
		return fault.Failf("get a new one from `thru control`, and run `thru join NAME --replace` here",
			"bus: the join string of the controller %s is not valid: %w", where, ErrSecret)
	case errors.Is(err, nats.ErrTimeout), timedOut(err):
		return fault.Failf("check the controller (overloaded) and the path (packet loss)", "bus: logging in at the controller %s: %w within %v", where, ErrTimeout, dialTime)
	}
	return fault.Failf("check whether `thru control` still runs there, and whether the network was interrupted", "bus: the connection to the controller %s: %w: %w", where, ErrLost, err)
}

// lastError is the error of the last attempt.
type lastError = atomic.Pointer[error]

// spread returns a random part of a time, so that many hosts do not act at once.
func spread(most time.Duration) time.Duration { return rand.N(max(most, 1)) }
