// Package esx is a hypervisor source for one ESXi host, read by its own
// commands over ssh: esxcli, vim-cmd, vsish and esxtop. They only read. Facts
// that a build does not have, or refuses, are in not_checked, with the
// reason.
//
// Formats: ESXCLI reference (7.0 and 8.0); .vmx files by the documentation of
// virtual hardware; vsish and esxtop -b by VMware's KB articles and
// performance white papers. None is documented completely, so readers use the
// names that they know and skip the rest.
package esx

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"thru/internal/fault"
	"thru/internal/host/platform"
	"thru/internal/measure"
)

// Limits of an inventory: guests that are listed, and running guests that are
// asked for their ports, which takes most of a second each.
const (
	mostGuests = 1000
	mostAsked  = 64
	atOnce     = 4 // parallel commands: sshd allows 10 sessions a connection
)

// hostID is the id that ESXi's own service gives its only host.
const hostID = "ha-host"

// Host is an ESXi host. It implements hypervisor.Source.
type Host struct {
	run  platform.Runner
	name string

	mu      sync.Mutex
	known   []guest         // as last read; nil: not yet
	watches map[*watch]bool // running
	closed  bool
}

// New returns a source that reads the host by a runner of its commands. name
// is the user's name for the host.
func New(run platform.Runner, name string) *Host {
	return &Host{run: run, name: name, watches: map[*watch]bool{}}
}

// Name returns the user's name for the host.
func (h *Host) Name() string { return h.name }

// Close ends all watches, and the runner's connection where it has one.
func (h *Host) Close() (err error) {
	h.mu.Lock()
	h.closed = true
	all := slices.Collect(maps.Keys(h.watches))
	h.mu.Unlock()
	for _, w := range all {
		w.stop()
	}
	if c, ok := h.run.(io.Closer); ok {
		err = c.Close()
	}
	for _, w := range all {
		w.ended.Wait()
	}
	return err
}

// open returns an error where the source is closed.
func (h *Host) open() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return fmt.Errorf("esx: reading %s: the connection is closed", h.name)
	}
	return nil
}

// reading is an inventory in progress.
type reading struct {
	*Host
	run platform.Runner // runs the host's commands with the limits of patient
	ctx context.Context
	mu  sync.Mutex
	measure.Inventory
}

// read starts an inventory.
func (h *Host) read(ctx context.Context) *reading {
	return &reading{Host: h, run: patiently(h.run), ctx: ctx}
}

// lacks records a fact that was not checked, once.
func (r *reading) lacks(fact, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := (measure.NotChecked{Fact: fact, Why: why}); !slices.Contains(r.NotChecked, n) {
		r.NotChecked = append(r.NotChecked, n)
	}
}

// ask returns the output of a command; where the command fails, its fact is
// not checked. It drops the output of a command that did not end by itself.
func (r *reading) ask(fact, name string, args ...string) string {
	out, err := r.run.Run(r.ctx, name, args...)
	if err != nil {
		r.lacks(fact, "`"+name+" "+strings.Join(args, " ")+"`: "+platform.Why(err))
		if exit := (*platform.Exit)(nil); !errors.As(err, &exit) {
			out = nil
		}
	}
	return platform.Clean(string(out))
}

// blocks reads "key: value" blocks; an empty output is no error.
func (r *reading) blocks(fact, name string, args ...string) []platform.Row {
	list, _ := platform.Blocks(r.ask(fact, name, args...))
	return list
}

// block reads one block; nil where there is none.
func (r *reading) block(fact, name string, args ...string) platform.Row {
	if list := r.blocks(fact, name, args...); len(list) > 0 {
		return list[0]
	}
	return nil
}

// table reads a table; nothing where it is empty.
func (r *reading) table(fact, name string, args ...string) []platform.Row {
	rows, _ := platform.Table(r.ask(fact, name, args...))
	return rows
}

// Inventory reads the host, its guests and its networks.
func (h *Host) Inventory(ctx context.Context, want func(*measure.Guest) bool, hosts func(*measure.GuestHost) bool) (measure.Inventory, error) {
	r := h.read(ctx)
	r.Source, r.Kind, r.ReadAt = h.name, measure.KindESXi, time.Now()
	if err := h.open(); err != nil {
		return r.Inventory, err
	}
	facts, err := platform.Read(ctx, "esxi", r.run)
	if err != nil {
		return r.Inventory, fault.New(fault.Code(err), fault.Hint(err), "esx: reading %s: %w", h.name, err)
	}
	r.Product = cmp.Or(measure.Value(facts.Distro), r.Product)
	r.clock()
	r.datastores(&facts)
	r.switches()
	guests := r.guests()
	h.keep(guests)
	r.GuestsTotal = new(len(guests))
	kept := guests[:0]
	for _, g := range guests {
		if want == nil || want(&g.Guest) {
			kept = append(kept, g)
		}
	}
	host := r.host(facts, guests)
	for _, g := range kept {
		r.Guests = append(r.Guests, g.Guest)
	}
	r.HostsTotal = new(1)
	if want == nil || len(kept) > 0 || hosts != nil && hosts(&host) {
		r.Hosts = []measure.GuestHost{host}
	} else {
		r.Switches, r.PortGroups, r.Datastores = nil, nil, nil
	}
	return r.Inventory, ctx.Err()
}

