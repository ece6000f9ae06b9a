package host

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"thru/internal/measure"
)

func TestFactsOfRecordedMachines(t *testing.T) {
	type row struct{ speed, duplex, nominal, driver, version, bus, queues, mac, up any }
	const no = "not checked"
	for _, c := range []struct {
		name        string
		host        map[string]any
		interfaces  map[string]row
		notChecked  []string
		tcpRmem     string
		congestions int
	}{
		{"bare-metal", map[string]any{
			"hostname": "rack7-node3", "distribution": "Rocky Linux 9.4 (Blue Onyx)", "kernel": "5.14.0-427.13.1.el9_4.x86_64",
			"model": "Intel(R) Xeon(R) Gold 6338 CPU @ 2.00GHz", "cores": 64, "memory": int64(263842516 << 10),
			"hypervisor": "none", "congestion": "cubic",
		}, map[string]row{
			"lo":        {no, no, true, no, no, no, 1, no, true},
			"eno1":      {int64(25e9), "full", false, "mlx5_core", "5.8-1.1.2", "0000:17:00.0", 2, "b8:ce:f6:00:00:01", true},
			"eno2":      {no, no, false, "mlx5_core", no, "0000:17:00.1", 1, "b8:ce:f6:00:00:01", false},
			"bond0":     {int64(25e9), "full", false, no, no, no, 1, "b8:ce:f6:00:00:01", true},
			"bond0.100": {int64(25e9), "full", false, no, no, no, 1, "b8:ce:f6:00:00:01", true},
			"br0":       {int64(25e9), no, true, no, no, no, 1, "02:42:00:00:00:01", true},
			"veth7":     {int64(10e9), "full", true, no, no, no, 1, "02:42:00:00:00:02", true},
		}, []string{"interfaces.eno2.speed_bps", "interfaces.eno2.driver_version", "interfaces.eno1.offloads", "interfaces.eno1.addresses"},
			"4096\t131072\t6291456", 2},
		{"vmware", map[string]any{
			"hostname": "db-vm-01", "distribution": "Red Hat Enterprise Linux Server 7.9 (Maipo)", "kernel": "3.10.0-1160.el7.x86_64",
			"model": "Intel(R) Xeon(R) Gold 6130 CPU @ 2.10GHz", "cores": 2, "memory": int64(8009376 << 10),
			"hypervisor": "vmware", "congestion": "cubic",
		}, map[string]row{
			"ens192": {int64(10e9), "full", true, "vmxnet3", "1.4.17.0-k", "0000:0b:00.0", 2, "00:50:56:00:00:01", true},
			"ens160": {int64(1e9), "full", true, "e1000e", no, "0000:03:00.0", 1, "00:50:56:00:00:02", true},
		}, []string{"congestion_available", "sysctls.net.core.rmem_max", "sysctls.net.ipv4.tcp_rmem"}, "", 0},
		{"microvm", map[string]any{
			"hostname": "vm", "distribution": "Debian GNU/Linux 12 (bookworm)", "kernel": "6.18.44",
			"model": "AMD EPYC", "cores": 2, "memory": int64(24684084 << 10),
			"hypervisor": "firecracker", "congestion": no,
		}, map[string]row{
			"eth0": {no, no, true, "virtio_net", no, no, 1, "02:fc:00:00:00:01", true},
		}, []string{"congestion_control", "interfaces.eth0.speed_bps", "interfaces.eth0.duplex", "interfaces.eth0.bus"}, "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := At(recordedTree(t, c.name).Root).Facts()
			got := map[string]any{
				"hostname": show(f.Hostname), "distribution": show(f.Distro), "kernel": show(f.Kernel), "model": show(f.CPUModel),
				"cores": show(f.Cores), "memory": show(f.Memory), "hypervisor": show(f.Hypervisor), "congestion": show(f.Congestion),
			}
			if diff := cmp.Diff(c.host, got); diff != "" {
				t.Errorf("host (-want +got):\n%s", diff)
			}
			rows := map[string]row{}
			for _, i := range f.Interfaces {
				rows[i.Name] = row{show(i.SpeedBps), show(i.Duplex), show(i.Nominal), show(i.Driver), show(i.Version), show(i.Bus), show(i.Queues), show(i.MAC), show(i.Up)}
			}
			if diff := cmp.Diff(c.interfaces, rows, cmp.AllowUnexported(row{})); diff != "" {
				t.Errorf("interfaces (-want +got):\n%s", diff)
			}
			for _, fact := range c.notChecked {
				if !noted(f.NotChecked, fact) {
					t.Errorf("%s is not in not_checked", fact)
				}
			}
			if f.Sysctls["net.ipv4.tcp_rmem"] != c.tcpRmem || len(f.CongAvail) != c.congestions {
				t.Errorf("tcp_rmem %q, congestion controls %q", f.Sysctls["net.ipv4.tcp_rmem"], f.CongAvail)
			}
		})
	}
}

