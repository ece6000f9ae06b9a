package host

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"thru/internal/measure"
)

// answers holds a driver's answers about one interface; nil means that the
// driver does not report it.
type answers struct {
	info     driverInfo
	settings *linkSettings
	features map[string]feature
	counters map[string]uint64
	channels *measure.Channels
	rings    *measure.Rings
	coalesce *measure.Coalesce
	pause    *measure.Pause
	rss      *measure.RSS
	link     func(*link) // rtnetlink's additions to the tree
	gone     bool        // it disappeared after the listing
}

// machine is a kernel with the links of a recorded tree and recorded answers
// of drivers.
type machine struct {
	fs   FS
	nics map[string]answers
}

func (r machine) links() ([]link, error) {
	all, err := r.fs.links()
	for i := range all {
		if change := r.nics[all[i].name].link; change != nil {
			change(&all[i])
		}
	}
	return all, err
}

// answer returns a driver's answer, or the error of a driver without one, or
// of an interface that is gone.
func answer[T any](r machine, name string, of func(answers) *T) (v T, err error) {
	a, ok := r.nics[name]
	if a.gone {
		return v, fmt.Errorf("host: asking: %w", syscall.ENODEV)
	}
	if p := of(a); ok && p != nil {
		return *p, nil
	}
	return v, errUnknown
}

func (r machine) info(name string) (driverInfo, error) {
	return answer(r, name, func(a answers) *driverInfo {
		if a.info == (driverInfo{}) {
			return nil
		}
		return &a.info
	})
}

func (r machine) settings(name string) (linkSettings, error) {
	return answer(r, name, func(a answers) *linkSettings { return a.settings })
}

func (r machine) features(name string) (map[string]feature, error) {
	return answer(r, name, func(a answers) *map[string]feature {
		if a.features == nil {
			return nil
		}
		return &a.features
	})
}

func (r machine) counters(name string) (map[string]uint64, error) {
	return answer(r, name, func(a answers) *map[string]uint64 {
		if a.counters == nil {
			return nil
		}
		return &a.counters
	})
}

func (r machine) channels(name string) (measure.Channels, error) {
	return answer(r, name, func(a answers) *measure.Channels { return a.channels })
}

func (r machine) rings(name string) (measure.Rings, error) {
	return answer(r, name, func(a answers) *measure.Rings { return a.rings })
}

func (r machine) coalescing(name string) (measure.Coalesce, error) {
	return answer(r, name, func(a answers) *measure.Coalesce { return a.coalesce })
}

func (r machine) pause(name string) (measure.Pause, error) {
	return answer(r, name, func(a answers) *measure.Pause { return a.pause })
}

func (r machine) rss(name string) (measure.RSS, error) {
	return answer(r, name, func(a answers) *measure.RSS { return a.rss })
}

func (machine) qdiscs() ([]qdisc, error) {
	return []qdisc{
		{kind: "mq", index: 2, handle: 0x10000, parent: parentRoot}, {kind: "fq_codel", index: 2, parent: 0x10001},
		{kind: "fq_codel", index: 2, parent: 0x10002}, {kind: "fq", index: 9, parent: 0x10001},
	}, nil
}

func (machine) queueStats(int) ([]measure.QueueCounter, error) { return nil, errUnknown }
func (machine) rxRing(string) (uint64, error)                  { return 9, nil }
func (machine) qdisc(string) (measure.Qdisc, error)            { return measure.Qdisc{Kind: "mq", Drops: 3}, nil }

// described returns the interfaces of a recorded machine, and what was not
// checked.
func described(fs FS, nics map[string]answers, virtual bool) (map[string]measure.Interface, notes) {
	var n notes
	h := Host{fs: fs, kernel: machine{fs: fs, nics: nics}}
	all := map[string]measure.Interface{}
	for _, i := range h.interfaces(&n, virtual) {
		all[i.Name] = i
	}
	return all, n
}

// missing lists the facts of an interface that are in notes.
func missing(n notes, name string) []string {
	var list []string
	for _, m := range n {
		if fact, ok := strings.CutPrefix(m.Fact, "interfaces."+name+"."); ok {
			list = append(list, fact)
		}
	}
	slices.Sort(list)
	return list
}

