package kvm

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"thru/internal/hypervisor"
	"thru/internal/hypervisor/hypervisortest"
	"thru/internal/measure"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// inventory reads a recorded host.
func inventory(t *testing.T, name string) measure.Inventory {
	t.Helper()
	v, err := At(recorded(t, name), "ssh://root@"+name).Inventory(t.Context(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// check compares a result with the expected one.
func check(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func TestLibvirt(t *testing.T) {
	v := inventory(t, "libvirt")
	check(t, "product", v.Product, "QEMU with libvirt on Debian GNU/Linux 13 (trixie)")
	check(t, "kind", v.Kind, measure.KindKVM)
	g := v.Guest("vm:web1")
	if g == nil || len(v.Guests) != 3 {
		t.Fatalf("guests: %+v", v.Guests)
	}
	check(t, "uuid", g.UUID, "4dea22b3-1d52-d8f3-2516-782e98ab3fa0")
	check(t, "power", g.Power, "on")
	check(t, "hardware", show(g.Hardware), "pc-q35-9.2")
	check(t, "firmware", show(g.Firmware), "efi")
	check(t, "cpus", []any{show(g.CPUs), show(g.PerSocket), show(g.CPUModel), show(g.CPUQuota)}, []any{2, 2, "host", 0.75})
	check(t, "memory", []any{show(g.Memory), show(g.MemoryShare.Limit)}, []any{int64(4 << 30), int64(6 << 30)})
	check(t, "pins", g.Pins, []measure.Pin{{CPU: 0, Host: []int{4}}, {CPU: 1, Host: []int{5}}})
	check(t, "affinity", g.Affinity, []int{4, 5})
	check(t, "nodes", g.NUMANodes, []int{1})
	check(t, "advanced", g.Advanced, map[string]string{"accel": "kvm", "net0.mq": "on", "net0.vectors": "6", "net0.host_tso4": "off"})
	var roles []string
	for _, th := range g.Threads {
		roles = append(roles, th.Role+" "+th.Name)
	}
	check(t, "threads", strings.Join(roles, ", "), "vcpu CPU 0/KVM, vcpu CPU 1/KVM, vhost vhost-4001, vhost vhost-4001, io IO iothread1, other qemu-system-x86")
	if len(g.Disks) != 1 || len(g.NICs) != 2 {
		t.Fatalf("%d disks, %d adapters: the empty drive and the GPU are none", len(g.Disks), len(g.NICs))
	}
	d := g.Disks[0]
	check(t, "disk", []any{d.Name, show(d.Adapter), show(d.Format), show(d.Path), show(d.Cache), show(d.Type), show(d.Size)},
		[]any{"virtio-disk0", "virtio-blk", "qcow2", "/var/lib/libvirt/images/web1.qcow2", "none", "file", nil})
	n := g.NICs[0]
	check(t, "adapter", []any{n.Name, n.Key, show(n.Model), show(n.MAC), show(n.Queues), show(n.Vhost), show(n.MTU), n.Switch, show(n.Network), show(n.Uplink), show(n.Connected)},
		[]any{"net0", "vnet0", "virtio", "52:54:00:aa:00:01", 2, true, 9000, "bridge:br0", "br0", "eno1", true})
	check(t, "virtual function", []any{show(g.NICs[1].Model), show(g.NICs[1].Uplink)}, []any{"sriov", "ens1f0"})
	s := v.Switch("bridge:br0")
	check(t, "bridge", []any{show(s.MTU), show(s.Ports), show(s.VLANs), show(s.Snooping), s.Uplinks}, []any{1500, 2, true, true, []measure.Uplink{{Host: "host", NIC: "eno1"}}})
	h := v.Hosts[0]
	check(t, "host", []any{h.Name, show(h.Guests), show(h.CPUsHanded), show(h.MemHanded)}, []any{"kvm1", 2, 3, int64(6 << 30)})
}

// TestLibvirtOdd: a guest whose threads have no names, with macvtap, an
// adapter that was added later, and a kernel thread.
func TestLibvirtOdd(t *testing.T) {
	v := inventory(t, "libvirt")
	g := v.Guest("vm:db,1")
	check(t, "uuid", g.UUID, "")
	check(t, "thread by the guest's time", g.Threads[0], measure.GuestThread{TID: 4003, Name: "qemu-kvm", Role: "vcpu", CPU: new(0), CPUs: []int{0, 1, 2, 3}})
	check(t, "thread of the kernel", g.Threads[1], measure.GuestThread{TID: 4009, Name: "vhost-4002", Role: "vhost"})
	check(t, "macvtap", []any{show(g.NICs[0].Device), show(g.NICs[0].Uplink), show(g.NICs[0].Network)}, []any{"macvtap0", "eno1", "macvtap on eno1"})
	check(t, "added later", []any{g.NICs[1].Name, g.NICs[1].Key, show(g.NICs[1].Model), show(g.NICs[1].Connected)}, []any{"added later: vnet7", "vnet7", nil, false})
	check(t, "secret", show(g.Disks[0].Path), "rbd:vms/db1:id=libvirt:key=***:auth_supported=cephx")
	check(t, "adapter of the disk", show(g.Disks[0].Adapter), "virtio-scsi")
	for _, want := range [][2]string{{"nics.added later: vnet7.*", "added while"}, {"nics.added later: vnet7.network", "not a port of a bridge"}, {"uuid", "not in its command line"}} {
		if !noted(g.NotChecked, want[0], want[1]) {
			t.Errorf("no note %v in %v", want, g.NotChecked)
		}
	}
	for _, want := range [][2]string{{"guests", "1 of Firecracker"}, {"guests.disks.size_bytes", "does not open"}, {"guests.broken", "could not be read"}} {
		if !noted(v.NotChecked, want[0], want[1]) {
			t.Errorf("no note %v in %v", want, v.NotChecked)
		}
	}
	off := v.Guest("vm:spare")
	check(t, "off", []any{off.Power, show(off.CPUs), show(off.Memory), show(off.Firmware), show(off.CPUModel), off.Pins}, []any{"off", 4, int64(2 << 30), "efi", "host-passthrough", []measure.Pin{{CPU: 0, Host: []int{2, 3}}}})
	check(t, "its disk", []any{len(off.Disks), show(off.Disks[0].Mode), show(off.Disks[0].Cache)}, []any{1, "nonpersistent", "none"})
	check(t, "its adapter", []any{show(off.NICs[0].Queues), show(off.NICs[0].MTU), show(off.NICs[0].AtStart), off.NICs[0].Switch}, []any{4, 9000, false, "bridge:br0"})
}

func TestProxmox(t *testing.T) {
	v := inventory(t, "proxmox")
	check(t, "product", v.Product, "Proxmox VE on Debian GNU/Linux 12 (bookworm)")
	if len(v.Guests) != 3 {
		t.Fatalf("%d guests: a child of QEMU is none", len(v.Guests))
	}
	g := v.Guest("vm:100")
	check(t, "guest", []any{g.Name, g.UUID, show(g.CPUs), show(g.CPUQuota), show(g.Memory), g.Advanced["accel"]},
		[]any{"web1", "8cf0a0d1-1111-2222-3333-444455556666", 2, 2.0, int64(2 << 30), "kvm"})
	d := g.Disks[0]
	check(t, "disk", []any{len(g.Disks), show(d.Type), show(d.Path), show(d.Size), show(d.Format), show(d.Cache), show(d.LimitBytes), show(d.Adapter)},
		[]any{1, "block device", "/dev/pve/vm-100-disk-0", int64(32 << 30), "raw", "none", int64(1 << 20), "virtio-scsi"})
	check(t, "behind a firewall", []any{g.NICs[0].Switch, show(g.NICs[0].Uplink), show(g.NICs[0].Queues), show(g.NICs[0].Vhost)}, []any{"bridge:vmbr0", "bond0", 4, true})
	check(t, "Open vSwitch", []any{g.NICs[1].Switch, show(g.NICs[1].Network), show(g.NICs[1].Vhost)}, []any{"ovs", nil, false})
	if s := v.Switch("ovs"); s == nil || !noted(s.NotChecked, "vlan", "database") {
		t.Errorf("Open vSwitch is %+v", s)
	}
	other := v.Guest("vm:101")
	check(t, "vhost-user", []any{show(other.NICs[0].Network), show(other.NICs[0].Vhost)}, []any{"vhost-user", nil})
	for _, want := range [][2]string{{"nics.net0.host_device", "vhost-user"}, {"nics.net1.host_device", "another network namespace"}, {"power", "-incoming"}} {
		if !noted(other.NotChecked, want[0], want[1]) {
			t.Errorf("no note %v in %v", want, other.NotChecked)
		}
	}
	off := v.Guest("vm:200")
	check(t, "off", []any{off.Name, off.UUID, off.Template, show(off.CPUs), show(off.PerSocket), show(off.Memory), show(off.Firmware), show(off.CPUQuota), off.Affinity, show(off.OS)},
		[]any{"build", "0f5a9b7c-1234-5678-9abc-def012345678", true, 6, 4, int64(8 << 30), "efi", 1.5, []int{0, 2, 3}, "l26"})
	n := off.NICs[0]
	check(t, "its adapter", []any{show(n.Model), show(n.MAC), show(n.VLAN), show(n.Queues), show(n.Limit.AverageBps)}, []any{"virtio", "bc:24:11:5d:00:01", "100", 4, int64(100e6)})
	check(t, "its other one", []any{show(off.NICs[1].VLAN), show(off.NICs[1].AtStart)}, []any{"trunk 10-20,30", false})
}

// TestLimits: what the host sends to a tap, the guest receives.
func TestLimits(t *testing.T) {
	h := At(recorded(t, "libvirt"), "x")
	h.kernel.limits = func(name string) (limits, error) {
		if name == "vnet7" {
			return limits{why: "2 classes"}, nil
		}
		return limits{out: &measure.Shaping{AverageBps: new(int64(10))}, in: &measure.Shaping{AverageBps: new(int64(20))}}, nil
	}
	v, err := h.Inventory(t.Context(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	tap, macvtap := v.Guest("vm:web1").NICs[0], v.Guest("vm:db,1").NICs[0]
	check(t, "tap", []int64{*tap.LimitIn.AverageBps, *tap.Limit.AverageBps}, []int64{10, 20})
	check(t, "macvtap", []int64{*macvtap.LimitIn.AverageBps, *macvtap.Limit.AverageBps}, []int64{20, 10})
	if !noted(v.Guest("vm:db,1").NotChecked, "nics.added later: vnet7.limit", "2 classes") {
		t.Errorf("%+v", v.Guest("vm:db,1").NotChecked)
	}
}

// TestStrangers: a process with QEMU's name and another program is no guest;
// a UUID of several guests identifies none.
func TestStrangers(t *testing.T) {
	root := recorded(t, "libvirt")
	put(t, root, "proc/4001/exe", "-> /home/me/miner")
	put(t, root, "proc/4002/exe", "-> /usr/libexec/qemu-kvm (deleted)")
	v, err := At(root, "x").Inventory(t.Context(), nil, nil)
	if err != nil || len(v.Guests) < 2 || v.Guests[0].Name != "db,1" {
		t.Errorf("%+v, %v", v.Guests, err)
	}
	m := readMachine([]string{"qemu-system-x86_64", "-uuid", "00000000-0000-0000-0000-000000000000"})
	check(t, "zeros", m.UUID, "")
}

// TestChoice checks what Source requires of a choice.
func TestChoice(t *testing.T) {
	h := At(recorded(t, "proxmox"), "pve")
	v, err := h.Inventory(t.Context(), func(g *measure.Guest) bool { return g.ID == "vm:200" }, nil)
	if err != nil || len(v.Guests) != 1 || *v.GuestsTotal != 3 || len(v.Hosts) != 1 {
		t.Fatalf("%+v, %v", v, err)
	}
	v, err = h.Inventory(t.Context(), func(*measure.Guest) bool { return false }, func(*measure.GuestHost) bool { return false })
	if err != nil || len(v.Guests)+len(v.Hosts)+len(v.Switches) != 0 || *v.HostsTotal != 1 {
		t.Fatalf("%+v, %v", v, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := h.Inventory(ctx, nil, nil); err == nil {
		t.Error("a context that has ended is no matter")
	}
}

// TestNothing: a host without guests reports it, and one without /proc is an
// error.
func TestNothing(t *testing.T) {
	root := t.TempDir()
	if _, err := At(root, "x").Inventory(t.Context(), nil, nil); err == nil || strings.Contains(err.Error(), root) {
		t.Errorf("without /proc: %v", err)
	}
	put(t, root, "proc/1/stat", "1 (init) S")
	v, err := At(root, "x").Inventory(t.Context(), nil, nil)
	if err != nil || len(v.Guests) != 0 || len(v.Hosts) != 1 || !noted(v.NotChecked, "guests", "container") {
		t.Errorf("%+v, %v", v, err)
	}
}

// TestHidden: without root the files of others cannot be read, which is
// reported.
func TestHidden(t *testing.T) {
	root := recorded(t, "libvirt")
	if err := os.Remove(filepath.Join(root, "proc/4001/ns/net")); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(root, "proc/4001/fdinfo")); err != nil {
		t.Fatal(err)
	}
	v, err := At(root, "x").Inventory(t.Context(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	g := v.Guest("vm:web1")
	if g.NICs[0].Device != nil || !noted(g.NotChecked, "nics.net0.host_device", "no such file") {
		t.Errorf("%+v", g)
	}
}

// TestContract runs the contract of all sources.
func TestContract(t *testing.T) {
	for _, name := range []string{"libvirt", "proxmox"} {
		t.Run(name, func(t *testing.T) {
			root := recorded(t, name)
			hypervisortest.Suite{
				Open: func(*testing.T) hypervisor.Source {
					h := At(root, "ssh://root@"+name)
					h.second = 20 * time.Millisecond
					return h
				},
				Secrets: []string{"AQBsecret", "master-key"}, Reopens: true, Counts: true,
			}.Run(t)
		})
	}
}
