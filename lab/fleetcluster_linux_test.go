package lab_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"thru/internal/measure"
	"thru/lab"
)

// cluster is a fleet over real NATS servers: three in a cluster with JetStream at h1, h2 and h3, and one at h4 that is
// their leaf node, as for a site behind NAT. Each host has an agent, and h1 to h3 a controller.
type cluster struct {
	*natsFleet
	servers  []*exec.Cmd
	controls []*program
}

// Number of servers in the cluster, and of all hosts.
const (
	clusterServers = 3
	clusterHosts   = 4
)

// startCluster starts the servers, the controllers and the agents. An operator of its own is at each of h1 to h3.
func startCluster(t *testing.T) *cluster {
	t.Helper()
	lab.Require(t, lab.Program("nats-server"))
	f := &cluster{natsFleet: &natsFleet{fleet: &fleet{Fleet: lab.NewFleet(t, lab.FleetOptions{Rates: uplinks(clusterHosts, 100e6)}), state: t.TempDir(), home: t.TempDir()}, dir: t.TempDir()}}
	var keys []string
	var addrs []net.IP
	for i := range clusterHosts {
		addrs = append(addrs, f.Data(i).AsSlice())
		for flag, who := range map[string]string{"--agent": "h", "--operator": "me", "--registry": "control"} {
			keys = append(keys, flag, f.key(t, fmt.Sprintf("%s%d", who, i+1)))
		}
	}
	certificate(t, f.dir, addrs...)
	users := f.once(t, append([]string{"--nats-config"}, keys...)...)
	f.servers = make([]*exec.Cmd, clusterHosts)
	for i := range clusterHosts {
		if err := os.WriteFile(f.path(fmt.Sprintf("s%d.conf", i+1)), []byte(f.config(i)+users), 0o600); err != nil {
			t.Fatal(err)
		}
		f.startServerAt(t, i)
	}
	for i := range clusterServers {
		state := t.TempDir()
		args := append([]string{"control", "--json", "--state", state}, f.at("control", i)...)
		p := start(t, f.Hosts[i], state, "", args...)
		f.controls = append(f.controls, p)
		lab.Eventually(t, 40*time.Second, "a controller is ready", func() bool { return strings.Contains(p.stdout.String(), `"ready":true`) })
		if strings.Contains(p.stdout.String(), `"warnings"`) {
			t.Fatalf("the controller at h%d: %s", i+1, p.stdout.String())
		}
	}
	for i := range clusterHosts {
		f.homes = append(f.homes, t.TempDir())
		f.agents = append(f.agents, f.startAgent(t, i, f.at("h", i)...))
	}
	for i := range clusterServers {
		if p := start(t, f.Hosts[i], f.homes[i], "", append([]string{"join", "fleet"}, f.at("me", i)...)...); p.wait(t, 20*time.Second) != 0 {
			t.Fatal("thru join has failed")
		}
		f.awaitAt(t, i, "h1 h2 h3 h4")
	}
	return f
}

// config is the configuration of the server of a host, without its users.
func (f *cluster) config(host int) string {
	own := f.Data(host)
	text := fmt.Sprintf("server_name: s%d\nlisten: \"%s:4222\"\ntls { cert_file: \"%s/cert.pem\", key_file: \"%[3]s/key.pem\" }\n", host+1, own, f.dir)
	var routes, hubs []string
	for i := range clusterServers {
		routes = append(routes, fmt.Sprintf("\"nats://%s:6222\"", f.Data(i)))
		hubs = append(hubs, fmt.Sprintf("\"nats://leaf:leaf@%s:7422\"", f.Data(i)))
	}
	if host >= clusterServers {
		return text + fmt.Sprintf("leafnodes { remotes: [{ urls: [%s] }] }\n", strings.Join(hubs, ", "))
	}
	return text + fmt.Sprintf("jetstream { store_dir: \"%s/js%d\" }\ncluster { name: lab, listen: \"%s:6222\", routes: [%s] }\nleafnodes { listen: \"%[3]s:7422\", authorization { user: leaf, password: leaf } }\n",
		f.dir, host+1, own, strings.Join(routes, ", "))
}

