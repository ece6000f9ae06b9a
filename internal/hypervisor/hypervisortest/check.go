package hypervisortest

import (
	"slices"
	"strings"
	"testing"

	"thru/internal/measure"
)

// Check verifies what holds for every inventory: ids are present and unique,
// references have a target, and NotChecked names each missing fact that every
// source should know.
func Check(t *testing.T, v *measure.Inventory) {
	t.Helper()
	if v.Source == "" || v.ReadAt.IsZero() || !slices.Contains([]string{measure.KindVSphere, measure.KindESXi, measure.KindKVM}, v.Kind) {
		t.Errorf("source %q, kind %q, read at %v", v.Source, v.Kind, v.ReadAt)
	}
	if v.ClockNs == nil && !explained(v.NotChecked, "clock_ahead_ns") && v.Kind == measure.KindVSphere {
		t.Error("no clock, and no reason")
	}
	said(t, "inventory", v.NotChecked)
	ids(t, "guest", v.Guests, func(g *measure.Guest) string { return g.ID })
	ids(t, "host", v.Hosts, func(h *measure.GuestHost) string { return h.ID })
	ids(t, "switch", v.Switches, func(s *measure.VirtualSwitch) string { return s.ID })
	ids(t, "port group", v.PortGroups, func(p *measure.SwitchPortGroup) string { return p.ID })
	ids(t, "datastore", v.Datastores, func(d *measure.Datastore) string { return d.ID })
	for i := range v.Guests {
		checkGuest(t, v, &v.Guests[i])
	}
	for i := range v.Hosts {
		checkHost(t, v, &v.Hosts[i])
	}
	for _, s := range v.Switches {
		for _, id := range append(slices.Clone(s.Hosts), s.Host) {
			refers(t, "switch "+s.ID, id, v.Host(id) != nil)
		}
		for _, u := range s.Uplinks {
			refers(t, "uplink "+u.NIC+" of "+s.ID, u.Host, v.Host(u.Host) != nil)
		}
		explains(t, v, "switch "+s.ID, s.NotChecked, map[string]bool{"mtu_bytes": s.MTU == nil})
	}
	for _, p := range v.PortGroups {
		refers(t, "port group "+p.ID, p.Switch, v.Switch(p.Switch) != nil)
		refers(t, "port group "+p.ID, p.Host, v.Host(p.Host) != nil)
	}
}

// checkGuest verifies a guest.
func checkGuest(t *testing.T, v *measure.Inventory, g *measure.Guest) {
	t.Helper()
	who := "guest " + g.ID
	refers(t, who, g.Host, v.Host(g.Host) != nil)
	if g.UUID != strings.ToLower(g.UUID) {
		t.Errorf("%s: UUID %s in capitals", who, g.UUID)
	}
	for _, n := range g.NICs {
		refers(t, who, n.PortGroup, v.PortGroup(n.PortGroup) != nil)
		refers(t, who, n.Switch, v.Switch(n.Switch) != nil)
		if n.Name == "" || n.MAC != nil && *n.MAC != strings.ToLower(*n.MAC) {
			t.Errorf("%s: adapter %+v", who, n)
		}
		explains(t, v, who, g.NotChecked, map[string]bool{"nics." + n.Name + ".model": n.Model == nil, "nics." + n.Name + ".mac": n.MAC == nil})
	}
	for _, d := range g.Disks {
		refers(t, who, d.Datastore, slices.ContainsFunc(v.Datastores, func(s measure.Datastore) bool { return s.ID == d.Datastore }))
	}
	explains(t, v, who, g.NotChecked, map[string]bool{"cpus": g.CPUs == nil, "memory_bytes": g.Memory == nil, "uuid": g.UUID == "", "power": g.Power == "",
		"addresses": g.Addrs == nil, "hostname": g.Hostname == nil, "os_running": g.OSRuns == nil, "hardware_version": g.Hardware == nil, "host": g.Host == ""})
	said(t, who, g.NotChecked)
}

// checkHost verifies a host.
func checkHost(t *testing.T, v *measure.Inventory, h *measure.GuestHost) {
	t.Helper()
	who := "host " + h.ID
	for _, p := range h.Ports {
		refers(t, who, p.PortGroup, v.PortGroup(p.PortGroup) != nil)
	}
	for _, id := range h.Datastores {
		refers(t, who, id, slices.ContainsFunc(v.Datastores, func(s measure.Datastore) bool { return s.ID == id }))
	}
	if h.Name == "" || h.Facts == nil {
		t.Errorf("%s: name %q, facts %v", who, h.Name, h.Facts)
		return
	}
	f := h.Facts
	explains(t, v, who, append(slices.Clone(h.NotChecked), f.NotChecked...), map[string]bool{"uuid": h.UUID == "", "kernel": f.Kernel == nil,
		"cores": f.Cores == nil, "memory_bytes": f.Memory == nil, "cpu_model": f.CPUModel == nil, "interfaces": f.Interfaces == nil,
		"machine": f.Machine == nil, "cpu.governors": f.CPU == nil || f.CPU.Governors == nil, "numa_nodes": f.NUMA == nil})
	said(t, who, f.NotChecked)
	said(t, who, h.NotChecked)
}

// ids verifies that each item has an id of its own.
func ids[T any](t *testing.T, what string, list []T, id func(*T) string) {
	t.Helper()
	seen := map[string]bool{}
	for i := range list {
		n := id(&list[i])
		if n == "" || seen[n] {
			t.Errorf("%s %d: id %q is empty or stands twice", what, i, n)
		}
		seen[n] = true
	}
}

// refers verifies that the target of a reference exists.
func refers(t *testing.T, who, id string, there bool) {
	t.Helper()
	if id != "" && !there {
		t.Errorf("%s refers to %q, which is not there", who, id)
	}
}

// explains verifies that each missing fact is in NotChecked, there or in that
// of the whole inventory.
func explains(t *testing.T, v *measure.Inventory, who string, list []measure.NotChecked, missing map[string]bool) {
	t.Helper()
	for fact, is := range missing {
		if is && !explained(list, fact) && !explained(v.NotChecked, "guests."+fact) && !explained(v.NotChecked, "hosts."+fact) {
			t.Errorf("%s: no %s, and no reason in %+v", who, fact, list)
		}
	}
}

// explained reports whether a fact, or one that contains it, is in the list.
func explained(list []measure.NotChecked, fact string) bool {
	for {
		if slices.ContainsFunc(list, func(n measure.NotChecked) bool { return n.Fact == fact || n.Fact == fact+".*" }) {
			return true
		}
		dot := strings.LastIndex(fact, ".")
		if dot < 0 {
			return false
		}
		fact = fact[:dot]
	}
}

// said verifies that each entry of NotChecked has a name and a reason.
func said(t *testing.T, who string, list []measure.NotChecked) {
	t.Helper()
	for _, n := range list {
		if n.Fact == "" || n.Why == "" {
			t.Errorf("%s: not checked %+v", who, n)
		}
	}
}
