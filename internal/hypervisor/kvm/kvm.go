// Package kvm reads the virtual machines of a Linux host that runs QEMU,
// whether libvirt, Proxmox or a person started them, from the host's side:
// the command lines of the processes, the threads that run their CPUs and
// move their packets, their taps and bridges, and during a test the kernel's
// counters of all these. It uses no management interface, only files of /proc
// and /sys, and for guests that do not run the files of libvirt
// (/etc/libvirt/qemu) and Proxmox (/etc/pve/qemu-server).
//
// The root of the file tree is injected and parsers take bytes, so that tests
// can use recorded trees. All texts are untrusted: whoever starts a process
// chooses them.
package kvm

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"thru/internal/fault"
	"thru/internal/host"
	"thru/internal/host/tree"
	"thru/internal/hypervisor"
	"thru/internal/measure"
	"thru/internal/unit"
)

// Host is one Linux host. It is a hypervisor.Source, and may be used by many
// goroutines.
type Host struct {
	name    string
	tree    files
	machine *host.Host
	kernel  kernel
	second  time.Duration // between two readings of a new watch

	mu      sync.Mutex
	watches map[*watch]bool // running
}

var _ hypervisor.Source = (*Host)(nil)

// New returns the host that this program runs on; name is its name in
// inventories.
func New(name string) *Host {
	h := At("/", name)
	h.machine, h.kernel = host.New(), kernel{bridgeVLANs, portLimits}
	return h
}

// At returns the host of a recorded tree below root. The kernel is not asked.
func At(root, name string) *Host {
	untold := errors.New("only the running kernel reports them")
	return &Host{
		name: name, tree: files{tree.Tree{Root: root}}, machine: host.At(root), second: time.Second, watches: map[*watch]bool{},
		kernel: kernel{
			vlans:  func() (map[string]string, error) { return nil, untold },
			limits: func(string) (limits, error) { return limits{}, untold },
		},
	}
}

// Possible returns why the virtual machines of this system cannot be read;
// nil where they can.
func Possible() error {
	if runtime.GOOS != "linux" {
		return fault.Failf("name a Linux host that runs QEMU, or an ESXi host by ssh://root@HOST", "kvm: this host runs %s: thru cannot read its virtual machines", runtime.GOOS)
	}
	return nil
}

// Name implements hypervisor.Source.
func (h *Host) Name() string { return h.name }

// Inventory implements hypervisor.Source.
func (h *Host) Inventory(ctx context.Context, want func(*measure.Guest) bool, hosts func(*measure.GuestHost) bool) (measure.Inventory, error) {
	v := measure.Inventory{Source: h.name, Kind: measure.KindKVM, ReadAt: time.Now(), ClockNs: new(int64(0))}
	running, missing, err := h.guests()
	if err != nil {
		return measure.Inventory{}, err
	}
	if err := ctx.Err(); err != nil {
		return measure.Inventory{}, err
	}
	facts := h.machine.Facts()
	v.NotChecked = missing
	v.Product = product(h.tree, &facts)
	net := newNetwork(h.tree, &facts, h.kernel)
	v.Switches = net.switches(&facts)
	for i := range running {
		v.Guests = append(v.Guests, h.describe(&running[i], net))
	}
	v.Hosts = []measure.GuestHost{h.host(&facts, v.Guests)}
	defined, more := h.tree.defined(running)
	v.Guests = append(v.Guests, defined...)
	v.NotChecked = append(v.NotChecked, more...)
	complete(&v)
	hypervisor.Choose(&v, want, hosts)
	return v, ctx.Err()
}

// guests returns the running guests, with their threads.
func (h *Host) guests() ([]process, []measure.NotChecked, error) {
	if err := Possible(); err != nil && h.tree.Root == "/" {
		return nil, nil, err
	}
	running, others, err := h.tree.processes()
	if err != nil {
		return nil, nil, fault.Failf("run thru on the host of the virtual machines: it needs /proc", "%w", err)
	}
	missing := countOthers(others)
	if err := h.machine.SeesAll(); err != nil {
		missing = append(missing, measure.NotChecked{Fact: "guests", Why: "the list may be incomplete: " + err.Error()})
	}
	ids(running)
	online := h.online()
	vhosts := h.tree.vhostProcesses()
	for i := range running {
		p := &running[i]
		p.born, _ = h.machine.Born(p.pid)
		h.tree.threads(p, online, vhosts)
		h.tree.findTaps(p)
	}
	return running, missing, nil
}