// startServerAt starts the server of a host.
func (f *cluster) startServerAt(t *testing.T, host int) {
	t.Helper()
	log, err := os.Create(f.path(fmt.Sprintf("s%d.log", host+1)))
	if err != nil {
		t.Fatal(err)
	}
	cmd := f.Hosts[host].Command(context.Background(), "nats-server", "-c", f.path(fmt.Sprintf("s%d.conf", host+1)))
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	f.servers[host] = cmd
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait(); log.Close() })
	lab.Eventually(t, 20*time.Second, "nats-server listens", func() bool {
		return strings.Contains(strings.Join(f.Hosts[host].Sockets(), "\n"), ":4222")
	})
}

// at returns the flags of a program at a host: its key, its own server first, then the next one of the cluster.
func (f *cluster) at(who string, host int) []string {
	next := (host + 1) % clusterServers
	return []string{"--nats", fmt.Sprintf("tls://%s:4222,tls://%s:4222", f.Data(host), f.Data(next)), "--nkey", f.path(fmt.Sprintf("%s%d.nk", who, host+1)), "--tls-ca", f.path("cert.pem")}
}

// listed is a host as `thru hosts --json` prints it.
type listed struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Online bool   `json:"online"`
}

// hostsAt returns the online hosts that the operator at a host sees.
func (f *cluster) hostsAt(t *testing.T, host int) (online []listed) {
	t.Helper()
	p := start(t, f.Hosts[host], f.homes[host], "", "hosts", "fleet", "--json")
	p.wait(t, 30*time.Second)
	var list struct {
		Hosts []listed `json:"hosts"`
	}
	if json.Unmarshal([]byte(p.stdout.String()), &list) != nil {
		return nil
	}
	online = slices.DeleteFunc(list.Hosts, func(h listed) bool { return !h.Online })
	slices.SortFunc(online, func(a, b listed) int { return strings.Compare(a.Name, b.Name) })
	return online
}

// awaitAt waits until these hosts are online for the operator at a host.
func (f *cluster) awaitAt(t *testing.T, host int, names string) (online []listed) {
	t.Helper()
	lab.Eventually(t, 40*time.Second, fmt.Sprintf("the operator at h%d sees %s", host+1, names), func() bool {
		online = f.hostsAt(t, host)
		var seen []string
		for _, h := range online {
			seen = append(seen, h.Name)
		}
		return strings.Join(seen, " ") == names
	})
	return online
}

// isolate cuts a host off from all others, or connects it again.
func (f *cluster) isolate(host int, off bool) {
	f.Switch.IP("link", "set", f.Port(host), map[bool]string{true: "down", false: "up"}[off])
}

// laps is a plan of a ring of hosts, one pair at a time, several times.
const laps = `thru: 1
name: laps
controller: fleet
end_points: [h1, h2, h3, h4]
pairs: [{type: ring, among: all}]
order: sequential
gates: off
repeat: 4
traffic: {time: 1s, ramp: 200ms, streams: 1}
`

// Steps of laps, and how many of them are finished before something fails.
const (
	lapRuns  = 4
	lapSteps = clusterHosts * lapRuns
	lapsDone = 4
)

// begin starts the plan at h1, and waits until some steps are finished.
func (f *cluster) begin(t *testing.T) *program {
	t.Helper()
	p := start(t, f.Hosts[0], f.homes[0], "", "run", "--json", "--no-store", "--keep", f.path("kept"), planFile(t, laps))
	lab.Eventually(t, 60*time.Second, "some steps are finished", func() bool {
		if !p.running() {
			t.Fatalf("the plan ended early with exit %d", p.exit)
		}
		var head struct {
			Done int `json:"steps_done"`
		}
		text, _ := os.ReadFile(f.path("kept/run.json"))
		return json.Unmarshal(text, &head) == nil && head.Done >= lapsDone
	})
	return p
}

// standBy starts a command at a host that takes lost runs over.
func (f *cluster) standBy(t *testing.T, host int) *program {
	t.Helper()
	p := start(t, f.Hosts[host], f.homes[host], "", "run", "--stand-by", "fleet", "--json", "--no-store")
	lab.Eventually(t, 20*time.Second, "it stands by", func() bool { return strings.Contains(p.stderr.String(), "standing by") })
	return p
}

