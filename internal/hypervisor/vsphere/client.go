// Package vsphere reads vCenter and ESXi by their web service (the vSphere Web
// Services API, by govmomi's types): which virtual machines, hosts, switches
// and datastores there are and what they are made of, and their counters. It
// only reads.
//
// It asks for counters by number of samples, not by time (perf.go): the server would compare a time with the clock of an ESXi host,
// and where that is wrong nothing comes. clock.go and perfclock.go place what comes by comparing the clocks.
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

// Config is how a server is reached.
type Config struct {
	URL      string                                   // HOST[:PORT][/PATH], with or without vsphere:// or https://; port 443 and path /sdk unless given
	User     string                                   // name to log in by; may stand in URL
	Password func() (string, error)                   // asked once, when the server is there and its certificate is accepted
	Pin      func(addr string, sha256 [32]byte) error // decides about the certificate of HOST:PORT where the system does not trust it; nil: none is accepted
	Insecure bool                                     // any certificate is accepted
	Version  string                                   // of thru, which the server lists with its sessions
}

// logoutTime bounds the end of a session.
const logoutTime = 5 * time.Second

// Client is a session at a vCenter or an ESXi host; it is a hypervisor.Source.
// Many goroutines may use it.
type Client struct {
	name string // vsphere://USER@HOST[:PORT]
	addr string // HOST:PORT
	user string
	vim  *vim25.Client

	mu       sync.Mutex // held while a login is under way
	password string     // for a session that is lost; forgotten by Close
	logins   int        // so often a session was begun
	closed   bool
}

// Dial connects and logs in. Its errors have hints: what a person gets wrong
// most is the name, the certificate and the password. A server that hangs is
// given up after half a minute.
func Dial(ctx context.Context, cfg Config) (*Client, error) {
	return connect(ctx, cfg, usualBounds())
}

func connect(ctx context.Context, cfg Config, most bounds) (*Client, error) {
	c, u, err := target(cfg)
	if err != nil {
		return nil, err
	}
	web := soap.NewClient(u, true) // trust is judged by verify
	web.UserAgent = "thru/" + cfg.Version
	t := web.DefaultTransport()
	t.Proxy, t.DialTLSContext = nil, nil // what is asked for is near, and its certificate is its own
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

// target reads who is asked for.
func target(cfg Config) (*Client, *url.URL, error) {
	at := cfg.URL
	for _, scheme := range []string{"vsphere://", "https://"} {
		at = strings.TrimPrefix(at, scheme)
	}
	u, err := url.Parse("https://" + at)
	if err != nil || u.Hostname() == "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, nil, fault.Usagef("write vsphere://USER@HOST, such as vsphere://reader@vsphere.local@vcenter.example.com", "vsphere: reading the address %.100q: it names no host", hide(cfg.URL))
	}
	if _, has := u.User.Password(); has {
		return nil, nil, fault.Usagef("leave the password out: it would stand in the history of the shell and in the list of processes", "vsphere: reading the address %.100q: it has a password", hide(cfg.URL))
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

// hide leaves out what may be a password.
func hide(address string) string {
	if i := strings.LastIndex(address, "@"); i >= 0 {
		return "..." + address[i:]
	}
	return address
}

// open finds out that a vSphere server is there, and begins a session. A person
// who is asked for the password may take any time.
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

// login begins a session, unless somebody has since the one of that number.
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

// session is the number of the session that is in use.
func (c *Client) session() (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return 0, errClosed
	}
	return c.logins, nil
}

// again runs a call at the server. Where the session was lost meanwhile (it
// ends after 30 idle minutes, or when the server is started anew), it logs in
// once more and repeats the call as a whole: views and tokens of the old session
// are gone with it.
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

// ask is again for a call with an answer.
func ask[T any](ctx context.Context, c *Client, call func(context.Context, soap.RoundTripper) (T, error)) (told T, err error) {
	err = c.again(ctx, func(vc *vim25.Client) (err error) {
		told, err = call(ctx, vc)
		return err
	})
	return told, err
}

// Name is how it was asked for.
func (c *Client) Name() string { return c.name }

// Close ends the session there; it may be called again.
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

// product is what the server says that it is.
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

// kind is what the inventories are marked with.
const kind = measure.KindVSphere
