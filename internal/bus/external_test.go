package bus_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	"thru/internal/bus"
	"thru/internal/bus/bustest"
	"thru/internal/fault"
	"thru/lab"
)

// external is a NATS server configured as in docs/fleet.md.
type external struct {
	url, ca    string
	dir        string
	agents     []bus.NATSConfig
	agentKeys  []string
	operators  []bus.NATSConfig
	controller []bus.NATSConfig
	config     string
	stop       func()
	start      func()
}

// run starts a server with a configuration, and returns a function to stop it.
type run func(t testing.TB, config string) (stop func())

// openExternal admits a number of agents, two operators and two controllers.
func openExternal(t testing.TB, agents int, start run) *external {
	t.Helper()
	x := &external{dir: t.TempDir()}
	x.ca = x.certificates(t, "localhost")
	var operatorKeys, controllerKeys []string
	x.agentKeys, x.agents = x.keys(t, "agent", agents)
	operatorKeys, x.operators = x.keys(t, "operator", 2)
	controllerKeys, x.controller = x.keys(t, "controller", 2)
	port := freePort(t)
	x.url = fmt.Sprintf("nats://localhost:%d", port)
	for _, list := range [][]bus.NATSConfig{x.agents, x.operators, x.controller} {
		for i := range list {
			list[i].URL, list[i].CA = x.url, x.ca
		}
	}
	x.config = filepath.Join(x.dir, "nats.conf")
	text := fmt.Sprintf("listen: \"127.0.0.1:%d\"\ntls { cert_file: %q, key_file: %q, timeout: 30 }\n%s", port,
		filepath.Join(x.dir, "server.pem"), filepath.Join(x.dir, "server.key"), bus.NATSUsers(x.agentKeys, operatorKeys, controllerKeys))
	write(t, x.config, text)
	x.start = func() { x.stop = start(t, x.config) }
	x.start()
	t.Cleanup(func() { x.stop() })
	return x
}

func freePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// keys makes nkeys, each in a file.
func (x *external) keys(t testing.TB, kind string, n int) (public []string, confs []bus.NATSConfig) {
	t.Helper()
	for i := range n {
		pair, err := nkeys.CreateUser()
		if err != nil {
			t.Fatal(err)
		}
		seed, _ := pair.Seed()
		pub, _ := pair.PublicKey()
		path := filepath.Join(x.dir, fmt.Sprintf("%s%d.nk", kind, i))
		write(t, path, string(seed)+"\n")
		public, confs = append(public, pub), append(confs, bus.NATSConfig{Nkey: path})
	}
	return public, confs
}

// certificates makes an authority, and a server's certificate for a name.
func (x *external) certificates(t testing.TB, name string) (ca string) {
	t.Helper()
	caKey, caCert := issue(t, &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}, nil, nil)
	key, cert := issue(t, &x509.Certificate{DNSNames: []string{name}, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}, caCert, caKey)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	block := func(kind string, b []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}))
	}
	write(t, filepath.Join(x.dir, "server.pem"), block("CERTIFICATE", cert.Raw))
	write(t, filepath.Join(x.dir, "server.key"), block("PRIVATE KEY", der))
	ca = filepath.Join(x.dir, "ca.pem")
	write(t, ca, block("CERTIFICATE", caCert.Raw))
	return ca
}

