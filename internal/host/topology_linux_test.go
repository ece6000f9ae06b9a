package host

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"thru/internal/host/tree"
	"thru/internal/measure"
)

// files writes a tree; a value "-> x" makes a symbolic link to x.
func files(t *testing.T, all map[string]string) FS {
	t.Helper()
	root := t.TempDir()
	for name, text := range all {
		file := filepath.Join(root, filepath.FromSlash(name))
		err := os.MkdirAll(filepath.Dir(file), 0o755)
		if to, isLink := strings.CutPrefix(text, "-> "); isLink && err == nil {
			err = os.Symlink(to, file)
		} else if err == nil {
			err = os.WriteFile(file, []byte(text+"\n"), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return FS{tree.Tree{Root: root}}
}

// twoSockets is a host of 2 nodes with 4 CPUs each, 2 threads a core, and a
// third node without CPUs. eno1 is at node 1, and eno2 at node 0.
func twoSockets() map[string]string {
	all := map[string]string{
		"sys/devices/system/node/online":        "0-2",
		"sys/devices/system/node/node0/cpulist": "0-1,4-5",
		"sys/devices/system/node/node1/cpulist": "2-3,6-7",
		"sys/devices/system/node/node2/cpulist": "",
		"sys/class/net/eno1/device/numa_node":   "1",
		"sys/class/net/eno1/device/msi_irqs/40": "msix",
		"sys/class/net/eno1/device/msi_irqs/41": "msix",
		"sys/class/net/eno2/device/numa_node":   "0",
		"sys/class/net/eno2/device/msi_irqs/50": "msix",
		"proc/irq/40/effective_affinity_list":   "2",
		"proc/irq/40/smp_affinity_list":         "0-7",
		"proc/irq/41/effective_affinity_list":   "",
		"proc/irq/41/smp_affinity_list":         "2-3",
		"proc/irq/50/smp_affinity_list":         "0",
		"sys/class/net/bond0/uevent":            "DEVTYPE=bond",
		"sys/class/net/bond0/lower_eno1":        "",
		"sys/class/net/bond0.7/uevent":          "DEVTYPE=vlan",
		"sys/class/net/bond0.7/lower_bond0":     "",
		"sys/class/net/bond1/uevent":            "DEVTYPE=bond",
		"sys/class/net/bond1/lower_eno1":        "",
		"sys/class/net/bond1/lower_eno2":        "",
		"sys/class/net/br0/uevent":              "DEVTYPE=bridge",
		"sys/class/net/br0/lower_eno1":          "",
		"sys/class/net/veth0/uevent":            "INTERFACE=veth0",
		"sys/class/net/wild/device/numa_node":   "-1",
		"sys/class/net/wild/device/uevent":      "DRIVER=x",
		"proc/interrupts":                       "  CPU0 CPU1 CPU2 CPU3 CPU4 CPU5 CPU6 CPU7\n 60: 0 0 0 0 0 0 0 9 PCI-MSI 1-edge wild-TxRx-0\n 61: 0 0 0 0 0 0 0 9 PCI-MSI 1-edge wild2-TxRx-0\nNMI: 1",
		"proc/irq/60/effective_affinity_list":   "7",
		"sys/class/net/nameless/device/uevent":  "DRIVER=y",
		"sys/class/net/odd/device/numa_node":    "0",
		"sys/class/net/odd/device/msi_irqs/99":  "msix",
		"sys/class/net/eno1/device/msi_irqs/42": "msix",
	}
	for cpu := range 8 {
		all[fmt.Sprintf("sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu)] = fmt.Sprintf("%d,%d", cpu%4, cpu%4+4)
	}
	return all
}

func TestPlacementFacts(t *testing.T) {
	fs := files(t, twoSockets())
	nodes := map[int][]int{0: {0, 1, 4, 5}, 1: {2, 3, 6, 7}}
	atNode1 := PlacementFacts{
		Node: new(1), Nodes: nodes, Local: nodes[1], IRQs: map[int][]int{40: {2}, 41: {2, 3}},
		Siblings: map[int][]int{2: {2, 6}, 6: {2, 6}, 3: {3, 7}, 7: {3, 7}},
	}
	for _, c := range []struct {
		iface   string
		want    PlacementFacts
		missing string // with its reason
	}{
		{"eno1", atNode1, ""},
		{"bond0", atNode1, ""},
		{"bond0.7", atNode1, ""},
		{"bond1", PlacementFacts{Nodes: nodes, IRQs: map[int][]int{40: {2}, 41: {2, 3}, 50: {0}}}, "numa_node: eno1 and eno2 are on different nodes"},
		{"br0", PlacementFacts{Nodes: nodes}, "numa_node: the interface has no bus; interrupts: no interrupt is known to belong to the interface"},
		{"veth0", PlacementFacts{Nodes: nodes}, "numa_node: the interface has no bus; interrupts: no interrupt is known to belong to the interface"},
		{"wild", PlacementFacts{Nodes: nodes, IRQs: map[int][]int{60: {7}}}, "numa_node: the firmware does not report the node of wild"},
		{"odd", PlacementFacts{Node: new(0), Nodes: nodes, Local: nodes[0], Siblings: map[int][]int{0: {0, 4}, 4: {0, 4}, 1: {1, 5}, 5: {1, 5}}},
			"interrupts: /proc/irq/99/smp_affinity_list: no such file or directory"},
		{"nameless", PlacementFacts{Nodes: nodes}, "numa_node: /sys/class/net/nameless/device/numa_node: no such file or directory; interrupts: no interrupt is known to belong to the interface"},
	} {
		var n notes
		got := fs.placement(&n, c.iface)
		if diff := cmp.Diff(c.want, got); diff != "" || said(n) != c.missing {
			t.Errorf("%s: missing %q (-want +got):\n%s", c.iface, said(n), diff)
		}
	}
	q := atNode1.Query()
	if diff := cmp.Diff(PlacementQuery{LocalCPUs: nodes[1], IRQCPUs: []int{2, 3}, Siblings: atNode1.Siblings}, q); diff != "" {
		t.Errorf("query (-want +got):\n%s", diff)
	}
}

// said returns the text of notes.
func said(n []measure.NotChecked) string {
	var parts []string
	for _, m := range n {
		parts = append(parts, m.Fact+": "+m.Why)
	}
	return strings.Join(parts, "; ")
}

// A guest of one node: its NIC is a virtio device, whose name the interrupts
// have.
func TestPlacementFactsOfGuest(t *testing.T) {
	fs := files(t, map[string]string{
		"sys/devices/system/node/node0/cpulist": "0-1",
		"sys/devices/virtio2/uevent":            "DRIVER=virtio_net",
		"sys/class/net/eth0/device":             "-> ../../../devices/virtio2",
		"proc/interrupts": "           CPU0       CPU1\n" +
			" 37:          0          0 PCI-MSIX-0000:00:03.0   0-edge      virtio2-config\n" +
			" 38:          0      10163 PCI-MSIX-0000:00:03.0   1-edge      virtio2-input.0\n" +
			" 40:          0          0 PCI-MSIX-0000:00:04.0   0-edge      virtio20-config\n" +
			"LOC:   14926075   13308386   Local timer interrupts\nERR:          0",
		"proc/irq/37/effective_affinity_list": "0",
		"proc/irq/38/effective_affinity_list": "1",
	})
	var n notes
	got := fs.placement(&n, "eth0")
	want := PlacementFacts{Nodes: map[int][]int{0: {0, 1}}, IRQs: map[int][]int{37: {0}, 38: {1}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	q := got.Query()
	q.Allowed = []int{0, 1}
	if cpus, why := Placement(q); cpus != nil || !strings.HasPrefix(why, "left to the scheduler") {
		t.Errorf("placed on %d: %s", cpus, why)
	}
	n = nil
	if got := (FS{tree.Tree{Root: t.TempDir()}}).placement(&n, "eth0"); len(n) != 3 || got.Nodes != nil || got.Node != nil || got.IRQs != nil {
		t.Errorf("an empty tree gave %+v, %v", got, n)
	}
}

func TestParseInterrupts(t *testing.T) {
	got, err := parseInterrupts("   CPU0  CPU1\n  1:  5  6  IO-APIC  1-edge  i8042, x\n 24: 1\n 25:    0    7  PCI-MSI-edge      eth0-TxRx-1\nNMI: 0 0 Non-maskable\n-3: 0 0 y\n")
	want := interruptTable{cpus: []string{"0", "1"}, irqs: map[int]interrupt{
		1:  {names: []string{"i8042", "x"}, counts: []string{"5", "6"}},
		25: {names: []string{"eth0-TxRx-1"}, counts: []string{"0", "7"}},
	}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(interruptTable{}, interrupt{})); diff != "" || err != nil {
		t.Errorf("error %v (-want +got):\n%s", err, diff)
	}
	if counts := got.countsByCPU(25); !cmp.Equal(counts, map[string]int64{"1": 7}) {
		t.Errorf("counts %v", counts)
	}
	if one, err := interruptsOf("   CPU0  CPU4\n  1:  5  6  IO-APIC  1-edge  i8042\n 25:    2    7  PCI-MSI-edge      eth0-TxRx-1\n", []int{25}); err != nil ||
		!cmp.Equal(one.countsByCore(), []measure.IRQSpan{{Core: 0, Count: 2}, {Core: 4, Count: 7}}) {
		t.Errorf("one interrupt by core: %v, %v", one.countsByCore(), err)
	}
	if _, err := parseInterrupts(""); err == nil {
		t.Error("an empty file has interrupts")
	}
}
