// Package vsphere reads vCenter and ESXi by their web service (the vSphere
// Web Services API, by govmomi's types): virtual machines, hosts, switches
// and datastores with their configuration, and counters. It only reads.
//
// It requests counters by number of samples, not by time (perf.go): the
// server would compare a time with the clock of an ESXi host, and where that
// is wrong it returns nothing. clock.go and perfclock.go place samples in
// time by comparing the clocks.
package vsphere

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"thru/internal/fault"
	"thru/internal/measure"
)

// Config describes how to reach a server.
type Config struct {
	URL      string                                   // HOST[:PORT][/PATH], with or without vsphere:// or https://; port 443 and path /sdk unless given
	User     string                                   // login name; may be part of URL
	Password func() (string, error)                   // called once, when the server is reached and its certificate is accepted
	Pin      func(addr string, sha256 [32]byte) error // decides about a certificate of HOST:PORT that the system does not trust; nil: none is accepted
	Insecure bool                                     // any certificate is accepted
	Version  string                                   // of thru; the server lists it with its sessions
}

// logoutTime limits the time of a logout.
const logoutTime = 5 * time.Second

// Client is a session on a vCenter or an ESXi host; it is a
// hypervisor.Source. Many goroutines may use it.
type Client struct {
	name string // vsphere://USER@HOST[:PORT]
	addr string // HOST:PORT
	user string
	vim  *vim25.Client

	mu       sync.Mutex // held during a login
	password string     // to log in again after a lost session; cleared by Close
	logins   int        // number of sessions so far
	closed   bool
}

// Dial connects and logs in. Its errors have hints, since people mostly get
// the name, the certificate or the password wrong. It gives up on a server
// that hangs after half a minute.
func Dial(ctx context.Context, cfg Config) (*Client, error) {
	return connect(ctx, cfg, usualBounds())
}

func connect(ctx context.Context, cfg Config, most bounds) (*Client, error) {
	c, u, err := target(cfg)
	if err != nil {
		return nil, err
	}
	web := soap.NewClient(u, true) // verify decides on trust
	web.UserAgent = "thru/" + cfg.Version
	t := web.DefaultTransport()
	t.Proxy, t.DialTLSContext = nil, nil // the server is near, and has its own certificate
	t.DialContext = (&net.Dialer{Timeout: most.connect}).DialContext
	t.TLSHandshakeTimeout = most.connect
	t.TLSClientConfig.VerifyConnection = verify(u.Hostname(), c.addr, cfg)
	web.Client.Transport = bounded{t, most}
	if err := c.open(ctx, web, cfg.Password, most.open); err != nil {
		web.CloseIdleConnections()
		return nil, c.explain("connecting to "+c.addr, err)
	}
	return c, nil
}

// target parses the server's address.
func target(cfg Config) (*Client, *url.URL, error) {
	at := cfg.URL
	for _, scheme := range []string{"vsphere://", "https://"} {
		at = strings.TrimPrefix(at, scheme)
	}
	u, err := url.Parse("https://" + at)
	if err != nil || u.Hostname() == "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, nil, fault.Usagef("write vsphere://USER@HOST, such as vsphere://reader@vsphere.local@vcenter.example.com", "vsphere: reading the address %.100q: it has no host", hide(cfg.URL))
	}
	if _, has := u.User.Password(); has {
		return nil, nil, fault.Usagef("omit the password: it would be visible in the shell's history and in the process list", "vsphere: reading the address %.100q: it has a password", hide(cfg.URL))
	}
	user := cmp.Or(cfg.User, u.User.Username())
	c := &Client{name: "vsphere://" + u.Host, addr: u.Host, user: user}
	if user != "" {
		c.name = "vsphere://" + user + "@" + u.Host
	}
	if u.Port() == "" {
		c.addr = net.JoinHostPort(u.Hostname(), "443")
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/sdk"
	}
	u.User = nil
	return c, u, nil
}

// hide removes what may be a password.
func hide(address string) string {
	if i := strings.LastIndex(address, "@"); i >= 0 {
		return "..." + address[i:]
	}
	return address
}

// open verifies that a vSphere server answers, and starts a session. Entering
// the password may take any time.
func (c *Client) open(ctx context.Context, web *soap.Client, password func() (string, error), most time.Duration) error {
	known, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	version, err := serviceVersion(known, web)
	if err != nil {
		return err
	}
	web.Namespace, web.Version = "urn:"+vim25.Namespace, version
	if c.vim, err = vim25.NewClient(known, web); err != nil {
		return err
	}
	if !c.vim.Valid() {
		return errors.Join(errNotVSphere, errors.New("it has no sessions"))
	}
	if password != nil {
		if c.password, err = password(); err != nil {
			return err
		}
	}
	in, cancelIn := context.WithTimeout(ctx, most)
	defer cancelIn()
	return c.login(in, 0)
}

// login starts a session, unless another call has replaced session number
// lost already.
func (c *Client) login(ctx context.Context, lost int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return errClosed
	case c.logins != lost:
		return nil
	}
	_, err := methods.Login(ctx, c.vim, &types.Login{This: *c.vim.ServiceContent.SessionManager, UserName: c.user, Password: c.password, Locale: "en_US"})
	if err == nil {
		c.logins++
	}
	return err
}

// session returns the number of the present session.
func (c *Client) session() (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return 0, errClosed
	}
	return c.logins, nil
}

// again calls the server. Where the session was lost meanwhile (it ends after
// 30 idle minutes, or when the server restarts), it logs in once more and
// repeats the whole call: views and tokens of the old session are gone.
func (c *Client) again(ctx context.Context, call func(*vim25.Client) error) error {
	before, err := c.session()
	if err != nil {
		return err
	}
	err = call(c.vim)
	if err == nil || ctx.Err() != nil {
		return err
	}
	now, closed := c.session()
	if closed != nil {
		return closed
	}
	if !isFault[*types.NotAuthenticated](err) && now == before {
		return err
	}
	if err := c.login(ctx, before); err != nil {
		return err
	}
	return call(c.vim)
}

// ask is again for a call with a result.
func ask[T any](ctx context.Context, c *Client, call func(context.Context, soap.RoundTripper) (T, error)) (reply T, err error) {
	err = c.again(ctx, func(vc *vim25.Client) (err error) {
		reply, err = call(ctx, vc)
		return err
	})
	return reply, err
}

// Name returns the user's name for the server.
func (c *Client) Name() string { return c.name }

// Close ends the session; it may be called again.
func (c *Client) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	c.closed, c.password = true, ""
	ctx, cancel := context.WithTimeout(context.Background(), logoutTime)
	defer cancel()
	_, err := methods.Logout(ctx, c.vim, &types.Logout{This: *c.vim.ServiceContent.SessionManager})
	c.vim.CloseIdleConnections()
	if err == nil || isFault[*types.NotAuthenticated](err) {
		return nil
	}
	return c.explain("ending the session at "+c.addr, err)
}

// product returns the server's product name.
func (c *Client) product() string {
	about := c.vim.ServiceContent.About
	name := about.Name
	if about.Version != "" {
		name += " " + about.Version
	}
	if about.Build != "" {
		name += " build-" + about.Build
	}
	return name
}

// kind marks inventories of this package.
const kind = measure.KindVSphere
