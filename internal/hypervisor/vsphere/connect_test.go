package vsphere

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"
	vimxml "github.com/vmware/govmomi/vim25/xml"
	"go.uber.org/goleak"

	"thru/internal/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// simulated starts a simulated server with TLS; change may alter its objects
// first.
func simulated(t *testing.T, model *simulator.Model, change func(*simulator.Model)) Config {
	t.Helper()
	if err := model.Create(); err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(model)
	}
	model.Service.TLS = new(tls.Config)
	model.Service.Listen = &url.URL{Host: "127.0.0.1:0", User: url.UserPassword("reader@vsphere.local", "hush-7f3a")}
	s := model.Service.NewServer()
	t.Cleanup(func() { s.Close(); model.Remove() })
	return Config{URL: s.URL.Host, User: "reader@vsphere.local", Password: secret("hush-7f3a"), Insecure: true}
}

func secret(s string) func() (string, error) { return func() (string, error) { return s, nil } }

// dial connects to a simulated server for the duration of a test.
func dial(t *testing.T, cfg Config) *Client {
	t.Helper()
	c, err := Dial(t.Context(), cfg)
	if err != nil {
		t.Fatalf("%v (%s)", err, fault.Hint(err))
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func TestAddresses(t *testing.T) {
	for _, tc := range []struct{ url, user, name, addr, wrong string }{
		{url: "vc.example", user: "ro", name: "vsphere://ro@vc.example", addr: "vc.example:443"},
		{url: "vsphere://ro@vsphere.local@vc.example:8443", name: "vsphere://ro@vsphere.local@vc.example:8443", addr: "vc.example:8443"},
		{url: "https://[2001:db8::1]/sdk", user: "ro", name: "vsphere://ro@[2001:db8::1]", addr: "[2001:db8::1]:443"},
		{url: "vsphere://ro:geheim@vc.example", wrong: "has a password"},
		{url: "vsphere://ro@", wrong: "has no host"},
		{url: "vc.example?x=1", wrong: "has no host"},
	} {
		c, u, err := target(Config{URL: tc.url, User: tc.user})
		if tc.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), tc.wrong) || strings.Contains(err.Error(), "geheim") || fault.Code(err) != fault.Usage {
				t.Errorf("%s: %v", tc.url, err)
			}
			continue
		}
		if err != nil || c.name != tc.name || c.addr != tc.addr || u.Path != "/sdk" || u.User != nil {
			t.Errorf("%s: %+v, %v, %v", tc.url, c, u, err)
		}
	}
}

