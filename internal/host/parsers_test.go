package host

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"thru/internal/measure"
)

// zeros is n columns of softnet_stat.
func zeros(n int) string { return strings.Repeat(" 00000000", n) }

func TestParseSoftnet(t *testing.T) {
	for _, c := range []struct {
		name, in string
		want     []measure.Softnet
	}{
		{"9 columns", "00358fe3 00006283 00000001" + zeros(6) + "\n", []measure.Softnet{core(0, 0x358fe3, 0x6283, 1)}},
		{"11 columns", "01663fb2 00000000 000109a4" + zeros(8) + "\n0000000a" + zeros(10) + "\n", []measure.Softnet{core(0, 0x1663fb2, 0, 0x109a4), core(1, 10, 0, 0)}},
		{"13 columns, core 1 off line", "ffffffff 00000002 00000000" + zeros(9) + " 00000000\n0000000b" + zeros(11) + " 00000002\n", []measure.Softnet{core(0, 0xffffffff, 2, 0), core(2, 11, 0, 0)}},
		{"15 columns", "00002502 00000000 00000000" + zeros(9) + " 00000001 00000000 00000000\n", []measure.Softnet{core(1, 0x2502, 0, 0)}},
		{"empty", "", nil},
		{"too few columns", "00000001 00000002\n", nil},
		{"not hexadecimal", "zz" + zeros(9) + "\n", nil},
		{"over 32 bits", "100000000" + zeros(9) + "\n", nil},
		{"a good line before a bad one", "00000001" + zeros(9) + "\nbad\n", nil},
	} {
		got, err := parseSoftnet(c.in)
		if diff := cmp.Diff(c.want, got); diff != "" || (err == nil) != (c.want != nil) {
			t.Errorf("%s: error %v (-want +got):\n%s", c.name, err, diff)
		}
	}
}

func TestParseStat(t *testing.T) {
	got, err := parseStat("cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 100 20 30 400 50 6 7 80 11 12\ncpu3 1 0 0 0 0 0 0 0\nintr " + strings.Repeat("1 ", 100_000))
	want := []CPUTimes{{Core: 0, User: 1200e6, System: 300e6, IRQ: 60e6, SoftIRQ: 70e6, Steal: 800e6, Idle: 4500e6}, {Core: 3, User: 10e6}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("error %v (-want +got):\n%s", err, diff)
	}
	for _, in := range []string{"", "cpu 1 2 3", "intr 1\ncpu0 1 2 3 4 5 6 7 8", "cpu0 1 2 3 4 5 6 7", "cpux 1 2 3 4 5 6 7 8", "cpu-1 1 2 3 4 5 6 7 8",
		"cpu0 -1 2 3 4 5 6 7 8", "cpu0 1 2 3 x 5 6 7 8", "cpu0 9223372036854775807 2 3 4 5 6 7 8", strings.Repeat("cpu0", 30_000)} {
		if got, err := parseStat(in); err == nil {
			t.Errorf("%.40q gave %v", in, got)
		}
	}
}

func TestParsersRefuse(t *testing.T) {
	parsers := map[string]func(string) error{
		"protocols":  func(r string) error { _, err := parseProtocols(r); return err },
		"snmp6":      func(r string) error { _, err := parseSNMP6(r); return err },
		"meminfo":    func(r string) error { _, err := parseMeminfo(r); return err },
		"netdev":     func(r string) error { _, err := parseNetDev(r, "eth0"); return err },
		"procstat":   func(r string) error { _, err := parseProcStat(r); return err },
		"status":     func(r string) error { _, err := parseStatus(r); return err },
		"cpuinfo":    func(r string) error { _, err := parseCPUInfo(r); return err },
		"os-release": func(r string) error { _, err := parseOSRelease(r); return err },
	}
	for name, bad := range map[string][]string{
		"protocols":  {"", "no colon\n", "Tcp: A B\n", "Tcp: A B\nTcp: 1\n", "Tcp: A\nUdp: 1\n", "Tcp: A\nTcp: x\n", "Tcp: A\nTcp: -1\n", "MPTcpExt: A\nMPTcpExt: 1\n"},
		"snmp6":      {"", "Ip6InReceives\n", "Ip6InReceives x\n", "Other 1\n"},
		"meminfo":    {"", "MemTotal: 1 kB\n", "MemTotal: x kB\nMemAvailable: 1 kB\n", "MemTotal: 1 MB\nMemAvailable: 1 kB\n", "MemTotal: 18446744073709551615 kB\nMemAvailable: 1 kB\n"},
		"netdev":     {"", "eth1: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n", "eth0: 1 2 3\n", "eth0: x 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n"},
		"procstat":   {"", "1 (a", "1 (a) S 1", "1 (a) S 1 1 1 0 -1 1 1 0 0 0 x 1 0"},
		"status":     {"", "VmRSS: 1 kB\n", "voluntary_ctxt_switches: x\n", "voluntary_ctxt_switches: 1\n", "VmRSS: -1 kB\n"},
		"cpuinfo":    {"", "processor: 0\n\nmodel name: second\n"},
		"os-release": {"", "NAME=x\n", "PRETTY_NAME=\"\"\n"},
	} {
		for _, in := range bad {
			if err := parsers[name](in); err == nil {
				t.Errorf("%s takes %q", name, in)
			}
		}
	}
}