// keep stores the guests for a Watch.
func (h *Host) keep(guests []guest) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.known = slices.Clone(guests)
}

// clock compares the host's clock with ours, to one second.
func (r *reading) clock() {
	begin := time.Now()
	out, err := r.run.Run(r.ctx, "date", "-u", "+%s")
	end := time.Now()
	var s int64
	if _, serr := fmt.Sscan(strings.TrimSpace(string(out)), &s); err != nil || serr != nil {
		r.lacks("clock_ahead_ns", "not in the output of `date`")
		return
	}
	there := time.Unix(s, 0).Add(time.Second / 2)
	if off := there.Sub(begin.Add(end.Sub(begin) / 2)); off < -2*time.Second || off > 2*time.Second {
		r.ClockNs = new(off.Nanoseconds())
	} else {
		r.lacks("clock_ahead_ns", "the difference is below 2 s, and the host reports whole seconds")
	}
}

// host returns the host itself with the resources assigned to its guests.
func (r *reading) host(facts measure.Facts, guests []guest) measure.GuestHost {
	h := measure.GuestHost{ID: hostID, Name: cmp.Or(measure.Value(facts.Hostname), r.name), Facts: &facts}
	if facts.Machine != nil {
		h.UUID = facts.Machine.UUID
	}
	if h.UUID == "" {
		h.NotChecked = append(h.NotChecked, measure.NotChecked{Fact: "uuid", Why: "not in `esxcli hardware platform get`"})
	}
	running, cpus, memory, known := 0, 0, int64(0), true
	for _, g := range guests {
		if g.world == "" {
			continue
		}
		running++
		if known = known && g.CPUs != nil && g.Memory != nil; known {
			cpus, memory = cpus+*g.CPUs, memory+*g.Memory
		}
	}
	h.Guests = &running
	if known {
		h.CPUsHanded, h.MemHanded = &cpus, &memory
	} else {
		h.NotChecked = append(h.NotChecked, measure.NotChecked{Fact: "guest_cpus", Why: "the files of some guests could not be read"})
	}
	h.Ports = r.vmkernelPorts(&facts)
	for _, d := range r.Datastores {
		h.Datastores = append(h.Datastores, d.ID)
	}
	return h
}

// datastores adds the volumes that the facts name.
func (r *reading) datastores(facts *measure.Facts) {
	for _, d := range facts.Disks {
		s := measure.Datastore{ID: d.Name, Name: d.Name, Size: d.SizeBytes}
		if len(d.Mounts) > 0 {
			s.Type, s.Free = &d.Mounts[0].Type, d.Mounts[0].FreeBytes
		}
		r.Datastores = append(r.Datastores, s)
	}
}

// vmkernelPorts returns the host's own addresses, with the purpose of each.
func (r *reading) vmkernelPorts(facts *measure.Facts) []measure.VMkernelPort {
	more := map[string]platform.Row{}
	for _, w := range r.blocks("hosts.vmkernel_ports", "esxcli", "network", "ip", "interface", "list") {
		more[w["name"]] = w
	}
	var ports []measure.VMkernelPort
	for _, i := range facts.Interfaces {
		if i.Kind == nil || *i.Kind != "vmkernel" || !platform.Plain(i.Name) {
			continue
		}
		p := measure.VMkernelPort{Device: i.Name, MTU: i.MTU, MAC: i.MAC, Addrs: i.Addrs}
		if on, ok := i.Offloads["tcp-segmentation-offload"]; ok {
			p.TSO = &on
		}
		if w := more[i.Name]; w != nil {
			p.Network, p.Stack = said(w["portgroup"]), said(w["netstackinstance"])
			if p.Network != nil {
				p.PortGroup = r.portGroup(*p.Network)
			}
		}
		tags := r.block("hosts.vmkernel_ports."+i.Name+".services", "esxcli", "network", "ip", "interface", "tag", "get", "-i", i.Name)
		for _, tag := range platform.Words(tags["tags"]) {
			p.Services = append(p.Services, service(tag))
		}
		ports = append(ports, p)
	}
	return ports
}

// service maps a tag of a VMkernel port to the web service's name.
func service(tag string) string {
	switch tag {
	case "Management", "VMotion", "VSAN":
		return strings.ToLower(tag)
	}
	return strings.ToLower(tag[:1]) + tag[1:]
}

// said returns a pointer to a value, or nil for an empty or placeholder
// value.
func said(s string) *string {
	if s = strings.TrimSpace(s); s == "" || s == "N/A" || s == "<none>" {
		return nil
	}
	return &s
}

// each calls f for the numbers below n, a few at a time, and waits for all.
func each(n int, f func(i int)) {
	var wg sync.WaitGroup
	room := make(chan struct{}, atOnce)
	for i := range n {
		wg.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			f(i)
		})
	}
	wg.Wait()
}