// write adds a file to a tree.
func write(t *testing.T, fs FS, name, text string) {
	t.Helper()
	file := filepath.Join(fs.Root, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text+"\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// ixgbe is a recorded 82599 with its 63 queues.
func ixgbe(t *testing.T) (FS, map[string]answers) {
	fs := recordedTree(t, "ixgbe")
	const dev = "sys/devices/pci0000:00/0000:00:02.0/0000:05:00.0/"
	var table strings.Builder
	for cpu := range 64 {
		fmt.Fprintf(&table, " CPU%d", cpu)
	}
	driver := map[string]uint64{"rx_missed_errors": 1234, "rx_no_dma_resources": 0, "fcoe_last_error": 7, "tx_restart_queue": 3, "rx_long_length_errors": 2}
	for q := range 64 { // the last is that of the link
		irq := 100 + q
		name := fmt.Sprintf("eth0-TxRx-%d", q)
		if q == 63 {
			name = "eth0"
		} else {
			write(t, fs, fmt.Sprintf("%snet/eth0/queues/rx-%d/rps_cpus", dev, q), "00000000,00000000")
			driver[fmt.Sprintf("rx_queue_%d_packets", q)] = uint64(q)
			driver[fmt.Sprintf("rx_queue_%d_bytes", q)] = uint64(100 * q)
			driver[fmt.Sprintf("tx_queue_%d_packets", q)] = 1
		}
		fmt.Fprintf(&table, "\n%4d:%s  IR-PCI-MSI %d-edge      %s", irq, strings.Repeat(" 0", q)+" 5"+strings.Repeat(" 0", 63-q), 2621440+q, name)
		write(t, fs, dev+"msi_irqs/"+strconv.Itoa(irq), "msix")
		write(t, fs, fmt.Sprintf("proc/irq/%d/smp_affinity_list", irq), strconv.Itoa(q))
		write(t, fs, fmt.Sprintf("proc/irq/%d/effective_affinity_list", irq), strconv.Itoa(q))
	}
	write(t, fs, "proc/interrupts", table.String())
	info := driverInfo{driver: "ixgbe", version: "5.15.0-105-generic", bus: "0000:05:00.0", firmware: "0x800003df"}
	settings := &linkSettings{speedBps: 10e9, duplex: "full", port: "fibre", maxBps: 10e9}
	return fs, map[string]answers{
		"eth0": {
			info: info, settings: settings, counters: driver,
			features: map[string]feature{"tx-tcp-segmentation": {on: true}, "rx-lro": {}, "tx-scatter-gather": {on: true, fixed: true}},
			channels: &measure.Channels{Combined: 63, CombinedMax: 63}, rings: &measure.Rings{RX: 512, TX: 512, RXMax: 4096, TXMax: 4096},
			coalesce: &measure.Coalesce{RXNs: 1000}, pause: &measure.Pause{RX: true, TX: true},
			rss:  &measure.RSS{Hash: "toeplitz", Table: 128, Queues: []int{8, 8}, Fields: map[string][]string{"udp4": {"src-ip", "dst-ip"}}},
			link: func(l *link) { l.qdisc, l.maxMTU = "mq", new(9710) },
		},
		"eth1": {info: info, settings: settings, link: func(l *link) { l.qdisc = "mq" }},
	}
}

func TestBareMetal82599(t *testing.T) {
	fs, nics := ixgbe(t)
	all, n := described(fs, nics, false)
	i := all["eth0"]
	if got := missing(n, "eth0"); !slices.Equal(got, []string{"speed_peer_max_bps"}) {
		t.Errorf("not checked: %q", got)
	}
	if got := missing(n, "eth1"); !slices.Equal(got, []string{"channels", "coalescing", "interrupts", "offloads", "pause", "queue_counters", "rings", "rss", "speed_peer_max_bps"}) {
		t.Errorf("a driver that tells little: %q", got)
	}
	if len(i.IRQs) != 64 || len(i.Counters) != 126 || i.RPS != nil || show(i.RFS) != 0 {
		t.Errorf("%d interrupts, %d counters, rps %v, rfs %v", len(i.IRQs), len(i.Counters), i.RPS, show(i.RFS))
	}
	irq := measure.IRQ{Number: 103, Name: "eth0-TxRx-3", Allowed: []int{3}, Effective: []int{3}, Counts: map[string]int64{"3": 5}}
	if diff := cmp.Diff(irq, i.IRQs[3]); diff != "" {
		t.Errorf("interrupt (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(measure.QueueCounter{Queue: "rx-12", Packets: 12, Bytes: new(uint64(1200))}, i.Counters[12]); diff != "" {
		t.Errorf("counter (-want +got):\n%s", diff)
	}
	i.IRQs, i.Counters = nil, nil
	want := measure.Interface{
		Name: "eth0", Kind: new("physical"), MTU: new(1500), MaxMTU: new(9710), MAC: new("90:e2:ba:00:00:01"), Up: new(true), Carrier: new(true),
		Driver: new("ixgbe"), Version: new("5.15.0-105-generic"), InTree: new(true), Firmware: new("0x800003df"), Bus: new("0000:05:00.0"),
		PCI: &measure.PCI{
			Gen: new(2), Lanes: new(8), MaxGen: new(2), MaxLanes: new(8), SlotGen: new(2), SlotLanes: new(8), UsableBps: new(int64(27794285714)),
			PortsBps: new(int64(20e9)), Vendor: "0x8086", Device: "0x10fb", Siblings: []string{"eth1"},
		},
		SpeedBps: new(int64(10e9)), MaxBps: new(int64(10e9)), Autoneg: new(false), Duplex: new("full"), Port: new("fibre"), Nominal: new(false),
		Queues: new(63), TxQueues: new(1), TxLength: new(1000), RFS: new(0), NUMANode: new(0), Qdisc: new("mq fq_codel"),
		Offloads: map[string]bool{"tcp-segmentation-offload": true, "tx-tcp-segmentation": true, "large-receive-offload": false, "scatter-gather": true},
		Fixed:    []string{"scatter-gather"},
		Channels: nics["eth0"].channels, Rings: nics["eth0"].rings, Coalesce: nics["eth0"].coalesce, Pause: nics["eth0"].pause, RSS: nics["eth0"].rss,
		Errors: map[string]uint64{"rx_missed_errors": 1234, "rx_long_length_errors": 2},
	}
	if diff := cmp.Diff(want, i); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestConnectX(t *testing.T) {
	info := driverInfo{driver: "mlx5_core", version: "24.04-0.6.6", firmware: "16.35.3502"}
	settings := &linkSettings{speedBps: 100e9, duplex: "full", port: "direct attach", autoneg: true, maxBps: 100e9, peerBps: 25e9}
	all, n := described(recordedTree(t, "mlx5"), map[string]answers{
		"ens1f0": {info: info, settings: settings, counters: map[string]uint64{"rx0_packets": 5, "rx0_bytes": 500, "tx0_packets": 6, "tx0_dropped": 1, "rx_out_of_buffer": 9, "rx_err_lane_0_phy": 7}},
		"ens1f1": {info: info}, "ens1f0v0": {info: info, settings: settings}, "ens2": {info: info, settings: settings},
	}, false)
	i := all["ens1f0"]
	pci := &measure.PCI{
		Gen: new(3), Lanes: new(16), MaxGen: new(3), MaxLanes: new(16), SlotGen: new(4), SlotLanes: new(16), UsableBps: new(int64(109469185494)),
		PortsBps: new(int64(100e9)), Vendor: "0x15b3", Device: "0x1017", Siblings: []string{"ens1f1"},
	}
	if i.PCI != nil {
		pci.UsableBps = i.PCI.UsableBps // TestPCIeUsable has the figures
	}
	if diff := cmp.Diff(pci, i.PCI); diff != "" {
		t.Errorf("slot (-want +got):\n%s", diff)
	}
	if show(i.InTree) != false || show(i.Kind) != "physical" || show(i.PeerBps) != int64(25e9) || show(i.Autoneg) != true || show(i.RFS) != 4096 {
		t.Errorf("%+v", i)
	}
	for name, diff := range map[string]string{
		"rps":      cmp.Diff(map[string]string{"rx-1": "16-31"}, i.RPS),
		"xps":      cmp.Diff(map[string]string{"tx-0": "0", "tx-1": "63"}, i.XPS),
		"errors":   cmp.Diff(map[string]uint64{"rx_out_of_buffer": 9, "tx0_dropped": 1}, i.Errors),
		"counters": cmp.Diff([]measure.QueueCounter{{Queue: "rx-0", Packets: 5, Bytes: new(uint64(500))}, {Queue: "tx-0", Packets: 6, Drops: new(uint64(1))}}, i.Counters),
	} {
		if diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if len(i.IRQs) != 3 || i.IRQs[1].Name != "mlx5_comp0@pci:0000:17:00.0" || i.IRQs[1].Shared != nil {
		t.Errorf("interrupts %+v", i.IRQs)
	}
	if i = all["ens2"]; show(i.PCI.Lanes) != 8 || show(i.PCI.MaxLanes) != 16 || show(i.PCI.SlotLanes) != 8 || i.PCI.Siblings != nil || show(i.NUMANode) != 1 {
		t.Errorf("a card in a slot of 8 lanes: %+v", i.PCI)
	}
	if i = all["ens1f0v0"]; show(i.Kind) != "virtual function" || show(i.PCI.Gen) != 3 || i.PCI.PortsBps != nil {
		t.Errorf("a virtual function: %v, %+v", show(i.Kind), i.PCI)
	}
	if i, got := all["ens1f1"], missing(n, "ens1f1"); i.SpeedBps != nil || show(i.PCI.Lanes) != 16 || !slices.Equal(got, []string{"*", "bus", "duplex", "offloads", "speed_bps"}) {
		t.Errorf("a port that is down: %+v, not checked %q", i, got)
	}
}

func TestNICsOfGuests(t *testing.T) {
	type row struct{ kind, nominal, inTree, queues, irqs, usable, speed any }
	const no = "not checked"
	for _, c := range []struct {
		tree, name string
		nic        answers
		want       row
		missing    []string
	}{
		{"kvm", "eth0", answers{info: driverInfo{driver: "virtio_net", version: "1.0.0", bus: "0000:00:03.0"}, settings: &linkSettings{}},
			row{"paravirtual", true, true, 4, 9, no, no}, []string{"channels", "coalescing", "duplex", "offloads", "qdisc", "queue_counters", "rings", "rss", "speed_bps"}},
		{"e1000", "ens33", answers{info: driverInfo{driver: "e1000", version: "7.3.21-k8-NAPI", bus: "0000:02:01.0"}, settings: &linkSettings{speedBps: 1e9, duplex: "full", port: "twisted pair", autoneg: true, maxBps: 1e9}, counters: map[string]uint64{"rx_packets": 5}},
			row{"emulated", true, true, 1, 1, no, int64(1e9)}, []string{"channels", "coalescing", "offloads", "qdisc", "queue_counters", "rings", "rss"}},
		{"ena", "ens5", answers{info: driverInfo{driver: "ena", version: "2.11.0g", bus: "0000:00:05.0"}, settings: &linkSettings{}, counters: map[string]uint64{"queue_0_rx_cnt": 5, "queue_1_rx_cnt": 6, "bw_in_allowance_exceeded": 44}},
			row{"virtual function", false, true, 2, 3, no, no},
			[]string{"channels", "coalescing", "duplex", "firmware", "offloads", "pause", "pci.usable_bps", "port", "qdisc", "rings", "rss", "speed_bps", "speed_max_bps", "speed_peer_max_bps"}},
		{"hyperv", "eth0", answers{info: driverInfo{driver: "hv_netvsc", version: "5.15.0-1061-azure", firmware: "N/A", bus: "x"}, settings: &linkSettings{speedBps: 50e9, duplex: "full"}, counters: map[string]uint64{"rx_queue_1_packets": 5, "vf_rx_packets": 7, "tx_no_memory": 1}},
			row{"paravirtual", true, true, 2, 0, no, int64(50e9)}, []string{"channels", "coalescing", "interrupts", "offloads", "qdisc", "rings", "rss"}},
	} {
		all, n := described(recordedTree(t, c.tree), map[string]answers{c.name: c.nic}, true)
		i := all[c.name]
		got := row{kind: show(i.Kind), nominal: show(i.Nominal), inTree: show(i.InTree), queues: show(i.Queues), irqs: len(i.IRQs), usable: no, speed: show(i.SpeedBps)}
		if i.PCI != nil {
			got.usable = show(i.PCI.UsableBps)
		}
		if got != c.want {
			t.Errorf("%s: got %v, want %v", c.tree, got, c.want)
		}
		if diff := cmp.Diff(c.missing, missing(n, c.name)); diff != "" {
			t.Errorf("%s: not checked (-want +got):\n%s", c.tree, diff)
		}
		switch c.tree {
		case "kvm":
			if !cmp.Equal(i.XPS, map[string]string{"tx-0": "0", "tx-1": "1", "tx-2": "2", "tx-3": "3"}) || i.IRQs[1].Name != "virtio0-input.0" || show(i.NUMANode) != 0 {
				t.Errorf("xps %v, interrupts %v, node %v", i.XPS, i.IRQs, show(i.NUMANode))
			}
		case "e1000":
			if !cmp.Equal(i.IRQs, []measure.IRQ{{Number: 19, Name: "ens33", Allowed: []int{0, 1}, Effective: []int{0}, Counts: map[string]int64{"0": 1000}, Shared: []string{"ehci_hcd:usb1"}}}) {
				t.Errorf("interrupts %+v", i.IRQs)
			}
		case "ena":
			if len(i.Counters) != 2 || i.Errors["bw_in_allowance_exceeded"] != 44 {
				t.Errorf("counters %v, errors %v", i.Counters, i.Errors)
			}
		case "hyperv":
			if vf := all["enP1s1"]; show(vf.Kind) != "virtual function" || show(vf.Master) != "eth0" || !slices.Equal(i.Lower, []string{"enP1s1"}) || i.PCI != nil {
				t.Errorf("virtual function %+v below %v", vf, i.Lower)
			}
		}
	}
}

func TestHostOfGuests(t *testing.T) {
	fs := recordedTree(t, "kvm-host")
	all, n := described(fs, nil, false)
	bond := &measure.Bond{Mode: "802.3ad", Hash: "layer2", LACP: "slow", Aggregate: new(1), Members: []measure.BondMember{
		{Name: "eno1", Up: true, SpeedBps: new(int64(10e9)), Aggregate: new(1), Failures: new(int64(0))}, {Name: "eno2", Up: true, Aggregate: new(2), Failures: new(int64(3))},
	}}
	if diff := cmp.Diff(bond, all["bond0"].Bond); diff != "" {
		t.Errorf("bond (-want +got):\n%s", diff)
	}
	bridge := &measure.Bridge{Ports: []string{"bond0", "vnet0", "vnet1"}, STP: new(false), VLANs: new(true), Netfilter: new(true)}
	if diff := cmp.Diff(bridge, all["br0"].Bridge); diff != "" {
		t.Errorf("bridge (-want +got):\n%s", diff)
	}
	for name, want := range map[string]struct {
		master any
		lower  []string
	}{"eno1": {"bond0", nil}, "bond0": {"br0", []string{"eno1", "eno2"}}, "br0": {"not checked", nil}, "vnet0": {"br0", nil}} {
		if i := all[name]; show(i.Master) != want.master || name != "br0" && !slices.Equal(i.Lower, want.lower) {
			t.Errorf("%s has master %v, lies on %q", name, show(i.Master), i.Lower)
		}
	}
	for _, name := range []string{"bond0", "br0", "vnet0"} {
		if got := missing(n, name); !slices.Equal(got, []string{"offloads", "qdisc"}) {
			t.Errorf("%s: software without what devices have: not checked %q", name, got)
		}
	}
	if !slices.Equal(all["br0"].Lower, []string{"bond0"}) {
		t.Errorf("the bridge leaves by %q", all["br0"].Lower)
	}
	// /proc is masked, br_netfilter not loaded.
	if err := errors.Join(os.RemoveAll(filepath.Join(fs.Root, "proc/thread-self")), os.RemoveAll(filepath.Join(fs.Root, "proc/sys/net/bridge"))); err != nil {
		t.Fatal(err)
	}
	all, _ = described(fs, nil, false)
	bond = &measure.Bond{Mode: "802.3ad", Hash: "layer2", LACP: "slow", Aggregate: new(1), Members: []measure.BondMember{{Name: "eno1", SpeedBps: new(int64(10e9))}, {Name: "eno2", SpeedBps: new(int64(10e9))}}}
	if diff := cmp.Diff(bond, all["bond0"].Bond); diff != "" {
		t.Errorf("bond of sysfs (-want +got):\n%s", diff)
	}
	if show(all["br0"].Bridge.Netfilter) != false {
		t.Errorf("br_netfilter is not loaded: %+v", all["br0"].Bridge)
	}
}

// An interface that disappears after the listing is left out with its notes,
// at the first request or later.
func TestVanished(t *testing.T) {
	fs, nics := ixgbe(t)
	nics["eth1"] = answers{gone: true}
	all, n := described(fs, nics, false)
	if _, there := all["eth1"]; there || len(missing(n, "eth1")) != 0 || len(all) != 1 {
		t.Errorf("%d interfaces, notes %v", len(all), n)
	}
	if got := show(all["eth0"].PCI.PortsBps); got != int64(10e9) {
		t.Errorf("rates of the ports that are left: %v", got)
	}
}

// Masked files cause neither an error nor a wrong fact.
func TestMaskedSys(t *testing.T) {
	fs, nics := ixgbe(t)
	for _, dir := range []string{"proc/interrupts", "proc/irq", "sys/module", "sys/devices/pci0000:00/0000:00:02.0/0000:05:00.0/net/eth0/queues"} {
		if err := os.RemoveAll(filepath.Join(fs.Root, dir)); err != nil {
			t.Fatal(err)
		}
	}
	all, n := described(fs, nics, false)
	i := all["eth0"]
	if i.Queues != nil || i.RPS != nil || len(i.IRQs) != 64 || i.IRQs[0].Counts != nil || i.IRQs[0].Allowed != nil || show(i.SpeedBps) != int64(10e9) {
		t.Errorf("%+v", i)
	}
	if got := missing(n, "eth0"); !slices.Equal(got, []string{"interrupts.counts", "interrupts.cpus_allowed", "rx_queues", "speed_peer_max_bps"}) {
		t.Errorf("not checked: %q", got)
	}
	if err := os.RemoveAll(filepath.Join(fs.Root, "sys")); err != nil {
		t.Fatal(err)
	}
	n = nil
	h := Host{fs: fs, kernel: machine{fs: fs}}
	if list := h.interfaces(&n, false); list != nil || !noted(n, "interfaces") {
		t.Errorf("no /sys: %v, %v", list, n)
	}
}

// Of thousands of queues only the first are read, and a note says so.
func TestManyQueues(t *testing.T) {
	fs, nics := ixgbe(t)
	a := nics["eth0"]
	a.counters = map[string]uint64{}
	for q := range 2048 {
		a.counters[fmt.Sprintf("rx_queue_%d_packets", q)] = 1
	}
	for q := range 600 {
		write(t, fs, fmt.Sprintf("sys/devices/pci0000:00/0000:00:02.0/0000:05:00.0/net/eth0/queues/rx-%d/rps_cpus", q), "1")
	}
	nics["eth0"] = a
	all, n := described(fs, nics, false)
	i := all["eth0"]
	if show(i.Queues) != 600 || len(i.RPS) != maxQueues || len(i.Counters) != maxQueues || i.Counters[maxQueues-1].Queue != "rx-511" {
		t.Errorf("%v queues, %d with RPS, %d counters", show(i.Queues), len(i.RPS), len(i.Counters))
	}
	if got := missing(n, "eth0"); !slices.Equal(got, []string{"queue_counters.*", "queues", "speed_peer_max_bps"}) {
		t.Errorf("not checked: %q", got)
	}
}

// A thread in another network namespace than its /sys must not take the speed
// of another interface with the same name, but finds the device by its
// address.
func TestForeignSysfs(t *testing.T) {
	fs, nics := ixgbe(t)
	a := nics["eth0"]
	a.settings, a.channels = nil, nil
	a.link = func(l *link) { l.index, l.mac = 9, "02:00:00:00:00:09" }
	nics["eth0"] = a
	all, n := described(fs, nics, false)
	if i := all["eth0"]; i.SpeedBps != nil || i.Queues != nil || i.RPS != nil || show(i.Nominal) != false {
		t.Errorf("took over %+v", i)
	}
	if got := missing(n, "eth0"); !slices.Contains(got, "speed_bps") || !slices.Contains(got, "rx_queues") || !slices.Contains(got, "rps") || !slices.Contains(got, "interrupts") {
		t.Errorf("not checked: %q", got)
	}
	at := filepath.Join(fs.Root, "sys/bus/pci/devices/0000:05:00.0")
	if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.Symlink("../../../devices/pci0000:00/0000:00:02.0/0000:05:00.0", at)); err != nil {
		t.Fatal(err)
	}
	for _, named := range []bool{true, false} {
		a.link = func(l *link) {
			l.index = 9
			if named {
				l.bus, l.at = "pci", "0000:05:00.0" // since Linux 5.14
			}
		}
		nics["eth0"] = a
		all, _ = described(fs, nics, false)
		if i := all["eth0"]; i.PCI == nil || show(i.PCI.Lanes) != 8 || len(i.IRQs) != 64 || i.Queues != nil {
			t.Errorf("named %v: %+v", named, i)
		}
	}
}

func TestDriverCountersOfRead(t *testing.T) {
	fs := recordedTree(t, "vmware")
	var n notes
	h := Host{fs: fs, kernel: machine{fs: fs, nics: map[string]answers{"ens192": {counters: map[string]uint64{"Rx Queue#0 pkts rx OOB": 5}}}}}
	if nic := h.readNIC(&n, "ens192"); nic == nil || nic.Driver["Rx Queue#0 pkts rx OOB"] != 5 || nic.RxErrors != 1 || show(nic.RxRing) != uint64(9) || len(n) != 0 {
		t.Errorf("interface %+v, %v", nic, n)
	}
	h.kernel = machine{fs: fs}
	if nic := h.readNIC(&n, "ens192"); nic == nil || nic.Driver != nil || !noted(n, "interface.driver") {
		t.Errorf("a driver without counters: %+v, %v", nic, n)
	}
}

func TestQueueCounters(t *testing.T) {
	for driver, c := range map[string]struct {
		counters map[string]uint64
		want     []measure.QueueCounter
	}{
		"i40e":    {map[string]uint64{"rx-0.packets": 1, "rx-10.bytes": 7, "rx-10.packets": 2, "rx-9.rx_packets": 3}, []measure.QueueCounter{{Queue: "rx-0", Packets: 1}, {Queue: "rx-9", Packets: 3}, {Queue: "rx-10", Packets: 2, Bytes: new(uint64(7))}}},
		"bnxt":    {map[string]uint64{"[0]: rx_ucast_packets": 1, "[0]: rx_mcast_packets": 2, "[0]: rx_ucast_bytes": 9, "[0]: rx_discards": 4, "[1]: tx_ucast_packets": 5}, []measure.QueueCounter{{Queue: "rx-0", Packets: 3, Bytes: new(uint64(9)), Drops: new(uint64(4))}, {Queue: "tx-1", Packets: 5}}},
		"vmxnet3": {map[string]uint64{"Rx Queue#1 ucast pkts rx": 1, "Rx Queue#1 bcast pkts rx": 2, "Rx Queue#1 LRO pkts rx": 50, "Rx Queue#1 pkts rx OOB": 3, "Rx Queue#1 drv dropped rx total": 4, "Tx Queue#0 TSO pkts tx": 60, "Tx Queue#0 ucast pkts tx": 6, "Tx Queue#0 ucast bytes tx": 7}, []measure.QueueCounter{{Queue: "rx-1", Packets: 3, Drops: new(uint64(7))}, {Queue: "tx-0", Packets: 6, Bytes: new(uint64(7))}}},
		"veth":    {map[string]uint64{"rx_queue_0_xdp_packets": 9, "rx_queue_0_xdp_drops": 1, "rx_queue_0_drops": 2, "peer_ifindex": 3}, nil},
		"gve":     {map[string]uint64{"rx_packets[2]": 9, "rx_bytes[2]": 1}, []measure.QueueCounter{{Queue: "rx-2", Packets: 9, Bytes: new(uint64(1))}}},
		"others":  {map[string]uint64{"rvec_3_rx_pkts": 1, "rx_1_packets": 2, "rxq2_packets": 3, "rx_packets": 4, "tx_packets_phy": 5, "rx_queue_99999999999_packets": 6}, []measure.QueueCounter{{Queue: "rx-1", Packets: 2}, {Queue: "rx-2", Packets: 3}, {Queue: "rx-3", Packets: 1}}},
	} {
		if diff := cmp.Diff(c.want, queueCounters(c.counters)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", driver, diff)
		}
	}
}

func TestDriverErrors(t *testing.T) {
	driver := map[string]uint64{
		"rx_crc_errors": 1, "rx_no_buffer_count": 2, "alloc_rx_buff_failed": 3, "tx_timeout_count": 4, "pkts rx OOB": 5, "rx_discards_phy": 6, "rx_out_of_buffer": 7,
		"pps_allowance_exceeded": 8, "rx0_drops": 9, "port.rx_dropped": 10,
		"rx_errors": 0, "rx0_xdp_drop": 1, "rx_corrected_bits_phy": 1, "fcoe_last_error": 1, "rx_err_lane_1_phy": 1, "rx_packets": 1, "tx_restart_queue": 1,
	}
	if got := slices.Sorted(maps.Keys(driverErrors(driver))); len(got) != 10 || slices.Contains(got, "rx0_xdp_drop") {
		t.Errorf("errors %q", got)
	}
}
