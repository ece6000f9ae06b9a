package vsphere

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/types"

	"thru/internal/measure"
	"thru/internal/unit"
)

// Inventory implements hypervisor.Source. It reads only needed properties,
// page by page; for a choice it reads first the identities of machines and
// hosts, then the rest of the chosen ones.
func (c *Client) Inventory(ctx context.Context, want func(*measure.Guest) bool, hosts func(*measure.GuestHost) bool) (measure.Inventory, error) {
	var b *builder
	err := c.again(ctx, func(vc *vim25.Client) error {
		b = &builder{vc: vc, want: want, hosts: hosts, load: map[string]*load{}, seen: map[string]bool{}, links: map[string]string{}}
		return b.read(ctx)
	})
	if err != nil {
		return measure.Inventory{}, c.explain("reading the inventory of "+c.addr, err)
	}
	b.join()
	v := b.inv
	v.Source, v.Kind, v.Product, v.ReadAt = c.name, kind, c.product(), time.Now()
	if at, err := c.sourceClock(ctx, time.Now); err == nil {
		v.ClockNs = new(int64(at.ahead))
	} else {
		v.NotChecked = append(v.NotChecked, measure.NotChecked{Fact: "clock_ahead_ns", Why: err.Error()})
	}
	return v, nil
}

// load adds up what a host assigns to running machines.
type load struct {
	guests, cpus int
	memory       int64
}

// builder collects one inventory.
type builder struct {
	vc    *vim25.Client
	want  func(*measure.Guest) bool
	hosts func(*measure.GuestHost) bool

	inv      measure.Inventory
	tree     tree
	refuse   refusals
	load     map[string]*load // by host
	seen     map[string]bool  // by id of a machine: all facts for its host are known
	unseen   string           // why no machine was read
	switches map[string]*distributed
	groups   []group
	links    map[string]string // host and key of a distributed switch's uplink port: its name
}

// read reads everything, the identities first. It notes what the server
// refuses, and reads the rest.
func (b *builder) read(ctx context.Context) error {
	var err error
	if b.tree, err = readTree(ctx, b.vc, &b.refuse); err != nil {
		return err
	}
	for _, step := range []struct {
		fact string
		read func(context.Context) error
	}{{"guests", b.readGuests}, {"hosts", b.readHosts}, {"switches", b.readSwitches}, {"port_groups", b.readGroups},
		{"guests.nics.limit", b.readPorts}, {"datastores", b.readStores}} {
		err := step.read(ctx)
		if err == nil {
			continue
		}
		if faultOf(err) == nil || isFault[*types.NotAuthenticated](err) || ctx.Err() != nil {
			return err // an error of the connection or the session, not a refusal
		}
		b.inv.NotChecked = append(b.inv.NotChecked, measure.NotChecked{Fact: step.fact, Why: faultWords(err)})
		if step.fact == "guests" {
			b.unseen = faultWords(err)
		}
	}
	return nil
}

// readGuests reads the virtual machines.
func (b *builder) readGuests(ctx context.Context) error {
	if b.want == nil {
		all := query{types: []string{"VirtualMachine"}, paths: guestAll()}
		return all.each(ctx, b.vc, func(o *types.ObjectContent) error { b.addGuest(o); return nil })
	}
	var chosen []types.ManagedObjectReference
	total := 0
	who := query{types: []string{"VirtualMachine"}, paths: guestIdentity()}
	err := who.each(ctx, b.vc, func(o *types.ObjectContent) error {
		g := convertGuest(o, b.tree, false)
		b.count(&g)
		total++
		if b.want(&g) {
			chosen = append(chosen, o.Obj)
		} else {
			b.refuse.note("guests", g.Name, o) // it may be the reason for not choosing it
		}
		return nil
	})
	if err != nil {
		return err
	}
	b.inv.GuestsTotal = &total
	rest := query{refs: chosen, paths: guestAll()}
	return rest.each(ctx, b.vc, func(o *types.ObjectContent) error { b.addGuest(o); return nil })
}

// addGuest adds one machine.
func (b *builder) addGuest(o *types.ObjectContent) {
	g := convertGuest(o, b.tree, true)
	b.refuse.note("guests", g.Name, o)
	if b.want == nil {
		b.count(&g)
	}
	b.inv.Guests = append(b.inv.Guests, g)
}

