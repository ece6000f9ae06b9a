//go:build vmlab

package vm

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"thru/internal/measure"
	"thru/lab"
)

// hypervisor is the name under which the site's switch is joined.
const hypervisor = "host"

// TestBelow checks VMs from their hypervisor: thru inventory lists them as they were started, a test
// identifies its end point among them, and the hypervisor shows a VM that gets too little CPU.
func TestBelow(t *testing.T) {
	// A quota of 20% of a CPU, for one VM. It is made before the VMs, so that it is removed after them.
	group := lab.Group(t, "cpu", map[string]string{"cpu.cfs_quota_us": "20000"}, map[string]string{"cpu.max": "20000 100000"})
	o := newOperator(t)
	vms := o.boot(Spec{Name: guest, Number: 11, NIC: VMXNET3}, Spec{Name: "other", Number: 12, NIC: E1000})
	o.serve(o.site.Switch, hypervisor, "inventory")

	d := o.measure("inventory", hypervisor)
	if len(d.Inventories) != 1 {
		t.Fatalf("%d inventories", len(d.Inventories))
	}
	say("")
	for _, v := range vms {
		judgeListed(t, &d.Inventories[0], v)
	}
	free := base(t, o.measure("test", guest, "--one-way", "-t", "4", "--hypervisor", hypervisor), "local")
	d = o.measure("test", guest, "--one-way", "-t", "4", "--hypervisor", hypervisor)
	judgePlaced(t, d, vms[0])

	if err := os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte(fmt.Sprint(vms[0].Pid())), 0o600); err != nil {
		t.Fatal(err)
	}
	c := base(t, o.measure("test", guest, "--one-way", "-t", "6", "--hypervisor", hypervisor), "local")
	say("%s with 20%% of a CPU: %.0f instead of %.0f Mb/s: %s", guest, c.Goodput.Value/1e6, free.Goodput.Value/1e6, causes(c))
	f := finding(c, "cpu-limit")
	busy := finding(c, "noisy-neighbour") != nil // others on this machine leave the VM no more than its limit
	if f == nil || f.Where.EndPoint != guest || f.Confidence == measure.Possible && !busy {
		t.Errorf("the limit of the VM's CPU is not named: %+v", f)
	}
	judgeRelation(o)
}

// judgeListed compares a VM in an inventory with its Spec.
func judgeListed(t *testing.T, all *measure.Inventory, v *VM) {
	t.Helper()
	i := slices.IndexFunc(all.Guests, func(g measure.Guest) bool { return g.Name == v.Name })
	if i < 0 || len(all.Guests[i].NICs) != 1 {
		t.Errorf("%s with its adapter is not in the inventory: %+v", v.Name, all.Guests)
		return
	}
	g := all.Guests[i]
	n := g.NICs[0]
	got := []string{g.UUID, number(g.PID), number(g.CPUs), text(n.MAC), text(n.Device), text(n.Model), text(n.Network)}
	want := []string{v.UUID(), fmt.Sprint(v.Pid()), "1", v.MAC(), v.Tap(), v.NIC, Bridge}
	say("inventory of the host: %s: %s", v.Name, strings.Join(got, " "))
	if !slices.Equal(got, want) {
		t.Errorf("%s is listed as %v, want %v", v.Name, got, want)
	}
}

// judgePlaced checks which VM an end point is said to be, and that the hypervisor's counters cover the test.
func judgePlaced(t *testing.T, d *measure.Document, v *VM) {
	t.Helper()
	for _, e := range d.EndPoints {
		if e.Name != v.Name {
			continue
		}
		if e.Placement == nil || e.Placement.GuestName != v.Name || e.Placement.Network != Bridge {
			t.Errorf("the end point %s is placed as %+v (%s)", e.Name, e.Placement, e.NoPlace)
			continue
		}
		say("test of %s: VM %s by %s at %s", e.Name, e.Placement.GuestName, strings.Join(e.Placement.By, " and "), e.Placement.Network)
	}
	counters := map[string]bool{}
	for _, inventory := range d.Inventories {
		for _, s := range inventory.Series {
			counters[s.Counter] = counters[s.Counter] || len(s.Samples) > 0
		}
	}
	for _, want := range []string{measure.CounterReady, measure.CounterUsed, measure.CounterRxBps} {
		if !counters[want] {
			t.Errorf("the host has not counted %s while the test ran: %v", want, counters)
		}
	}
}

// judgeRelation measures between the two VMs, which are on one host.
func judgeRelation(o *operator) {
	o.t.Helper()
	path := filepath.Join(o.home, "pair.yaml")
	plan := fmt.Sprintf(`thru: 1
name: two VMs of a host
end_points: [%s, other]
pairs:
  - {from: %s, to: other}
hypervisors: [%s]
traffic: {time: 2s, direction: forward}
`, guest, guest, hypervisor)
	if err := os.WriteFile(path, []byte(plan), 0o600); err != nil {
		o.t.Fatal(err)
	}
	d := o.measure("run", path, "--force")
	if len(d.Relations) != 1 || d.Relations[0].Kind != measure.SameHost {
		o.t.Errorf("%s and other are on one host, and that is not said: %+v", guest, d.Relations)
		return
	}
	say("%s -> other: %s: %s", guest, d.Relations[0].Kind, d.Relations[0].Why)
}

// number prints a number that may be absent.
func number(n *int) string {
	if n == nil {
		return "none"
	}
	return fmt.Sprint(*n)
}