func issue(t testing.TB, c, parent *x509.Certificate, signer *ecdsa.PrivateKey) (*ecdsa.PrivateKey, *x509.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c.SerialNumber, c.Subject = big.NewInt(time.Now().UnixNano()), pkix.Name{CommonName: "thru test"}
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	if parent == nil {
		parent, signer = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return key, cert
}

// library runs the server that thru embeds as an external one.
func library(t testing.TB, config string) func() {
	t.Helper()
	opts, err := natsserver.ProcessConfigFile(config)
	if err != nil {
		t.Fatal(err)
	}
	if opts.JetStream && len(natsserver.ApiErrors) == 0 {
		t.Skip("make builds the NATS server without JetStream (.ci/slim); go test ./internal/bus runs this, and nats-server runs the same here")
	}
	opts.NoLog, opts.NoSigs = true, true
	s, err := natsserver.NewServer(opts)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	if !s.ReadyForConnections(patience) {
		t.Fatal("the server did not start")
	}
	return func() { s.Shutdown(); s.WaitForShutdown() }
}

// program runs the real nats-server.
func program(t testing.TB, config string) func() {
	t.Helper()
	lab.Require(t, lab.Program("nats-server"))
	cmd := exec.Command("nats-server", "-c", config)
	cmd.Dir = t.TempDir()
	said := &strings.Builder{}
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop := func() {
		cmd.Process.Kill()
		cmd.Wait()
		if t.Failed() {
			t.Log(said.String())
		}
	}
	return stop
}

// fleetOn connects an agent, a registry and an operator to an external bus.
func fleetOn(t testing.TB, x *external, h bus.Handler, intake func(bus.Spooled) error) (*bus.Post, *bus.Registry, *bus.Fleet) {
	t.Helper()
	registry := waitFor(t, func() (*bus.Registry, bool) { // the program takes a moment to listen
		r, err := bus.OpenRegistry(context.Background(), bus.RegistryConfig{NATS: &x.controller[0], Intake: intake})
		if err != nil && !errors.Is(err, bus.ErrRefused) {
			t.Fatal(err)
		}
		return r, err == nil
	})
	t.Cleanup(func() { registry.Close() })
	p := attach(t, bus.AttachConfig{NATS: &x.agents[0], Name: "bee"}, h)
	return p, registry, dialFleet(t, bus.FleetConfig{NATS: &x.operators[0]})
}

// overNATS links a pair over an external server.
func overNATS(start run) link {
	return func(t *testing.T, h bus.Handler) (*bus.Client, bus.Publish) {
		t.Helper()
		p, _, f := fleetOn(t, openExternal(t, 1, start), h, nil)
		return f.Client(p.ID()), p.Publish
	}
}

// TestExternalHosts: names and presence, as with a hub; the agent's id is its nkey.
func TestExternalHosts(t *testing.T) {
	for name, start := range map[string]run{"library": library, "program": program} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := openExternal(t, 1, start)
			p, _, f := fleetOn(t, x, bustest.New(), nil)
			if p.ID() != x.agentKeys[0] {
				t.Errorf("the agent goes by %s, its nkey is %s", p.ID(), x.agentKeys[0])
			}
			hosts := waitHosts(t, f, func(h []bus.Host) bool { return len(h) == 1 })
			if hosts[0].Name != "bee" || hosts[0].ID != p.ID() || !hosts[0].Online {
				t.Errorf("%+v", hosts[0])
			}
			if _, err := f.Client(p.ID()).Hello(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestExternalRestarts: after a server is killed and restarted nothing that ran is lost.
func TestExternalRestarts(t *testing.T) {
	for name, start := range map[string]run{"library": library, "program": program} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := openExternal(t, 1, start)
			h := bustest.New()
			p, _, f := fleetOn(t, x, h, nil)
			c := f.Client(p.ID())
			id := clientID(t, c, h)
			x.stop()
			p.Publish(id, bus.Event{Session: "s", Kind: bus.EventDone, AtNs: 1})
			x.start()
			waitStatus(t, p, func(s bus.Status) bool { return s.Connected && s.Err == nil })
			if _, err := c.Hello(t.Context()); err != nil || h.GoneTimes(id) != 0 {
				t.Error(err, h.GoneTimes(id))
			}
			select {
			case e := <-c.Events():
				if e.AtNs != 1 {
					t.Error(e)
				}
			case <-time.After(patience):
				t.Error("the event is lost")
			}
			waitHosts(t, f, func(h []bus.Host) bool { return named(h, "bee") != nil && h[0].Online })
		})
	}
}