// count adds a running machine to its host's load.
func (b *builder) count(g *measure.Guest) {
	b.seen[g.ID] = g.Host != "" && g.Power != "" && (g.Power != "on" || g.CPUs != nil && g.Memory != nil)
	if g.Host == "" || g.Power != "on" {
		return
	}
	l := b.load[g.Host]
	if l == nil {
		l = &load{}
		b.load[g.Host] = l
	}
	l.guests++
	if g.CPUs != nil {
		l.cpus += *g.CPUs
	}
	if g.Memory != nil {
		l.memory += *g.Memory
	}
}

// readHosts reads the hosts: all, or those of the chosen machines and the
// chosen hosts.
func (b *builder) readHosts(ctx context.Context) error {
	refs := b.tree.hosts()
	if b.want != nil {
		b.inv.HostsTotal = new(len(refs))
		chosen, err := b.chooseHosts(ctx, refs)
		if err != nil {
			return err
		}
		refs = slices.DeleteFunc(refs, func(r types.ManagedObjectReference) bool { return !chosen[r.Value] })
	}
	q := query{refs: refs, paths: hostAll(), page: hostPageSize}
	return q.each(ctx, b.vc, func(o *types.ObjectContent) error { return b.addHost(ctx, o) })
}

// chooseHosts finds the wanted hosts.
func (b *builder) chooseHosts(ctx context.Context, refs []types.ManagedObjectReference) (map[string]bool, error) {
	chosen := map[string]bool{}
	for _, g := range b.inv.Guests {
		chosen[g.Host] = true
	}
	if b.hosts == nil {
		return chosen, nil
	}
	q := query{refs: refs, paths: hostIdentity()}
	return chosen, q.each(ctx, b.vc, func(o *types.ObjectContent) error {
		h := convertHostIdentity(o)
		if b.hosts(&h) {
			chosen[h.ID] = true
		} else if !chosen[h.ID] {
			b.refuse.note("hosts", h.Name, o) // it may be the reason for not choosing it
		}
		return nil
	})
}

// addHost adds one host with its own switches.
func (b *builder) addHost(ctx context.Context, o *types.ObjectContent) error {
	h := convertHost(o, b.tree)
	b.refuse.note("hosts", h.Name, o)
	b.reserved(&h, o)
	for _, i := range h.Facts.Interfaces {
		if *i.Kind == vswitch || *i.Kind == dvswitch {
			h.Facts.Hypervises.Switch = append(h.Facts.Hypervises.Switch, *i.Kind+" "+i.Name)
		}
	}
	switches, groups := standardSwitches(o)
	b.inv.Switches, b.inv.PortGroups = append(b.inv.Switches, switches...), append(b.inv.PortGroups, groups...)
	r := &reader{object: o}
	proxies, _ := value[types.ArrayOfHostProxySwitch](r, "", "config.network.proxySwitch", "")
	for _, p := range proxies.HostProxySwitch {
		b.addProxy(h.ID, &p, pnicNames(r))
	}
	if err := askedOf(o, h.Name).more(ctx, b.vc, h.Facts, &b.refuse); err != nil {
		return err
	}
	b.inv.Hosts = append(b.inv.Hosts, h)
	return nil
}

// reserved sets what a host assigns to its machines, where all registered
// machines were read: an account that sees only some cannot know the sum.
func (b *builder) reserved(h *measure.GuestHost, o *types.ObjectContent) {
	h.Facts.Hypervises = &measure.Hypervises{}
	r := &reader{object: o}
	list, _ := value[types.ArrayOfManagedObjectReference](r, "", "vm", "")
	why, unseen := cmp.Or(b.unseen, refusal(o, "vm")), 0
	for _, m := range list.ManagedObjectReference {
		if !b.seen[m.Value] {
			unseen++
		}
	}
	if n := len(list.ManagedObjectReference); why == "" && unseen > 0 {
		why = fmt.Sprintf("the host has %d registered VMs, the server reports %d in full: the account may not see the others", n, n-unseen)
	}
	if why != "" {
		for _, fact := range []string{"guests_running", "guest_cpus", "guest_memory_bytes"} {
			h.NotChecked = append(h.NotChecked, measure.NotChecked{Fact: fact, Why: why})
		}
		return
	}
	l := cmp.Or(b.load[h.ID], &load{})
	h.Guests, h.CPUsHanded, h.MemHanded = &l.guests, &l.cpus, &l.memory
	h.Facts.Hypervises.Guests = l.guests
}

