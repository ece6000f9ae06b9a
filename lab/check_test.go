package lab_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"thru/internal/measure"
	"thru/lab"
)

// check runs `thru check` in a host to its end and returns its document. All gates must pass, or the exit
// code must be that of a failed gate.
func check(t *testing.T, h *lab.Host, args ...string) measure.Document {
	t.Helper()
	p := start(t, h, t.TempDir(), "", append([]string{"check", "--json"}, args...)...)
	code := p.wait(t, 50*time.Second)
	if code != 0 && code != 3 {
		t.Fatalf("thru check ended with exit %d", code)
	}
	doc := p.document(t)
	if failed := worst(doc.Gates) == measure.GateFail; failed != (code == 3) || failed != (doc.Error != nil) {
		t.Fatalf("exit %d, error %+v, gates %s", code, doc.Error, gates(doc))
	}
	return doc
}

// gates prints the gates of a document that did not pass.
func gates(doc measure.Document) string {
	var all []string
	for _, g := range doc.Gates {
		if g.Status != measure.GatePass {
			all = append(all, fmt.Sprintf("%s %s (%s%s %s): %s", g.Status, g.ID, g.EndPoint, g.From, g.Interface, g.Fact))
		}
	}
	return strings.Join(all, "\n")
}

// worst returns the worst status of gates; "" where there is none.
func worst(gates []measure.Gate) string {
	for _, s := range []string{measure.GateFail, measure.GateWarn, measure.GatePass, measure.GateNotChecked} {
		if slices.ContainsFunc(gates, func(g measure.Gate) bool { return g.Status == s }) {
			return s
		}
	}
	return ""
}

// status is the worst status of the gates with an ID.
func status(doc measure.Document, id string) string {
	return worst(slices.DeleteFunc(slices.Clone(doc.Gates), func(g measure.Gate) bool { return g.ID != id }))
}

// wantGate fails the test unless the worst status of a gate is the wanted one, and the gate has a fix where
// one is due.
func wantGate(t *testing.T, doc measure.Document, id, want string) {
	t.Helper()
	if got := status(doc, id); got != want {
		t.Errorf("gate %s: %q, want %q\n%s", id, got, want, gates(doc))
	}
	for _, g := range doc.Gates {
		if g.ID == id && g.Status == measure.GateFail && len(g.Fix) == 0 && g.Advice == "" {
			t.Errorf("gate %s fails and says nothing of what to do: %+v", id, g)
		}
	}
}

// TestHealthyPairPasses: a healthy pair gives no false alarm and all facts of the path.
func TestHealthyPairPasses(t *testing.T) {
	t.Parallel()
	for _, mtu := range []int{1500, 9000} {
		p := lab.NewPair(t, lab.Options{MTU: mtu})
		serve(t, p.B, "--no-auth")
		for _, addr := range []string{p.Data.B4.String(), p.Data.B6.String()} {
			doc := check(t, p.A, addr)
			if worst(doc.Gates) == measure.GateFail {
				t.Errorf("MTU %d, %s:\n%s", mtu, addr, gates(doc))
			}
			if len(doc.Paths) != 1 {
				t.Fatalf("MTU %d, %s: no path: %+v", mtu, addr, doc.Missing)
			}
			path := doc.Paths[0]
			for name, w := range map[string]measure.DirectionFacts{"forward": path.Forward, "back": path.Back} {
				if w.MTU == nil || w.MTU.Bytes != mtu || w.Hops == nil || *w.Hops != 0 || w.UDP == nil || w.UDP.Got == 0 || w.Route == nil || w.Congestion == nil || *w.Congestion != "cubic" {
					t.Errorf("MTU %d, %s, %s: %+v, %+v", mtu, addr, name, w, path.Missing)
				}
			}
			if path.Ports == nil || path.Ports.Directions != 1 || path.RTT == nil || path.Clock == nil || path.Handshake == nil {
				t.Errorf("MTU %d, %s: %+v", mtu, addr, path)
			}
		}
	}
}