// TestExternalErrors: the errors of an external server have an explanation and a hint.
func TestExternalErrors(t *testing.T) {
	t.Parallel()
	x := openExternal(t, 1, library)
	other := openExternal(t, 1, library)
	open := x.operators[0]
	open.Nkey = filepath.Join(x.dir, "open.nk")
	seed, err := os.ReadFile(x.operators[0].Nkey)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(open.Nkey, seed, 0o644); err != nil {
		t.Fatal(err)
	}
	change := func(f func(*bus.NATSConfig)) bus.NATSConfig {
		c := x.operators[0]
		f(&c)
		return c
	}
	for name, test := range map[string]struct {
		conf bus.NATSConfig
		kind error
		hint string
	}{
		"wrong name":    {change(func(c *bus.NATSConfig) { c.URL = strings.Replace(c.URL, "localhost", "127.0.0.1", 1) }), bus.ErrCertificate, "the name in its certificate"},
		"no authority":  {change(func(c *bus.NATSConfig) { c.CA = "" }), bus.ErrCertificate, "--tls-ca"},
		"another's CA":  {change(func(c *bus.NATSConfig) { c.CA = other.ca }), bus.ErrCertificate, "--tls-ca"},
		"unknown key":   {change(func(c *bus.NATSConfig) { c.Nkey = other.operators[0].Nkey }), bus.ErrSecret, "thru help fleet"},
		"nobody there":  {change(func(c *bus.NATSConfig) { c.URL = fmt.Sprintf("nats://localhost:%d", freePort(t)) }), bus.ErrRefused, "4222"},
		"no key":        {change(func(c *bus.NATSConfig) { c.Nkey = "" }), nil, "--nkey FILE or --creds FILE"},
		"both keys":     {change(func(c *bus.NATSConfig) { c.Creds = "x" }), nil, "one of the two"},
		"no such file":  {change(func(c *bus.NATSConfig) { c.Nkey += "x" }), os.ErrNotExist, ""},
		"open file":     {open, nil, "chmod 600"},
		"no seed":       {change(func(c *bus.NATSConfig) { c.Nkey = c.CA }), nil, "SU"},
		"no creds":      {change(func(c *bus.NATSConfig) { c.Nkey, c.Creds = "", c.Nkey }), nil, "nsc"},
		"password":      {change(func(c *bus.NATSConfig) { c.URL = "nats://me:secret@localhost:1" }), nil, "--nkey"},
		"no URL":        {change(func(c *bus.NATSConfig) { c.URL = "http://localhost" }), nil, "nats://HOST:4222"},
		"CA is none":    {change(func(c *bus.NATSConfig) { c.CA = c.Nkey }), nil, "PEM"},
		"CA is missing": {change(func(c *bus.NATSConfig) { c.CA += "x" }), os.ErrNotExist, "PEM"},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := bus.DialFleet(t.Context(), bus.FleetConfig{NATS: &test.conf})
			if err == nil {
				f.Close()
				t.Fatal("access was granted")
			}
			if test.kind != nil && !errors.Is(err, test.kind) || !strings.Contains(fault.Hint(err), test.hint) || strings.Contains(err.Error(), "secret@") {
				t.Errorf("%v, hint %q", err, fault.Hint(err))
			}
		})
	}
}

// TestExternalWithoutTLS: no login is sent without TLS.
func TestExternalWithoutTLS(t *testing.T) {
	t.Parallel()
	x := openExternal(t, 1, library)
	port := freePort(t)
	text, err := os.ReadFile(x.config)
	if err != nil {
		t.Fatal(err)
	}
	_, users, _ := strings.Cut(string(text), "authorization")
	plain := filepath.Join(x.dir, "plain.conf")
	write(t, plain, fmt.Sprintf("listen: \"127.0.0.1:%d\"\nauthorization%s", port, users))
	defer library(t, plain)()
	conf := x.operators[0]
	conf.URL = fmt.Sprintf("nats://localhost:%d", port)
	if _, err := bus.DialFleet(t.Context(), bus.FleetConfig{NATS: &conf}); !errors.Is(err, bus.ErrCertificate) || !strings.Contains(err.Error(), "no TLS") {
		t.Errorf("%v", err)
	}
}

// TestExternalPermissions: a key with another role at the server gets an error that says so.
func TestExternalPermissions(t *testing.T) {
	t.Parallel()
	x := openExternal(t, 1, library)
	p := attach(t, bus.AttachConfig{NATS: &x.operators[1], Name: "bee"}, bustest.New())
	waitStatus(t, p, func(s bus.Status) bool { return s.Connected && errors.Is(s.Err, bus.ErrSecret) })
	if _, err := bus.OpenRegistry(t.Context(), bus.RegistryConfig{NATS: &x.agents[0]}); !errors.Is(err, bus.ErrSecret) {
		t.Errorf("a registry with an agent's key: %v", err)
	}
	f, err := bus.DialFleet(t.Context(), bus.FleetConfig{NATS: &x.agents[0]})
	if err == nil {
		defer f.Close()
		_, err = f.Hosts(t.Context())
	}
	if !errors.Is(err, bus.ErrSecret) || !strings.Contains(fault.Hint(err), "thru help fleet") {
		t.Errorf("an operator with an agent's key: %v", err)
	}
}
