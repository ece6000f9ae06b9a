//go:build vmlab

package vm

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"thru/internal/measure"
	"thru/lab"
)

// TestRing sends datagrams faster than the guest takes them out of its ring: thru sees the overflow in the
// driver's own counter and names it; a tuning sets a longer ring, checks that it is in force, and reverts it
// where it does not help.
func TestRing(t *testing.T) {
	o := newOperator(t)
	o.boot(Spec{Name: guest, Number: 11, NIC: VMXNET3, CPUs: 2})

	d := o.measure("test", guest, "-u", "-b", "1G", "-t", "3", "--one-way")
	c := base(t, d, "local")
	say("\ndatagrams to vmxnet3: %.0f Mb/s of 1000, %.0f%% lost: %s", c.Goodput.Value/1e6, c.Datagrams.LossPct, causes(c))
	f := finding(c, "ring-overflow")
	if f == nil || f.Where.EndPoint != guest || !slices.ContainsFunc(f.Evidence, func(p measure.Proof) bool { return strings.Contains(p.Counter, "OOB") }) {
		t.Errorf("the driver's overflow is not named: %+v", f)
	}
	if n := queues(d); n != 2 {
		t.Errorf("%d receive queues have counters, want 2: one a CPU", n)
	}
	before := adapter(t, d).Rings
	if before == nil || before.RX >= before.RXMax {
		t.Fatalf("rings of the guest: %+v", before)
	}

	d = o.measure("tune", guest, "--yes", "--one-way", "-t", "1", "--budget", "90s", "--only", "rx-ring", "--try", fmt.Sprintf("rx-ring=%d@%s:eth0", before.RXMax, guest))
	if len(d.Tuning.Attempts) == 0 {
		t.Fatalf("thru tune has tried no ring: %+v", d.Tuning)
	}
	a := d.Tuning.Attempts[0]
	say("ring of %d instead of %d: %s: %s", before.RXMax, before.RX, a.Outcome, a.Reason)
	set := slices.ContainsFunc(a.Verified, func(x measure.Verification) bool {
		return x.What == "read back" && x.Holds != nil && *x.Holds
	})
	if !set {
		t.Errorf("the longer ring was not read back: %+v", a.Verified)
	}
	after := adapter(t, o.measure("test", guest, "--one-way", "-t", "1", "-b", "1M")).Rings
	if want := map[bool]int{true: before.RXMax, false: before.RX}[a.Outcome == measure.Kept]; after == nil || after.RX != want {
		t.Errorf("the change is %s, and the ring is %+v, want %d", a.Outcome, after, want)
	}
}

// TestJumbo: an MTU that both ends have accepted counts only after packets of that size have passed (S-03).
func TestJumbo(t *testing.T) {
	o := newOperator(t)
	v := o.boot(Spec{Name: guest, Number: 11, NIC: VMXNET3, MTU: 9000})[0]
	o.site.Peer.IP("link", "set", lab.DataDev, "mtu", "9000")

	fit, code := o.document("check", guest)
	say("\nMTU 9000 at all ports: %s", mtuGate(fit).Fact)
	if code != 0 || mtuGate(fit).Status != measure.GatePass {
		t.Errorf("jumbo frames pass, and the gate says: exit %d, %+v", code, mtuGate(fit))
	}
	o.site.Switch.IP("link", "set", v.Tap(), "mtu", "1500")
	fit, code = o.document("check", guest)
	say("MTU 1500 at the port of the VM: %s", mtuGate(fit).Fact)
	if code != 3 || mtuGate(fit).Status != measure.GateFail {
		t.Errorf("jumbo frames are lost, and the gate says: exit %d, %+v", code, mtuGate(fit))
	}
}

// mtuGate is the worst gate mtu-path.
func mtuGate(d *measure.Document) measure.Gate {
	i := slices.IndexFunc(d.Gates, func(g measure.Gate) bool { return g.ID == "mtu-path" }) // the worst come first
	if i < 0 {
		return measure.Gate{Fact: "no gate mtu-path"}
	}
	return d.Gates[i]
}

// TestMany measures the aggregate rate of 1, 2 and 4 VMs of a host to one receiver, with the CPU of
// the receiver.
func TestMany(t *testing.T) {
	o := newOperator(t)
	var specs []Spec
	for i := range 4 {
		specs = append(specs, Spec{Name: fmt.Sprintf("vm%d", i+1), Number: 11 + i, NIC: VMXNET3})
	}
	o.boot(specs...)
	say("\nVMs   aggregate Mb/s   fairness   busy of the host's CPUs   Mb/s per busy CPU")
	for _, n := range []int{1, 2, 4} {
		d := o.measure("run", o.plan(specs[:n]), "--force")
		if len(d.Groups) != 1 || d.Groups[0].Aggregate == nil || len(d.Groups[0].Failed) > 0 || len(d.Cells) != n {
			t.Fatalf("%d VMs: %d cells, groups %+v", n, len(d.Cells), d.Groups)
		}
		g := d.Groups[0]
		busy := busyCPUs(t, g, "local") // the receiver's CPUs also run the VMs: it is on the hypervisor's machine
		say("%3d %16.0f %10.2f %25.2f %19.0f", n, g.Aggregate.Value/1e6, fairness(g), busy, g.Aggregate.Value/1e6/busy)
		for _, c := range d.Cells {
			if c.Goodput == nil || c.Goodput.Value <= 0 || busyCPUs(t, g, c.From) <= 0 {
				t.Errorf("%s: no goodput or no CPU of the sender", c.From)
			}
		}
	}
}

// plan writes a plan in which VMs send to the peer at the same time.
func (o *operator) plan(from []Spec) string {
	o.t.Helper()
	var names []string
	for _, s := range from {
		names = append(names, s.Name)
	}
	list := strings.Join(names, ", ")
	path := filepath.Join(o.home, fmt.Sprintf("many-%d.yaml", len(from)))
	text := fmt.Sprintf(`thru: 1
name: VMs of one host to one receiver
end_points: [%s]
pairs:
  - {type: many-to-one, from: [%s], to: local}
order: simultaneous
traffic: {streams: 1, time: 4s, direction: forward}
`, list, list)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		o.t.Fatal(err)
	}
	return path
}

// busyCPUs is how many CPUs of a host were busy while a group ran.
func busyCPUs(t *testing.T, g measure.Group, name string) float64 {
	t.Helper()
	i := slices.IndexFunc(g.Hosts, func(h measure.Share) bool { return h.Name == name })
	if i < 0 || g.Hosts[i].CPU == nil {
		t.Fatalf("the CPU of %s was not measured", name)
	}
	if name != "local" {
		return g.Hosts[i].CPU.Pct / 100 // a VM has one
	}
	return g.Hosts[i].CPU.Pct / 100 * float64(runtime.NumCPU())
}

// fairness is the fairness of a group; 1 for a single VM.
func fairness(g measure.Group) float64 {
	if g.Fairness == nil {
		return 1
	}
	return *g.Fairness
}
