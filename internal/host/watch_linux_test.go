package host

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"thru/internal/measure"
)

// The lowest quota of the parent groups applies, in either version.
func TestWatchReadsTheQuota(t *testing.T) {
	v1 := map[string]string{
		"proc/self/cgroup":                        "3:cpu,cpuacct:/docker/1/app\n0::/",
		"proc/self/mountinfo":                     "30 20 0:5 /docker/1 /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct",
		"sys/fs/cgroup/cpu/app/cpu.cfs_quota_us":  "400000",
		"sys/fs/cgroup/cpu/app/cpu.cfs_period_us": "100000",
		"sys/fs/cgroup/cpu/app/cpu.stat":          "nr_periods 900\nnr_throttled 800\nthrottled_time 700",
		"sys/fs/cgroup/cpu/cpu.cfs_quota_us":      "150000",
		"sys/fs/cgroup/cpu/cpu.cfs_period_us":     "100000",
		"sys/fs/cgroup/cpu/cpu.stat":              "nr_periods 10\nnr_throttled 4\nthrottled_time 2500000",
	}
	v2 := map[string]string{
		"proc/self/cgroup":                      "0::/user.slice/app",
		"proc/self/mountinfo":                   "30 20 0:5 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw",
		"sys/fs/cgroup/user.slice/app/cpu.max":  "20000 100000",
		"sys/fs/cgroup/user.slice/app/cpu.stat": "usage_usec 5\nnr_periods 10\nnr_throttled 4\nthrottled_usec 2500\nnr_bursts 0",
		"sys/fs/cgroup/user.slice/cpu.max":      "max 100000",
		"sys/fs/cgroup/user.slice/cpu.stat":     "usage_usec 5",
	}
	none := map[string]string{
		"proc/self/cgroup":                 "0::/user.slice",
		"proc/self/mountinfo":              "30 20 0:5 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw",
		"sys/fs/cgroup/user.slice/cpu.max": "max 100000",
	}
	hidden := map[string]string{
		"proc/self/cgroup":    "0::/user.slice",
		"proc/self/mountinfo": "30 20 0:5 / /proc rw - proc proc rw",
	}
	root := map[string]string{
		"proc/self/cgroup":    "1:cpu:/\n0::/",
		"proc/self/mountinfo": "30 20 0:5 / /proc rw - proc proc rw",
		"proc/2/comm":         "kthreadd",
	}
	container := map[string]string{
		"proc/self/cgroup":    "1:cpu:/\n0::/",
		"proc/self/mountinfo": "30 20 0:5 / /proc rw - proc proc rw",
		"proc/1/stat":         "1 (sh) S",
	}
	for _, c := range []struct {
		name  string
		files map[string]string
		want  *measure.QuotaSpan
		noted bool
	}{
		{"version 1", v1, &measure.QuotaSpan{CPUs: 1.5, Periods: 10, Throttled: 4, ThrottledNs: 2500000}, false},
		{"version 2", v2, &measure.QuotaSpan{CPUs: 0.2, Periods: 10, Throttled: 4, ThrottledNs: 2500000}, false},
		{"no quota", none, nil, false},
		{"no control groups", nil, nil, false},
		{"not shown", hidden, nil, true},
		{"the root of all groups, not shown", root, nil, false},
		{"the root of a container, not shown", container, nil, true},
	} {
		s := At(files(t, c.files).Root).Read("", 0)
		if d := cmp.Diff(c.want, s.Quota); d != "" || noted(s.Missing, "cpu_quota") != c.noted {
			t.Errorf("%s: missing %v (-want +got):\n%s", c.name, s.Missing, d)
		}
	}
}

// A process that was moved to another group has that group's quota from then
// on.
func TestWatchFollowsToAnotherGroup(t *testing.T) {
	f := files(t, map[string]string{
		"proc/self/cgroup":    "0::/old",
		"proc/self/mountinfo": "30 20 0:5 / /cg rw - cgroup2 cgroup2 rw",
		"cg/old/cpu.max":      "50000 100000",
		"cg/old/cpu.stat":     "nr_periods 9\nnr_throttled 8\nthrottled_usec 7",
		"cg/new/cpu.max":      "70000 100000",
		"cg/new/cpu.stat":     "nr_periods 3\nnr_throttled 2\nthrottled_usec 1",
	})
	w := At(f.Root).Watch("", 0)
	if q := w.Read().Quota; q == nil || q.CPUs != 0.5 || q.Periods != 9 {
		t.Fatalf("at first %+v", q)
	}
	err1 := os.WriteFile(filepath.Join(f.Root, "proc/self/cgroup"), []byte("0::/new\n"), 0o644)
	err2 := os.RemoveAll(filepath.Join(f.Root, "cg/old"))
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	if q := w.Read().Quota; q == nil || q.CPUs != 0.7 || q.Periods != 3 {
		t.Errorf("then %+v", q)
	}
}

