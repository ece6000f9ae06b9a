package host

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"thru/internal/measure"
)

// PlacementFacts are what this host knows for Placement: where an interface
// sits, and where its interrupts go. What could not be read is nil and named
// in Missing.
type PlacementFacts struct {
	Allowed  []int         // CPUs that this process may use
	Node     *int          // NUMA node of the interface
	Nodes    map[int][]int // CPUs of each NUMA node that has any
	Local    []int         // CPUs of the interface's node; nil where the host has one node only
	IRQs     map[int][]int // for each interrupt of the interface the CPUs that it may go to
	Siblings map[int][]int // for each of Local the CPUs of its core
	Missing  []measure.NotChecked
}

// Query begins a question to Placement. The stream's part is left to the caller.
func (f PlacementFacts) Query() PlacementQuery {
	irqs := slices.Concat(slices.Collect(maps.Values(f.IRQs))...)
	slices.Sort(irqs)
	return PlacementQuery{Allowed: f.Allowed, LocalCPUs: f.Local, IRQCPUs: slices.Compact(irqs), Siblings: f.Siblings}
}

// placement reads the facts of one interface from the files of the kernel.
// With hundreds of CPUs and interrupts it takes some milliseconds.
func (f FS) placement(n *notes, iface string) PlacementFacts {
	var p PlacementFacts
	if v := keeper[map[int][]int](n, "numa_nodes")(f.numaNodes()); v != nil {
		p.Nodes = *v
	}
	devices := f.devices(iface, maxStack)
	p.Node = keeper[int](n, "numa_node")(f.numaNode(devices))
	if p.Node != nil && len(p.Nodes) > 1 {
		p.Local = p.Nodes[*p.Node] // what device/local_cpulist holds too (drivers/pci/pci-sysfs.c)
	}
	if v := keeper[map[int][]int](n, "interrupts")(f.interrupts(devices)); v != nil {
		p.IRQs = *v
	}
	for _, cpu := range p.Local {
		file := fmt.Sprintf("sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu)
		v := keeper[[]int](n, fmt.Sprintf("siblings.%d", cpu))(f.cpuList(file))
		if v == nil {
			continue
		}
		if p.Siblings == nil {
			p.Siblings = map[int][]int{}
		}
		p.Siblings[cpu] = *v
	}
	return p
}

// numaNodes reads which CPUs each NUMA node has
// (Documentation/ABI/stable/sysfs-devices-node). Nodes of memory alone have none.
func (f FS) numaNodes() (map[int][]int, error) {
	const dir = "sys/devices/system/node"
	names, err := f.names(dir)
	if err != nil {
		return nil, err
	}
	nodes := map[int][]int{}
	for _, name := range names {
		number, isNode := strings.CutPrefix(name, "node")
		node, err := strconv.Atoi(number)
		if !isNode || err != nil {
			continue // "online", "possible", "power"
		}
		file := path.Join(dir, name, "cpulist")
		if s, err := f.text(file); err == nil && s == "" {
			continue
		}
		if nodes[node], err = f.cpuList(file); err != nil {
			return nil, err
		}
	}
	if len(nodes) == 0 {
		return nil, errors.New("the kernel shows no node with CPUs")
	}
	return nodes, nil
}

// maxStack is how deep interfaces lie on each other: a bond over a VLAN over a bond.
const maxStack = 4

// devices names the interfaces on a bus that an interface consists of: itself,
// or those that a VLAN or a bond lies on.
func (f FS) devices(name string, depth int) []string {
	if f.exists(path.Join("sys/class/net", name, "device")) {
		return []string{name}
	}
	if depth == 0 {
		return nil
	}
	var all []string
	for _, l := range f.lower(name) {
		all = append(all, f.devices(l, depth-1)...)
	}
	return all
}

// numaNode reads the node that all devices sit at. The file holds -1 where
// the firmware does not tell, and is there for PCI devices and some others.
func (f FS) numaNode(devices []string) (int, error) {
	if len(devices) == 0 {
		return 0, errors.New("the interface is on no bus")
	}
	node := -1
	for i, d := range devices {
		at, err := f.number(path.Join("sys/class/net", d, "device/numa_node"))
		if err != nil {
			return 0, err
		}
		if at < 0 {
			return 0, fmt.Errorf("the firmware does not tell that of %s", d)
		}
		if i > 0 && at != node {
			return 0, fmt.Errorf("%s and %s are at different nodes", devices[0], d)
		}
		node = at
	}
	return node, nil
}

// interrupts reads where the interrupts of devices go: since Linux 4.15 where
// the kernel really sends them, else where they may go
// (Documentation/core-api/irq/irq-affinity.rst).
func (f FS) interrupts(devices []string) (map[int][]int, error) {
	all := map[int][]int{}
	why := errors.New("no interrupt is known to be of the interface")
	for _, d := range devices {
		numbers, err := f.irqsOf(d)
		if err != nil {
			return nil, err
		}
		for _, irq := range numbers {
			dir := path.Join("proc/irq", strconv.Itoa(irq))
			cpus, err := f.cpuList(path.Join(dir, "effective_affinity_list"))
			if err != nil {
				cpus, err = f.cpuList(path.Join(dir, "smp_affinity_list"))
			}
			if err != nil {
				why = err
				continue // not in use
			}
			all[irq] = cpus
		}
	}
	if len(all) == 0 {
		return nil, why
	}
	return all, nil
}

// irqsOf lists the interrupts of a device: those that PCI names, or those that
// bear the name of the interface or of its device in /proc/interrupts.
func (f FS) irqsOf(device string) ([]int, error) {
	dir := path.Join("sys/class/net", device, "device")
	var irqs []int
	if names, err := f.names(path.Join(dir, "msi_irqs")); err == nil {
		for _, name := range names {
			if irq, err := strconv.Atoi(name); err == nil {
				irqs = append(irqs, irq)
			}
		}
		return irqs, nil
	}
	named, err := parsed(f.read, "proc/interrupts", parseInterrupts)
	if err != nil {
		return nil, err
	}
	owner := regexp.QuoteMeta(device)
	if to, err := os.Readlink(filepath.Join(f.Root, dir)); err == nil {
		owner += "|" + regexp.QuoteMeta(filepath.Base(to)) // "virtio2"
	}
	word, err := regexp.Compile(`\b(` + owner + `)\b`) // "eth1" is in "eth1-TxRx-0", not in "eth10"
	if err != nil {
		return nil, err
	}
	for _, irq := range slices.Sorted(maps.Keys(named)) {
		if word.MatchString(named[irq]) {
			irqs = append(irqs, irq)
		}
	}
	return irqs, nil
}

// parseInterrupts reads what each numbered interrupt of /proc/interrupts is
// called: a line has the number, a count for each CPU, and then the chip and
// the names of those who asked for it (kernel/irq/proc.c, show_interrupts).
func parseInterrupts(r io.Reader) (map[int]string, error) {
	s := bufio.NewScanner(r)
	s.Buffer(nil, 1<<20) // a line has 11 bytes for each CPU
	if !s.Scan() {
		return nil, errors.Join(errors.New("empty"), s.Err())
	}
	cpus := len(strings.Fields(s.Text()))
	named := map[int]string{}
	for s.Scan() {
		number, rest, _ := strings.Cut(s.Text(), ":")
		irq, err := strconv.Atoi(strings.TrimSpace(number))
		if err != nil {
			continue // "NMI"
		}
		if words := strings.Fields(rest); irq >= 0 && len(words) > cpus {
			named[irq] = strings.Join(words[cpus:], " ")
		}
	}
	return named, s.Err()
}