// finished waits for the document of a run that was taken over, and checks that each step is in it once.
func finished(t *testing.T, all []*program, limit time.Duration, until time.Time) measure.Document {
	t.Helper()
	var p *program
	lab.Eventually(t, limit, "another command has finished the run", func() bool {
		i := slices.IndexFunc(all, func(p *program) bool { return json.Valid([]byte(p.stdout.String())) })
		if i >= 0 {
			p = all[i]
		}
		return i >= 0
	})
	doc := p.document(t)
	early := 0
	for _, c := range doc.Cells {
		if len(c.Runs) != lapRuns || c.Goodput == nil {
			t.Errorf("%s to %s has %d runs, want %d; error %+v", c.From, c.To, len(c.Runs), lapRuns, c.Error)
		}
		for i, r := range c.Runs {
			if r.Index != i || r.Error != nil || r.Partial {
				t.Errorf("%s to %s: run %d of %d: %+v", c.From, c.To, r.Index, i, r.Error)
			}
			if r.MeasuredFrom != nil && r.MeasuredFrom.Before(until) {
				early++
			}
		}
	}
	if early < lapsDone || early >= lapSteps {
		t.Errorf("%d steps were run before the first owner was lost, want %d to %d", early, lapsDone, lapSteps-1)
	}
	if doc.Plan == nil || doc.Plan.Done != lapSteps || len(doc.Plan.Began) != 2 {
		t.Errorf("the plan is %+v", doc.Plan)
	}
	if !slices.ContainsFunc(doc.Warnings, func(w string) bool { return strings.Contains(w, "was lost after") }) {
		t.Errorf("no warning says that the owner changed: %q", doc.Warnings)
	}
	return doc
}

// TestClusterTakesOver kills the command that runs a plan: one of two others finishes it, without a step that is lost
// or run twice.
func TestClusterTakesOver(t *testing.T) {
	t.Parallel()
	f := startCluster(t)
	others := []*program{f.standBy(t, 1), f.standBy(t, 2)}
	p := f.begin(t)
	killed := time.Now()
	p.signal(t, syscall.SIGKILL)
	<-p.ended
	finished(t, others, 90*time.Second, killed)
	for _, o := range others {
		if strings.Count(o.stderr.String(), "takes over") > 1 {
			t.Error("a command took the run over twice")
		}
	}
	if strings.Contains(others[0].stderr.String(), "takes over") == strings.Contains(others[1].stderr.String(), "takes over") {
		t.Error("not exactly one command took the run over")
	}
}

// TestClusterMovesAnAgent kills the server of an agent: it moves to another one, with its name and identity, and can be
// measured with.
func TestClusterMovesAnAgent(t *testing.T) {
	t.Parallel()
	f := startCluster(t)
	before := f.hostsAt(t, 0)
	f.servers[3].Process.Kill() // the leaf node
	f.servers[3].Wait()
	lab.Eventually(t, 30*time.Second, "the agent of h4 has moved", func() bool {
		return strings.Contains(strings.Join(f.Hosts[3].Sockets(), "\n"), f.Data((3+1)%clusterServers).String()+":4222")
	})
	if after := f.awaitAt(t, 0, "h1 h2 h3 h4"); !slices.Equal(before, after) {
		t.Errorf("the hosts were %+v, and are %+v", before, after)
	}
	p := start(t, f.Hosts[1], f.homes[1], "", "run", "--json", "--no-store", "--keep", f.path("moved"), planFile(t, strings.Replace(laps, "h1, h2, h3, h4", "h3, h4", 1)))
	if code := p.wait(t, time.Minute); code != 0 {
		t.Errorf("a plan with the moved agent: exit %d", code)
	}
}

// TestClusterInTwoParts isolates the host of the command for a minute, with its server, controller and agent. The command
// stops and says why, another one finishes the run when the cluster is whole, and no step is lost or run twice.
func TestClusterInTwoParts(t *testing.T) {
	t.Parallel()
	f := startCluster(t)
	other := f.standBy(t, 1)
	p := f.begin(t)
	cut := time.Now()
	f.isolate(0, true)
	if code := p.wait(t, 50*time.Second); code != 1 {
		t.Errorf("the isolated command: exit %d, want 1", code)
	}
	f.awaitAt(t, 1, "h2 h3 h4")
	if left := time.Until(cut.Add(time.Minute)); left > 0 {
		time.Sleep(left)
	}
	f.isolate(0, false)
	finished(t, []*program{other}, 2*time.Minute, cut)
	f.awaitAt(t, 0, "h1 h2 h3 h4")
	if doc := p.document(t); doc.Error == nil || doc.Plan.Done >= lapSteps {
		t.Errorf("the isolated command: %+v, %+v", doc.Error, doc.Plan)
	} else {
		t.Log(doc.Error.Message)
	}
}