// Interrupts are counted for devices only, also below a VLAN, and for no
// others.
func TestWatchCountsInterrupts(t *testing.T) {
	f := files(t, map[string]string{
		"sys/devices/virtio2/uevent":      "DRIVER=virtio_net",
		"sys/class/net/eth0/device":       "-> ../../../devices/virtio2",
		"sys/class/net/eth0.5/lower_eth0": "-> ../eth0",
		"sys/class/net/eth0.5/uevent":     "DEVTYPE=vlan",
		"sys/class/net/veth1/mtu":         "1500",
		"proc/interrupts": "           CPU0       CPU1\n" +
			" 38:          3         50 PCI-MSIX-0000:00:03.0   1-edge      virtio2-input.0\n" +
			" 39:          4          0 PCI-MSIX-0000:00:03.0   2-edge      virtio2-output.0\n" +
			" 40:        900        900 PCI-MSIX-0000:00:04.0   0-edge      virtio20-config\n",
	})
	want := []measure.IRQSpan{{Core: 0, Count: 7}, {Core: 1, Count: 50}}
	for iface, want := range map[string][]measure.IRQSpan{"eth0": want, "eth0.5": want, "veth1": nil, "lo": nil} {
		s := At(f.Root).Read(iface, 0)
		if d := cmp.Diff(want, s.IRQs); d != "" || noted(s.Missing, "interrupts") {
			t.Errorf("%s: missing %v (-want +got):\n%s", iface, s.Missing, d)
		}
	}
}

// Counters that the diagnosis uses are kept under the kernel's names when
// they change.
func TestCountersOfADiagnosis(t *testing.T) {
	groups := map[string]string{
		"TcpExt": "TCPTimeouts TCPLostRetransmit TCPFastRetrans TCPSlowStartRetrans TCPSpuriousRTOs TCPSACKReorder TCPTSReorder TCPRenoReorder " +
			"TCPDSACKRecv TCPDSACKOfoRecv TCPOFOQueue TCPRcvCollapsed PruneCalled RcvPruned TCPRcvQDrop TCPToZeroWindowAdv TCPFromZeroWindowAdv " +
			"TCPWantZeroWindowAdv TCPMemoryPressures TCPMemoryPressuresChrono TCPMTUPSuccess TCPMTUPFail TCPBacklogDrop TCPZeroWindowDrop " +
			"TCPRenoRecovery TCPSackRecovery ListenDrops TCPSynRetrans TCPRetransFail",
		"IpExt": "InECT0Pkts InCEPkts",
		"Ip":    "FragFails ReasmFails",
		"Icmp":  "InDestUnreachs OutDestUnreachs",
		"Udp":   "RcvbufErrors SndbufErrors InErrors NoPorts MemErrors",
	}
	read := func(value string) map[string]uint64 {
		var text strings.Builder
		for group, names := range groups {
			text.WriteString(group + ": " + names + "\n" + group + ":" + strings.Repeat(" "+value, len(strings.Fields(names))) + "\n")
		}
		return At(files(t, map[string]string{"proc/self/net/netstat": strings.TrimSpace(text.String())}).Root).Read("", 0).Proto
	}
	got := Span(Snapshot{Proto: read("7")}, Snapshot{Proto: read("9")}, time.Time{}).Proto
	for group, names := range groups {
		for _, name := range strings.Fields(names) {
			if got[group+"."+name] != 2 {
				t.Errorf("%s.%s rose by 2, and reads %d", group, name, got[group+"."+name])
			}
		}
	}
}

func TestParseConntrack(t *testing.T) {
	got, err := parseConntrack("entries  found insert_failed drop early_drop\n0000000a 1 00000002 0000000f 1\n0000000a 1 00000001 00000001 0\n")
	want := map[string]uint64{"Conntrack.Drop": 16, "Conntrack.EarlyDrop": 1, "Conntrack.InsertFailed": 3}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("error %v (-want +got):\n%s", err, d)
	}
	for _, bad := range []string{"", "drop\n1 2\n", "drop\nx\n"} {
		if _, err := parseConntrack(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

func TestParseSwap(t *testing.T) {
	got, err := parseSwap("nr_free_pages 5\npswpin 12\npswpout 34\npswpinx 9\n")
	if err != nil || got != (measure.SwapSpan{InPages: 12, OutPages: 34}) {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := parseSwap("pswpin x\n"); err == nil {
		t.Error("x was taken for a count")
	}
}