// TestRefusals verifies the errors where no session is established.
func TestRefusals(t *testing.T) {
	cfg := simulated(t, simulator.ESX(), nil)
	web := httptest.NewTLSServer(http.NotFoundHandler())
	defer web.Close()
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	starting := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }))
	defer starting.Close()
	odd := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("<namespaces><namespace><name>urn:other</name><version>1</version></namespace></namespaces>"))
	}))
	defer odd.Close()
	mute, drips, endless, hangsUp := stuck(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = gone.Close()
	changed := errors.New("it is another one than before")
	for name, tc := range map[string]struct {
		change      func(*Config)
		words, hint string
	}{
		"password": {func(c *Config) { c.Password = secret("wrong") }, "user name or password is wrong", "reader@vsphere.local"},
		"unpinned": {func(c *Config) { c.Insecure = false }, "is not accepted: x509:", "fingerprint"},
		"changed": {func(c *Config) {
			c.Insecure, c.Pin = false, func(string, [32]byte) error { return fault.Failf("ask its owner", "pins: %w", changed) }
		}, "is not accepted: pins: it is another one than before", "ask its owner"},
		"web":      {func(c *Config) { c.URL = web.Listener.Addr().String() }, "neither a vCenter nor an ESXi host: it answers 404", "port of its web service"},
		"plain":    {func(c *Config) { c.URL = plain.Listener.Addr().String() }, "it does not speak TLS", "port of its web service"},
		"other":    {func(c *Config) { c.URL = odd.Listener.Addr().String() }, "it does not speak vim25", "port of its web service"},
		"starting": {func(c *Config) { c.URL = starting.Listener.Addr().String() }, "may still be starting", ""},
		"refused":  {func(c *Config) { c.URL = gone.Addr().String() }, "connection refused", "check address and port"},
		"silent":   {func(c *Config) { c.URL = silent.Addr().String() }, "no answer in time", "firewall"},
		"mute":     {func(c *Config) { c.URL = mute.Listener.Addr().String() }, "no answer in time", "busy vCenter"},
		"drips":    {func(c *Config) { c.URL = drips.Listener.Addr().String() }, "no answer in time", "busy vCenter"},
		"endless":  {func(c *Config) { c.URL = endless.Listener.Addr().String() }, "its answer is larger than any valid one", "proxy"},
		"hangs up": {func(c *Config) { c.URL = hangsUp.Listener.Addr().String() }, "it ended the connection before its answer", "try again"},
		"unasked": {func(c *Config) {
			c.Password = func() (string, error) { return "", fault.Usagef("say it", "no password") }
		}, "no password", "say it"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := cfg
			tc.change(&cfg)
			most := usualBounds()
			switch name {
			case "silent":
				most.connect = 100 * time.Millisecond
			case "mute":
				most.open = 100 * time.Millisecond
			case "drips":
				most.answer = 300 * time.Millisecond
			case "endless":
				most.bytes = 64 << 10
			}
			c, err := connect(t.Context(), cfg, most)
			if err == nil {
				_ = c.Close()
				t.Fatal("it connects")
			}
			if !strings.Contains(err.Error(), tc.words) || !strings.Contains(fault.Hint(err), tc.hint) || !strings.HasPrefix(err.Error(), "vsphere: connecting to ") {
				t.Errorf("%v (%s)", err, fault.Hint(err))
			}
		})
	}
}

// stuck are servers with TLS that do not answer properly: not at all, a byte
// now and then, without end, or by closing the connection.
func stuck(t *testing.T) (mute, drips, endless, hangsUp *httptest.Server) {
	t.Helper()
	serve := func(answer http.HandlerFunc) *httptest.Server {
		s := httptest.NewTLSServer(answer)
		t.Cleanup(s.Close)
		return s
	}
	mute = serve(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	drips = serve(func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			_, _ = w.Write([]byte(" "))
			_ = http.NewResponseController(w).Flush()
			time.Sleep(10 * time.Millisecond)
		}
	})
	endless = serve(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, ".xml") {
			_, _ = fmt.Fprintf(w, "<namespaces><namespace><name>urn:vim25</name><version>%s</version></namespace></namespaces>", vim25.Version)
			return
		}
		_, _ = io.WriteString(w, `<Envelope xmlns="http://schemas.xmlsoap.org/soap/envelope/"><Body>`)
		for r.Context().Err() == nil {
			_, _ = io.WriteString(w, strings.Repeat("<more></more>", 1000))
		}
	})
	hangsUp = serve(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	return mute, drips, endless, hangsUp
}

// TestPinned verifies that the certificate is checked before the password is
// asked for.
func TestPinned(t *testing.T) {
	cfg := simulated(t, simulator.ESX(), nil)
	var asked []string
	cfg.Insecure = false
	cfg.Pin = func(addr string, sum [32]byte) error {
		if addr != cfg.URL || sum == [32]byte{} {
			t.Errorf("pin %s %x", addr, sum)
		}
		asked = append(asked, "pin")
		return nil
	}
	cfg.Password = func() (string, error) { asked = append(asked, "password"); return "hush-7f3a", nil }
	c := dial(t, cfg)
	if len(asked) < 2 || asked[0] != "pin" || asked[len(asked)-1] != "password" {
		t.Errorf("asked %v", asked)
	}
	if want := "vsphere://reader@vsphere.local@" + cfg.URL; c.Name() != want {
		t.Errorf("name %s, want %s", c.Name(), want)
	}
	if p := c.product(); !strings.HasPrefix(p, "VMware ESXi ") || !strings.Contains(p, " build-") {
		t.Errorf("product %q", p)
	}
}