// online returns the online CPUs of the host.
func (h *Host) online() []int {
	cpus, _ := unit.ParseList(h.tree.Optional("sys/devices/system/cpu/online"), unit.MaxCPU)
	return cpus
}

// describe converts a process to a guest.
func (h *Host) describe(p *process, net *network) measure.Guest {
	p.Host = hostID
	h.tree.limits(p, h.machine)
	if nodes, err := unit.ParseList(h.tree.fields(proc(p.pid, "status"))["Mems_allowed_list"], unit.MaxCPU); err == nil && p.NUMANodes == nil {
		if all, err := unit.ParseList(h.tree.Optional("sys/devices/system/node/online"), unit.MaxCPU); err == nil && len(nodes) < len(all) {
			p.NUMANodes = nodes
		}
	}
	p.NICs = nil
	for i := range p.nics {
		a := &p.nics[i]
		if a.pci != "" && !h.tree.isNetwork(a.pci) {
			continue // a GPU, a disk
		}
		net.connect(p, a)
		if a.backend == "vhost-user" {
			p.miss("nics."+a.Name+".host_device", "another process forwards its packets (vhost-user), which thru does not read")
		}
		p.NICs = append(p.NICs, a.GuestNIC)
	}
	if p.incoming {
		p.miss("power", "it was started to receive a guest from another host (-incoming); whether it has received one is not known")
	}
	for i := range p.Disks {
		d := &p.Disks[i]
		d.Size = h.tree.blockSize(d)
	}
	return p.Guest
}

// blockSize returns the size of a block device of the host, which /sys has in
// units of 512 bytes; nil for image files.
func (t files) blockSize(d *measure.GuestDisk) *int64 {
	if d.Path == nil || !strings.HasPrefix(*d.Path, "/dev/") {
		return nil
	}
	name := strings.TrimPrefix(*d.Path, "/dev/")
	if to := t.Link("dev/" + name); to != "" { // "../dm-3"
		name = to
	}
	name = name[strings.LastIndexByte(name, '/')+1:]
	n, err := t.Number64("sys/class/block/" + name + "/size")
	if err != nil || n < 0 || n > 1<<53 {
		return nil
	}
	return new(n * 512)
}

// host describes the host itself.
func (h *Host) host(facts *measure.Facts, running []measure.Guest) measure.GuestHost {
	g := measure.GuestHost{
		ID: hostID, Name: cmp.Or(measure.Value(facts.Hostname), h.name), Facts: facts,
		State: new("connected"), Guests: new(len(running)), CPUsHanded: new(int), MemHanded: new(int64),
	}
	if facts.Machine != nil {
		g.UUID = facts.Machine.UUID
	}
	for _, x := range running {
		if x.CPUs != nil {
			*g.CPUsHanded += *x.CPUs
		}
		if x.Memory != nil {
			*g.MemHanded += *x.Memory
		}
	}
	return g
}

// product returns what manages the guests.
func product(t files, facts *measure.Facts) string {
	name := "QEMU"
	switch {
	case t.Exists("etc/pve"):
		name = "Proxmox VE"
	case t.Exists("run/libvirt/qemu"), t.Exists("etc/libvirt/qemu"):
		name = "QEMU with libvirt"
	}
	return name + " on " + cmp.Or(measure.Value(facts.Distro), "Linux")
}

// Close implements hypervisor.Source: it ends all watches.
func (h *Host) Close() error {
	h.mu.Lock()
	all := slices.Collect(maps.Keys(h.watches))
	h.mu.Unlock()
	for _, w := range all {
		w.stop()
	}
	return nil
}