func TestParseCPUList(t *testing.T) {
	for in, want := range map[string][]int{
		"0": {0}, "0-3,6": {0, 1, 2, 3, 6}, " 10-11,65535\n": {10, 11, 65535}, "3-3": {3},
		"": nil, "3-1": nil, "a": nil, "0-": nil, "-1": nil, "1,1": nil, "4,0-2": nil, "0,,1": nil, "0-65536": nil, "0-4294967295": nil, "0-6:2/3": nil,
	} {
		if got, err := parseCPUList(in); !slices.Equal(got, want) || (err == nil) != (want != nil) {
			t.Errorf("%q: %d, %v; want %d", in, got, err, want)
		}
	}
}

func TestParseCPUInfo(t *testing.T) {
	c, err := parseCPUInfo("processor\t: 0\nFeatures\t: fp asimd\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n\n")
	if err != nil || c.guest != nil || c.model != "implementer 0x41 part 0xd0c" {
		t.Errorf("arm64: %+v, %v", c, err)
	}
}

func TestHypervisor(t *testing.T) {
	yes, no := new(true), new(false)
	for _, c := range []struct {
		name string
		t    traces
		want string
	}{
		{"bare metal", traces{guest: no, dmi: []string{"PowerEdge R750", "Dell Inc."}}, "none"},
		{"a metal instance of a cloud", traces{guest: no, dmi: []string{"m5.metal", "Amazon EC2"}}, "none"},
		{"Nitro", traces{guest: yes, clocks: "kvm-clock tsc", dmi: []string{"m5.large", "Amazon EC2"}}, "kvm"},
		{"VMware", traces{guest: yes, clocks: "tsc acpi_pm", dmi: []string{"VMware7,1", "VMware, Inc."}}, "vmware"},
		{"Hyper-V", traces{guest: yes, clocks: "hyperv_clocksource_tsc_page acpi_pm", dmi: []string{"Virtual Machine", "Microsoft Corporation"}}, "hyperv"},
		{"Hyper-V without SMBIOS", traces{guest: yes, clocks: "hyperv_clocksource_tsc_page"}, "hyperv"},
		{"Xen paravirtual", traces{sys: "xen", guest: no}, "xen"},
		{"QEMU with KVM", traces{guest: yes, clocks: "kvm-clock tsc", dmi: []string{"Standard PC (Q35 + ICH9, 2009)", "QEMU"}}, "kvm"},
		{"QEMU alone", traces{guest: yes, clocks: "tsc hpet", dmi: []string{"Standard PC (Q35 + ICH9, 2009)", "QEMU"}}, "qemu"},
		{"VirtualBox, which offers the clock of KVM", traces{guest: yes, clocks: "kvm-clock tsc", dmi: []string{"VirtualBox", "innotek GmbH"}}, "virtualbox"},
		{"Firecracker as root", traces{guest: yes, clocks: "tsc kvm-clock", oem: "FIRECK"}, "firecracker"},
		{"Firecracker as a user", traces{guest: yes, clocks: "tsc kvm-clock"}, "kvm"},
		{"no trace but the flag", traces{guest: yes}, "unknown hypervisor"},
		{"arm64 guest", traces{tree: "linux,kvm"}, "kvm"},
		{"arm64 guest by SMBIOS", traces{dmi: []string{"KVM Virtual Machine", "QEMU"}}, "kvm"},
		{"arm64 server", traces{dmi: []string{"ProLiant RL300", "HPE"}}, "none"},
		{"arm64 without firmware", traces{}, ""},
	} {
		got, err := c.t.name()
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s: %q, %v; want %q", c.name, got, err, c.want)
		}
	}
}

func TestDriverCounters(t *testing.T) {
	names := []string{"Tx Queue#", "  TSO pkts tx", "  drv dropped tx total", "     giant hdr", "Tx Queue#", "  TSO pkts tx", "Rx Queue#", "  pkts rx OOB", "tx timeout count", "twice", "twice", "", "more names than values"}
	got := driverCounters(names, []uint64{0, 11, 12, 13, 1, 21, 0, 31, 41, 51, 52, 61})
	want := map[string]uint64{
		"Tx Queue#0 TSO pkts tx": 11, "Tx Queue#0 drv dropped tx total": 12, "Tx Queue#0 giant hdr": 13,
		"Tx Queue#1 TSO pkts tx": 21, "Rx Queue#0 pkts rx OOB": 31, "tx timeout count": 41, "twice": 51, "twice #2": 52,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	set := append([]byte("rx_packets\x00garbage"), make([]byte, gstringLen)...)
	if got := splitStrings(set[:gstringLen]); !cmp.Equal(got, []string{"rx_packets"}) {
		t.Errorf("string set %q", got)
	}
}

func TestOffloadGroups(t *testing.T) {
	got, fixed := offloads(map[string]feature{
		"tx-tcp-segmentation": {}, "tx-tcp6-segmentation": {on: true, fixed: true}, "tx-checksum-ip-generic": {fixed: true}, "rx-gro": {on: true}, "unknown": {on: true},
	})
	if want := []string{"tx-checksumming", "tx-tcp6-segmentation"}; !cmp.Equal(want, fixed) {
		t.Errorf("fixed %q", fixed)
	}
	want := map[string]bool{"tcp-segmentation-offload": true, "tx-tcp-segmentation": false, "tx-tcp6-segmentation": true, "tx-checksumming": false, "generic-receive-offload": true}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// core is one line of softnet_stat.
func core(number int, processed, dropped, squeezed uint64) measure.Softnet {
	return measure.Softnet{Core: number, Processed: processed, Dropped: dropped, TimeSqueeze: squeezed}
}