// TestLostSession verifies that a session which the server has ended is
// started again once, and that a call which fails for another reason is not
// repeated.
func TestLostSession(t *testing.T) {
	c := dial(t, simulated(t, simulator.VPX(), nil))
	if _, err := methods.Logout(t.Context(), c.vim, &types.Logout{This: *c.vim.ServiceContent.SessionManager}); err != nil {
		t.Fatal(err)
	}
	calls := 0
	view := func(vc *vim25.Client) error {
		calls++
		_, err := methods.CreateContainerView(t.Context(), vc, &types.CreateContainerView{This: *vc.ServiceContent.ViewManager, Container: vc.ServiceContent.RootFolder})
		return err
	}
	if err := c.again(t.Context(), view); err != nil || calls != 2 || c.logins != 2 {
		t.Errorf("%v after %d calls, %d logins", err, calls, c.logins)
	}
	other := errors.New("other")
	if err := c.again(t.Context(), func(*vim25.Client) error { calls++; return other }); !errors.Is(err, other) || calls != 3 {
		t.Errorf("%v after %d calls", err, calls)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := c.again(t.Context(), view); !errors.Is(err, errClosed) {
		t.Errorf("closed: %v", err)
	}
}

// TestDirection verifies that connection errors are reported without Go's
// words about requests and sockets.
func TestDirection(t *testing.T) {
	get := func(err error) error {
		return &url.Error{Op: "Get", URL: "https://vc.example/sdk/vimServiceVersions.xml", Err: err}
	}
	dial := func(err error) error { return get(&net.OpError{Op: "dial", Net: "tcp", Err: err}) }
	for _, tc := range []struct {
		err         error
		words, hint string
	}{
		{dial(&net.DNSError{Err: "no such host", Name: "vc.example", Server: "192.0.2.53:53", IsNotFound: true}), "the name vc.example is not known", "spelling"},
		{dial(&net.DNSError{Err: "i/o timeout", Name: "vc.example", IsTimeout: true}), "the name vc.example cannot be looked up: i/o timeout", "DNS server"},
		{dial(os.NewSyscallError("connect", syscall.EHOSTUNREACH)), syscall.EHOSTUNREACH.Error(), ""},
		{get(io.EOF), "it ended the connection before its answer", "try again"},
		{get(context.DeadlineExceeded), "no answer in time", "firewall"},
		{fmt.Errorf("reading: %w", io.ErrUnexpectedEOF), "it ended the connection before its answer", "try again"},
		{get(fmt.Errorf("reading: %w", vimxml.UnmarshalError("expected element type <Envelope> but have <html>"))), "its answer is not from a vSphere server", "proxy"},
		{&vimxml.SyntaxError{Msg: "illegal character code U+001B", Line: 2}, "its answer is not from a vSphere server", "proxy"},
		{errors.New("other"), "", ""},
	} {
		if words, hint := pathWords(tc.err); !strings.HasPrefix(words, tc.words) || (words == "") != (tc.words == "") || !strings.Contains(hint, tc.hint) {
			t.Errorf("%v: %q (%s)", tc.err, words, hint)
		}
	}
}

func TestServiceVersions(t *testing.T) {
	ns := func(name, version string, prior ...string) (s serviceVersions) {
		s.Namespaces = append(s.Namespaces, struct {
			Name    string   `xml:"name"`
			Version string   `xml:"version"`
			Prior   []string `xml:"priorVersions>version"`
		}{name, version, prior})
		return s
	}
	for _, tc := range []struct {
		told serviceVersions
		want string
	}{
		{ns("urn:vim25", "6.7.3", "6.7.2"), "6.7.3"},
		{ns("urn:vim25", "99.0", vim25.Version), vim25.Version},
		{ns("urn:sms", "4.0"), ""},
		{serviceVersions{}, ""},
	} {
		if got, err := tc.told.choose(); got != tc.want || (err != nil) != (tc.want == "") {
			t.Errorf("%+v: %q, %v", tc.told, got, err)
		}
	}
}
