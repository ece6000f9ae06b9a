package lab_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"thru/lab"
)

// natsFleet is a fleet whose bus is a real NATS server at the controller's host, with the configuration that
// `thru control` prints.
type natsFleet struct {
	*fleet
	dir    string
	server *exec.Cmd
}

// startNATSFleet starts the server, a controller and the agents.
func startNATSFleet(t *testing.T, o lab.FleetOptions) *natsFleet {
	t.Helper()
	lab.Require(t, lab.Program("nats-server"))
	f := &natsFleet{fleet: &fleet{Fleet: lab.NewFleet(t, o), state: t.TempDir(), home: t.TempDir()}, dir: t.TempDir()}
	certificate(t, f.dir, f.Control().AsSlice())
	keys := []string{"--operator", f.key(t, "me"), "--registry", f.key(t, "control")}
	for i := range f.Hosts {
		keys = append(keys, "--agent", f.key(t, fmt.Sprintf("h%d", i+1)))
	}
	users := f.once(t, append([]string{"--nats-config"}, keys...)...)
	conf := fmt.Sprintf("listen: \"%s:4222\"\ntls { cert_file: \"%s/cert.pem\", key_file: \"%[2]s/key.pem\" }\n%s", f.Control(), f.dir, users)
	if err := os.WriteFile(f.path("nats.conf"), []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	f.startServer(t)
	f.control = start(t, f.Controller, f.state, "", append([]string{"control", "--state", f.state}, f.direction("control")...)...)
	for i := range f.Hosts {
		f.homes = append(f.homes, t.TempDir())
		f.agents = append(f.agents, f.startAgent(t, i, f.direction(fmt.Sprintf("h%d", i+1))...))
	}
	if p := start(t, f.Controller, f.home, "", append([]string{"join", "fleet"}, f.direction("me")...)...); p.wait(t, 10*time.Second) != 0 {
		t.Fatal("thru join has failed")
	}
	f.awaitHosts(t, len(f.Hosts))
	return f
}

func (f *natsFleet) path(name string) string { return filepath.Join(f.dir, name) }

// direction returns the flags to connect to the server with a key.
func (f *natsFleet) direction(key string) []string {
	return []string{"--nats", fmt.Sprintf("tls://%s:4222", f.Control()), "--nkey", f.path(key + ".nk"), "--tls-ca", f.path("cert.pem")}
}

// once runs a `thru control` that prints something and ends.
func (f *natsFleet) once(t *testing.T, args ...string) string {
	t.Helper()
	p := start(t, f.Controller, f.state, "", append([]string{"control"}, args...)...)
	if p.wait(t, 10*time.Second) != 0 {
		t.Fatal("thru control has failed")
	}
	return p.stdout.String()
}

// key makes a key pair, and returns its public part.
func (f *natsFleet) key(t *testing.T, name string) string {
	t.Helper()
	public := strings.TrimSpace(f.once(t, "--nats-key", f.path(name+".nk")))
	return strings.TrimSpace(public)
}

// startServer starts the NATS server, and waits until it listens.
func (f *natsFleet) startServer(t *testing.T) {
	t.Helper()
	f.server = f.Controller.Command(context.Background(), "nats-server", "-c", f.path("nats.conf"))
	if err := f.server.Start(); err != nil {
		t.Fatal(err)
	}
	server := f.server
	t.Cleanup(func() { server.Process.Kill(); server.Wait() })
	lab.Eventually(t, 10*time.Second, "nats-server listens", func() bool {
		return strings.Contains(strings.Join(f.Controller.Sockets(), "\n"), "LISTEN")
	})
}

// killServer kills the server with SIGKILL.
func (f *natsFleet) killServer(t *testing.T) {
	t.Helper()
	if err := f.server.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	f.server.Wait()
}

// TestFleetLosesTheBus kills the NATS server during a test. The test continues if the server restarts at
// once, and stops if not; all hosts return with the server.
func TestFleetLosesTheBus(t *testing.T) {
	t.Parallel()
	f := startNATSFleet(t, lab.FleetOptions{Rates: uplinks(4, 100e6)})
	p := f.plan(t, ring)
	f.running(t, p, 0)
	f.killServer(t)
	f.startServer(t)
	if code := p.wait(t, 30*time.Second); code != 0 {
		t.Errorf("with a bus that was gone for a moment: exit %d", code)
	}
	if g := group(t, p.document(t)); len(g.Failed) > 0 || g.Cells != 4 {
		t.Errorf("%d cells, failed: %+v", g.Cells, g.Failed)
	}

	p = f.plan(t, strings.Replace(ring, "8s", "40s", 1))
	f.running(t, p, 0)
	f.killServer(t)
	if code := p.wait(t, lossLimit+8*time.Second); code != 1 {
		t.Errorf("without the bus: exit %d, want 1", code)
	}
	f.allIdle(t)
	f.startServer(t)
	f.awaitHosts(t, 4)
}

// certificate writes a self-signed certificate for addresses.
func certificate(t *testing.T, dir string, addrs ...net.IP) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "lab"}, IPAddresses: addrs,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{"cert.pem": {Type: "CERTIFICATE", Bytes: der}, "key.pem": {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