// TestRouteOfASource: with a given source address, thru judges and watches the interface that traffic from
// this address leaves by, not that of the default route.
func TestRouteOfASource(t *testing.T) {
	t.Parallel()
	p := lab.NewPair(t, lab.Options{Control: true})
	serve(t, p.B, "--no-auth")
	from, to := p.Data.A4.String(), p.Control.B4.String()
	p.A.IP("rule", "add", "from", from, "to", to, "lookup", "77")
	p.A.IP("route", "add", to, "dev", p.Data.Dev, "table", "77")
	for source, want := range map[string]string{"": p.Control.Dev, from: p.Data.Dev} {
		args := []string{to}
		if source != "" {
			args = append(args, "-B", source)
		}
		doc := check(t, p.A, args...)
		if len(doc.Paths) != 1 || doc.Paths[0].Forward.Route == nil || doc.Paths[0].Forward.Route.Interface != want {
			t.Errorf("from %q: want %s, got %+v, %+v", source, want, doc.Paths, doc.Missing)
		}
	}
	doc := test(t, p.A, to, "-B", from, "-t", "0.3", "-O", "0.1", "--one-way")
	for _, f := range flows(doc)[:1] {
		if f.Sender.Route == nil || f.Sender.Route.Interface != p.Data.Dev {
			t.Errorf("test from %s: route %+v", from, f.Sender.Route)
		}
	}
}

// TestMTUGates: a path that silently drops jumbo frames, on which a test refuses to run; a router that
// answers with ICMP; and a path that passes jumbo frames. The silent path comes first, while no kernel has
// cached a path MTU, and control must still work on it.
func TestMTUGates(t *testing.T) {
	t.Parallel()
	x := lab.NewRouted(t, 9000)
	x.R.IP("link", "set", lab.FarDev, "mtu", "1500")
	x.R.Nft("table ip quiet {\nchain out {\ntype filter hook output priority 0\nicmp type destination-unreachable drop\n}\n}\n")
	serve(t, x.B, "--no-auth")
	doc := check(t, x.A, x.Addr())
	wantGate(t, doc, "mtu-path", measure.GateFail)
	if m := doc.Paths[0].Forward.MTU; m == nil || m.Bytes != 1500 || !m.Silent {
		t.Errorf("in silence: %+v", m)
	}

	before := x.B.Counters(lab.DataDev)
	p := start(t, x.A, t.TempDir(), "", "test", "--json", "-t", "1", x.Addr())
	if code := p.wait(t, 20*time.Second); code != 3 {
		t.Errorf("thru test ended with exit %d, want 3", code)
	}
	if doc := p.document(t); len(doc.Gates) == 0 || doc.Error == nil || !strings.Contains(doc.Error.Hint, "--force") {
		t.Errorf("error %+v", doc.Error)
	}
	if n := x.B.Counters(lab.DataDev).Sub(before).RxBytes; n > 1<<20 {
		t.Errorf("%d bytes came to a host that is not fit", n)
	}

	x.R.Nft("delete table ip quiet\n")
	doc = check(t, x.A, x.Addr())
	if m := doc.Paths[0].Forward.MTU; m == nil || m.Bytes != 1500 || m.Router == nil || *m.Router != 1500 {
		t.Errorf("with a router that says so: %+v", m)
	}
	x.R.IP("link", "set", lab.FarDev, "mtu", "9000")
	wantGate(t, check(t, x.A, x.Addr()), "mtu-path", measure.GatePass)
}

