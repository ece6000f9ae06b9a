//go:build linux

package bench

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nkeys"

	"thru/internal/bus"
)

// Parts of a cluster, and where its servers listen.
const (
	clusterServers = 3
	clusterPort    = 14222           // of the first server for clients; for routes 1000 higher
	clusterGap     = 2 * time.Second // between two processes of agents: one machine makes both ends of all their TLS handshakes
)

// clusterAtScale is a fleet with three controllers on three NATS servers with JetStream, which share the agents.
type clusterAtScale struct {
	*fleetAtScale
	servers, controls []*process
}

// addCluster measures fleets of several sizes on a cluster.
func (r *report) addCluster(ctx context.Context, w io.Writer) error {
	if !r.settings.only.MatchString("cluster") || absent(r.settings.thru) != "" {
		return nil
	}
	t := table{title: "cluster: three controllers on three NATS servers, a plan of one short test for each two agents", rows: [][]string{{
		"agents", "all joined", "`thru hosts`", "plan", "pairs", "a pair", "failed", "a controller", "idle", "a server", "idle", "`thru run`", "its CPU",
	}}, remarks: []string{fmt.Sprintf("Each agent sends to its neighbour, or receives, for 100 ms at 1 Mb/s, %d pairs at a time. Memory is the maximum of the largest one of the three; idle is "+
		"the CPU of all three without tests. All share this machine.", pairsAtOnce)}}
	for _, n := range r.settings.scale {
		row, err := r.settings.measureCluster(ctx, n)
		if err != nil {
			return fmt.Errorf("bench: a cluster with %d agents: %w", n, err)
		}
		t.rows = append(t.rows, row)
		fmt.Fprintln(os.Stderr, row)
	}
	r.print(w, t)
	return nil
}