// addProxy reads what a host knows about a distributed switch: the names of
// its uplinks, and all of it where there is no vCenter to ask.
func (b *builder) addProxy(host string, p *types.HostProxySwitch, pnics map[string]string) {
	for _, u := range p.UplinkPort {
		b.links[host+" "+p.DvsUuid+" "+u.Key] = u.Value
	}
	if b.vc.IsVC() {
		return
	}
	v := measure.VirtualSwitch{ID: p.DvsUuid, Name: unescape(&p.DvsName), Kind: "distributed", Hosts: []string{host}, MTU: positive(p.Mtu), Ports: positive(p.NumPorts),
		NotChecked: []measure.NotChecked{{Fact: "teaming", Why: "only its vCenter reports its settings and port groups"}}}
	for _, nic := range named(pnics, p.Pnic) {
		v.Uplinks = append(v.Uplinks, measure.Uplink{Host: host, NIC: nic})
	}
	b.inv.Switches = append(b.inv.Switches, v)
}

// readSwitches reads the distributed switches: all, or those of the hosts in
// the inventory.
func (b *builder) readSwitches(ctx context.Context) error {
	b.switches = map[string]*distributed{}
	if !b.vc.IsVC() {
		return nil
	}
	q := query{types: []string{"DistributedVirtualSwitch"}, paths: switchPaths(), page: hostPageSize}
	return q.each(ctx, b.vc, func(o *types.ObjectContent) error {
		d := convertSwitch(o)
		b.refuse.note("switches", d.Name, o)
		read := func(id string) bool { return b.inv.Host(id) != nil }
		if b.want != nil && !slices.ContainsFunc(d.Hosts, read) {
			return nil
		}
		b.switches[d.ID] = d
		return nil
	})
}

// readGroups reads the distributed port groups: all, or those that the
// inventory uses, and those of the uplinks.
func (b *builder) readGroups(ctx context.Context) error {
	if !b.vc.IsVC() {
		return nil
	}
	used := map[string]bool{}
	for _, g := range b.inv.Guests {
		for _, n := range g.NICs {
			used[n.PortGroup] = true
		}
	}
	for _, h := range b.inv.Hosts {
		for _, p := range h.Ports {
			used[p.PortGroup] = true
		}
	}
	q := query{types: []string{"DistributedVirtualPortgroup"}, paths: groupPaths()}
	return q.each(ctx, b.vc, func(o *types.ObjectContent) error {
		g := convertGroup(o, b.switches)
		b.refuse.note("port_groups", g.Name, o)
		if b.want == nil || used[g.ID] || g.Uplinks && b.switches[g.Switch] != nil {
			b.groups = append(b.groups, g)
		}
		return nil
	})
}

// readStores reads the datastores: all, or those that the inventory uses.
func (b *builder) readStores(ctx context.Context) error {
	q := query{types: []string{"Datastore"}, paths: storePaths()}
	if b.want != nil {
		q = query{refs: b.usedStores(), paths: storePaths()}
	}
	err := q.each(ctx, b.vc, func(o *types.ObjectContent) error {
		d := convertStore(o, b.tree)
		b.refuse.note("datastores", d.Name, o)
		b.inv.Datastores = append(b.inv.Datastores, d)
		return nil
	})
	slices.SortFunc(b.inv.Datastores, func(a, c measure.Datastore) int { return cmp.Or(cmp.Compare(a.Name, c.Name), natural(a.ID, c.ID)) })
	return err
}

// usedStores returns the datastores of the machines and hosts in the
// inventory.
func (b *builder) usedStores() []types.ManagedObjectReference {
	var ids []string
	for _, h := range b.inv.Hosts {
		ids = append(ids, h.Datastores...)
	}
	for _, g := range b.inv.Guests {
		for _, d := range g.Disks {
			if d.Datastore != "" {
				ids = append(ids, d.Datastore)
			}
		}
	}
	return unit.Mapped(compact(ids), func(id string) types.ManagedObjectReference {
		return types.ManagedObjectReference{Type: "Datastore", Value: id}
	})
}