func TestReadOfRecordedMachines(t *testing.T) {
	s := At(recordedTree(t, "vmware").Root).Read("ens192", 4321)
	if len(s.CPUs) != 2 || s.CPUs[0] != (CPUTimes{0, 10100e6, 2000e6, 400e6, 6000e6, 200e6, 451000e6}) {
		t.Errorf("cpus %+v", s.CPUs)
	}
	if s.Memory == nil || s.Memory.Available != 6003908<<10 {
		t.Errorf("memory %+v", s.Memory)
	}
	if want := []measure.Softnet{{Core: 0, Processed: 0x12f4a, Dropped: 3, TimeSqueeze: 0x1c}, {Core: 1, Processed: 0x1a2}}; !cmp.Equal(want, s.Softnet) {
		t.Errorf("softnet %+v", s.Softnet)
	}
	nic := &measure.NICSpan{Name: "ens192", RxBytes: 1234567890, RxPackets: 987654, RxErrors: 1, RxDropped: 2, TxBytes: 234567890, TxPackets: 87654, TxErrors: 3, TxDropped: 4}
	if diff := cmp.Diff(nic, s.NIC); diff != "" {
		t.Errorf("interface (-want +got):\n%s", diff)
	}
	proto := map[string]uint64{"TcpExt.SyncookiesSent": 0, "TcpExt.TCPTimeouts": 7, "TcpExt.TCPBacklogDrop": 2, "IpExt.InNoRoutes": 0,
		"IpExt.InOctets": 1234, "Ip.InReceives": 1000, "Tcp.ActiveOpens": 5, "Tcp.RetransSegs": 42}
	if diff := cmp.Diff(proto, s.Proto); diff != "" {
		t.Errorf("protocol (-want +got):\n%s", diff)
	}
	worker := &measure.Process{UserNs: 2500e6, SystemNs: 1750e6, ResidentB: 20 << 20, Voluntary: new(int64(911)), Involuntary: new(int64(31))}
	if diff := cmp.Diff(worker, s.Worker); diff != "" {
		t.Errorf("worker (-want +got):\n%s", diff)
	}
	if want := []measure.IRQSpan{{Core: 0, Count: 7000}, {Core: 1, Count: 9005}}; !cmp.Equal(want, s.IRQs) {
		t.Errorf("interrupts %+v", s.IRQs)
	}
	if s.Swap == nil || *s.Swap != (measure.SwapSpan{InPages: 12, OutPages: 3400}) || s.Quota != nil {
		t.Errorf("swap %+v, quota %+v", s.Swap, s.Quota)
	}
	if !noted(s.Missing, "protocol.snmp6") || !noted(s.Missing, "interface.driver") || !noted(s.Missing, "interface.rx_ring_drops") || !noted(s.Missing, "qdisc") || len(s.Missing) != 4 {
		t.Errorf("missing %v", s.Missing)
	}
}

func TestReadNamesWhatIsMissing(t *testing.T) {
	s := At(t.TempDir()).Read("eth0", 1)
	for _, fact := range []string{"cpus", "softnet", "memory", "protocol.netstat", "protocol.snmp", "interface", "worker", "swap"} {
		if !noted(s.Missing, fact) {
			t.Errorf("%s is not in missing", fact)
		}
	}
	if s.CPUs != nil || s.Memory != nil || s.NIC != nil || s.Proto != nil || s.Softnet != nil || s.Worker != nil || s.Swap != nil || s.Quota != nil || s.IRQs != nil {
		t.Errorf("an empty tree gave %+v", s)
	}
	if s = At(recordedTree(t, "microvm").Root).Read("", 0); s.NIC != nil || s.Worker != nil || len(s.Missing) != 0 {
		t.Errorf("parts not asked for: %+v", s)
	}
}

// The counters that show where datagrams were lost keep the kernel's names.
func TestCountersOfDatagrams(t *testing.T) {
	proto := At(recordedTree(t, "microvm").Root).Read("", 0).Proto
	for name, want := range map[string]uint64{
		"Udp.InDatagrams": 53, "Udp.InErrors": 2766, "Udp.RcvbufErrors": 2764, "Udp.SndbufErrors": 2949, "Udp.InCsumErrors": 2, "Udp.MemErrors": 1,
		"Ip.ReasmFails": 30, "Ip.OutDiscards": 2949, "Ip6.InReceives": 10, "Ip6.ReasmFails": 6,
		"Udp6.InDatagrams": 2, "Udp6.InErrors": 18, "Udp6.RcvbufErrors": 17, "Udp6.SndbufErrors": 7, "Udp6.MemErrors": 1,
	} {
		if got, ok := proto[name]; !ok || got != want {
			t.Errorf("%s is %d, %v; want %d", name, got, ok, want)
		}
	}
}