// measureCluster starts a cluster, runs the plan, and stops all.
func (s settings) measureCluster(ctx context.Context, n int) ([]string, error) {
	unlock, err := lock(s.lock)
	if err != nil {
		return nil, err
	}
	defer unlock()
	folder, err := os.MkdirTemp("", "bench-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	f := &clusterAtScale{fleetAtScale: &fleetAtScale{thru: s.thru, folder: folder, size: n}}
	defer f.stopAll()
	if err := f.start(ctx); err != nil {
		return nil, err
	}
	began := time.Now()
	if err := f.startAgents(ctx, clusterGap); err != nil {
		return nil, err
	}
	hosts, err := f.await(ctx)
	if err != nil {
		return nil, err
	}
	joined := time.Since(began)
	const span = 10 * time.Second
	controlled, served := runTimes(f.controls), runTimes(f.servers)
	nap(ctx, span)
	idle := func(before time.Duration, of []*process) string {
		return digits(100*(runTimes(of)-before).Seconds()/span.Seconds()) + "%"
	}
	row := []string{strconv.Itoa(n), digits(joined.Seconds()) + " s", digits(hosts.Seconds()) + " s"}
	idleControls, idleServers := idle(controlled, f.controls), idle(served, f.servers)
	var x scaleRow
	f.watched = func() {
		for _, p := range f.controls {
			x.controlMB = max(x.controlMB, residentMB(p.cmd.Process.Pid))
		}
		for _, p := range f.servers {
			x.serverMB = max(x.serverMB, residentMB(p.cmd.Process.Pid))
		}
	}
	var from, to []string
	for i := 1; i < n; i += 2 {
		from, to = append(from, fmt.Sprintf("h%d", i)), append(to, fmt.Sprintf("h%d", i+1))
	}
	pairs := len(from)
	if err := f.measurePlan(ctx, &x, fmt.Sprintf("{type: one-to-one, from: [%s], to: [%s]}", strings.Join(from, ", "), strings.Join(to, ", ")), pairs); err != nil {
		return nil, err
	}
	return append(row, digits(x.plan.Seconds())+" s", strconv.Itoa(pairs), digits(x.plan.Seconds()*1e3/float64(pairs))+" ms", strconv.Itoa(x.failed),
		digits(x.controlMB)+" MB", idleControls, digits(x.serverMB)+" MB", idleServers, digits(x.planMB)+" MB", digits(x.planCPU)+" s"), nil
}

// runTimes is the CPU time of processes.
func runTimes(all []*process) (sum time.Duration) {
	for _, p := range all {
		sum += runTime(p.cmd.Process.Pid)
	}
	return sum
}

// start makes keys and a certificate, and starts servers and controllers.
func (f *clusterAtScale) start(ctx context.Context) error {
	agents, err := f.keys("h", f.size)
	if err != nil {
		return err
	}
	operators, err := f.keys("me", 1)
	if err != nil {
		return err
	}
	controllers, err := f.keys("control", clusterServers)
	if err != nil {
		return err
	}
	if err := f.certificate(); err != nil {
		return err
	}
	users := bus.NATSUsers(agents, operators, controllers)
	for i := range clusterServers {
		conf := f.path(fmt.Sprintf("s%d.conf", i))
		if err := os.WriteFile(conf, []byte(f.config(i)+users), 0o600); err != nil {
			return err
		}
		p, err := command{argv: []string{"nats-server", "-c", conf}, cpu: -1}.start()
		if err != nil {
			return err
		}
		f.servers = append(f.servers, p)
	}
	for i := range clusterServers {
		if err := f.startController(ctx, i); err != nil {
			return err
		}
	}
	if err := os.WriteFile(f.path("agent"), []byte(clusterURL(0)), 0o600); err != nil {
		return err
	}
	join, err := f.command(append([]string{"join", "fleet"}, f.at("me0", 0)...)...).start()
	if err != nil {
		return err
	}
	return join.wait(ctx, spareTime)
}

// startController starts one controller, and waits until it shares names with the others.
func (f *clusterAtScale) startController(ctx context.Context, i int) error {
	state := f.path(fmt.Sprintf("control%d", i))
	for end := time.Now().Add(serverTime + 30*time.Second); ; nap(ctx, time.Second) { // the servers may not listen yet
		ready := f.path(fmt.Sprintf("ready%d.json", i))
		line := fmt.Sprintf("exec %s control --json --state %s %s > %s", f.thru, state, strings.Join(f.at(fmt.Sprintf("control%d", i), i), " "), ready)
		p, err := command{argv: []string{"sh", "-c", line}, cpu: -1}.start()
		if err != nil {
			return err
		}
		for range 300 {
			text, _ := os.ReadFile(ready)
			if strings.Contains(string(text), `"ready":true`) && !strings.Contains(string(text), `"warnings"`) {
				f.controls = append(f.controls, p)
				return nil
			}
			nap(ctx, 50*time.Millisecond)
		}
		p.stop()
		if time.Now().After(end) || ctx.Err() != nil {
			return fmt.Errorf("the controller %d is not ready: %s", i, p.said())
		}
	}
}

func clusterURL(server int) string { return fmt.Sprintf("tls://127.0.0.1:%d", clusterPort+server) }

// at returns the flags to connect to a server with a key.
func (f *clusterAtScale) at(key string, server int) []string {
	return []string{"--nats", clusterURL(server), "--nkey", f.path(key + ".nk"), "--tls-ca", f.path("cert.pem")}
}

// config is the configuration of a server without its users.
func (f *clusterAtScale) config(server int) string {
	var routes []string
	for i := range clusterServers {
		routes = append(routes, fmt.Sprintf("\"nats://127.0.0.1:%d\"", clusterPort+1000+i))
	}
	return fmt.Sprintf("server_name: s%d\nlisten: \"127.0.0.1:%d\"\ntls { cert_file: \"%s\", key_file: \"%s\", timeout: 60 }\njetstream { store_dir: \"%s\" }\n"+
		"cluster { name: bench, listen: \"127.0.0.1:%d\", routes: [%s] }\n", server, clusterPort+server, f.path("cert.pem"), f.path("key.pem"), f.path(fmt.Sprintf("js%d", server)),
		clusterPort+1000+server, strings.Join(routes, ", "))
}

// keys makes nkeys NAME0, NAME1, ..., each in a file.
func (f *clusterAtScale) keys(name string, n int) (public []string, err error) {
	for i := range n {
		pair, err := nkeys.CreateUser()
		if err != nil {
			return nil, err
		}
		seed, err := pair.Seed()
		if err != nil {
			return nil, err
		}
		key, err := pair.PublicKey()
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(f.path(fmt.Sprintf("%s%d.nk", name, i)), append(seed, '\n'), 0o600); err != nil {
			return nil, err
		}
		public = append(public, key)
	}
	return public, nil
}

// certificate writes a self-signed certificate for 127.0.0.1.
func (f *clusterAtScale) certificate() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "bench"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		return err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	for name, block := range map[string]*pem.Block{"cert.pem": {Type: "CERTIFICATE", Bytes: der}, "key.pem": {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(f.path(name), pem.EncodeToMemory(block), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// stopAll ends all processes.
func (f *clusterAtScale) stopAll() {
	for _, p := range append(append(f.agents, f.controls...), f.servers...) {
		p.stop()
	}
}