// TestTCPGates: TCP options that one end does not offer, and options that the path strips from the handshake.
func TestTCPGates(t *testing.T) {
	t.Parallel()
	x := lab.NewRouted(t, 1500)
	serve(t, x.B, "--no-auth")
	for _, c := range []struct{ sysctl, gate string }{
		{"net.ipv4.tcp_window_scaling", "window-scaling"}, {"net.ipv4.tcp_sack", "sack"}, {"net.ipv4.tcp_timestamps", "timestamps"},
	} {
		wantGate(t, check(t, x.A, x.Addr(), "--link-rate", "100G"), c.gate, measure.GatePass)
		x.B.Sysctl(c.sysctl, "0")
		doc := check(t, x.A, x.Addr(), "--link-rate", "100G")
		if s := status(doc, c.gate); s != measure.GateFail && s != measure.GateWarn {
			t.Errorf("%s=0: gate %s is %q\n%s", c.sysctl, c.gate, s, gates(doc))
		}
		x.B.Sysctl(c.sysctl, "1")
	}
	for option, gate := range map[string]string{"window": "window-scaling-path", "sack-perm": "sack-path", "timestamp": "timestamps-path"} {
		x.R.Nft("table ip strip {\nchain f {\ntype filter hook forward priority 0\ntcp flags syn reset tcp option " + option + "\n}\n}\n")
		doc := check(t, x.A, x.Addr(), "--link-rate", "100G")
		if s := status(doc, gate); s != measure.GateFail && s != measure.GateWarn {
			t.Errorf("%s stripped: gate %s is %q\n%s\n%+v", option, gate, s, gates(doc), doc.Paths)
		}
		x.R.Nft("delete table ip strip\n")
	}
	wantGate(t, check(t, x.A, x.Addr(), "--link-rate", "100G"), "receive-window", measure.GatePass)
	x.B.Sysctl("net.ipv4.tcp_rmem", "4096 16384 32768")
	doc := check(t, x.A, x.Addr(), "--link-rate", "100G")
	if s := status(doc, "receive-window"); s != measure.GateFail && s != measure.GateWarn {
		t.Errorf("tcp_rmem of 32 KB: gate receive-window is %q\n%s", s, gates(doc))
	}
}

// TestInterfaceGates: offloads and queues that are really switched off.
func TestInterfaceGates(t *testing.T) {
	t.Parallel()
	p := lab.NewPair(t, lab.Options{})
	serve(t, p.B, "--no-auth")
	addr := p.Data.B4.String()
	wantGate(t, check(t, p.A, addr), "offloads", measure.GatePass)
	p.A.Must("ethtool", "-K", p.Data.Dev, "tso", "off")
	wantGate(t, check(t, p.A, addr), "offloads", measure.GateWarn)
	p.A.Must("ethtool", "-K", p.Data.Dev, "tso", "on")
	wantGate(t, check(t, p.A, addr), "offloads", measure.GatePass)
	p.A.Must("ethtool", "-K", p.Data.Dev, "gro", "on") // with GRO a queue takes its packets on one CPU, as a NIC's does
	p.A.Must("ethtool", "-L", p.Data.Dev, "rx", "2", "tx", "2")
	wantGate(t, check(t, p.A, addr), "queues", measure.GatePass)
	p.A.Must("ethtool", "-L", p.Data.Dev, "rx", "1", "tx", "1")
	wantGate(t, check(t, p.A, addr), "queues", measure.GateWarn)
}

// TestCgroupGate: a CPU quota of half a CPU for thru itself.
func TestCgroupGate(t *testing.T) {
	lab.Require(t, lab.Root())
	const cpu = "/sys/fs/cgroup/cpu"
	quota, period, half := "cpu.cfs_quota_us", "cpu.cfs_period_us", "50000"
	if _, err := os.Stat(filepath.Join(cpu, quota)); err != nil {
		t.Skip("this machine has no cpu controller of cgroup v1")
	}
	dir, err := os.MkdirTemp(cpu, "thru-lab-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(dir) })
	for file, value := range map[string]string{period: "100000", quota: half} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(value), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run := func(prefix string) (string, error) {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", prefix+`exec "$0" check --json --only cpu-quota`, lab.Binary(t))
		cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
		out, err := cmd.Output()
		return string(out), err
	}
	if out, err := run(""); err != nil || strings.Contains(out, `"fail"`) {
		t.Errorf("without a quota: %v\n%s", err, out)
	}
	if out, err := run("echo $$ > " + dir + "/cgroup.procs; "); err == nil || !strings.Contains(out, `"fail"`) {
		t.Errorf("with half a CPU: %v\n%s", err, out)
	}
}
