package host

import (
	"errors"
	"fmt"
	"maps"
	"math/big"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"thru/internal/host/tree"
	"thru/internal/measure"
	"thru/internal/unit"
)

// PlacementFacts holds what this host knows for Placement: the NUMA node of
// an interface and the CPUs of its interrupts. A fact that could not be read
// is nil and named in Missing.
type PlacementFacts struct {
	Allowed  []int         // CPUs that this process may use
	Node     *int          // of the interface
	Nodes    map[int][]int // CPUs of each NUMA node that has any
	Local    []int         // CPUs of the interface's node; nil where the host has one node only
	IRQs     map[int][]int // for each interrupt of the interface the CPUs that may handle it
	Siblings map[int][]int // for each CPU of Local the CPUs of its core
	Missing  []measure.NotChecked
}

// Query returns a query to Placement with the host's part set. The caller
// sets the stream's part.
func (f PlacementFacts) Query() PlacementQuery {
	irqs := slices.Concat(slices.Collect(maps.Values(f.IRQs))...)
	slices.Sort(irqs)
	return PlacementQuery{Allowed: f.Allowed, LocalCPUs: f.Local, IRQCPUs: slices.Compact(irqs), Siblings: f.Siblings}
}

// placement reads the facts of one interface from the kernel's files. With
// hundreds of CPUs and interrupts it takes some milliseconds.
func (f FS) placement(n *notes, iface string) PlacementFacts {
	var p PlacementFacts
	p.Nodes = orNote[map[int][]int](n, "numa_nodes")(f.numaNodes())
	devices := f.devices(iface, maxStack)
	p.Node = keeper[int](n, "numa_node")(f.numaNode(devices))
	if p.Node != nil && len(p.Nodes) > 1 {
		p.Local = p.Nodes[*p.Node] // the same as device/local_cpulist (drivers/pci/pci-sysfs.c)
	}
	p.IRQs = orNote[map[int][]int](n, "interrupts")(f.interrupts(devices))
	for _, cpu := range p.Local {
		file := fmt.Sprintf("sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu)
		v := keeper[[]int](n, fmt.Sprintf("siblings.%d", cpu))(f.cpuList(file))
		if v == nil {
			continue
		}
		measure.Put(&p.Siblings, cpu, *v)
	}
	return p
}

// numaNodes reads which CPUs each NUMA node has
// (Documentation/ABI/stable/sysfs-devices-node). Nodes of memory alone have
// none.
func (f FS) numaNodes() (map[int][]int, error) {
	const dir = "sys/devices/system/node"
	numbers, err := f.Numbered(dir, "node")
	if err != nil {
		return nil, err
	}
	nodes := map[int][]int{}
	for _, node := range numbers {
		file := path.Join(dir, fmt.Sprint("node", node), "cpulist")
		if s, err := f.Text(file); err == nil && s == "" {
			continue
		}
		if nodes[node], err = f.cpuList(file); err != nil {
			return nil, err
		}
	}
	if len(nodes) == 0 {
		return nil, errors.New("the kernel reports no node with CPUs")
	}
	return nodes, nil
}

// maxStack is the depth of stacked interfaces: a bond over a VLAN over a
// bond.
const maxStack = 4

// devices names the physical interfaces of an interface: itself, or the lower
// interfaces of a VLAN or a bond.
func (f FS) devices(name string, depth int) []string {
	if f.Exists(path.Join("sys/class/net", name, "device")) {
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

// numaNode returns the node that all devices share. The file holds -1 where
// the firmware does not name the node; PCI devices and some others have it.
func (f FS) numaNode(devices []string) (int, error) {
	if len(devices) == 0 {
		return 0, errors.New("the interface has no bus")
	}
	node := -1
	for i, d := range devices {
		at, err := f.Number(path.Join("sys/class/net", d, "device/numa_node"))
		if err != nil {
			return 0, err
		}
		if at < 0 {
			return 0, fmt.Errorf("the firmware does not report the node of %s", d)
		}
		if i > 0 && at != node {
			return 0, fmt.Errorf("%s and %s are on different nodes", devices[0], d)
		}
		node = at
	}
	return node, nil
}

// interrupts reads the CPUs of the devices' interrupts: since Linux 4.15
// those that the kernel really uses, before that those that it may use
// (Documentation/core-api/irq/irq-affinity.rst).
func (f FS) interrupts(devices []string) (map[int][]int, error) {
	all := map[int][]int{}
	why := errors.New("no interrupt is known to belong to the interface")
	table := sync.OnceValues(f.interruptTable)
	for _, d := range devices {
		numbers, err := f.irqsOf(d, path.Join("sys/class/net", d, "device"), table)
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

// nodes reads the NUMA nodes with their memory, including nodes without CPUs
// (Documentation/ABI/stable/sysfs-devices-node).
func (f FS) nodes(n *notes) []measure.NUMANode {
	const dir = "sys/devices/system/node"
	numbers, err := f.Numbered(dir, "node")
	if err == nil && len(numbers) == 0 {
		err = errors.New("/" + dir + " shows no node")
	}
	if err != nil {
		n.add("numa_nodes", err.Error())
		return nil
	}
	var all []measure.NUMANode
	for _, number := range numbers {
		node := path.Join(dir, fmt.Sprint("node", number))
		fact := fmt.Sprintf("numa_nodes.%d", number)
		v := measure.NUMANode{Node: number, CPUs: []int{}}
		s, err := f.Text(path.Join(node, "cpulist"))
		if err == nil && s != "" {
			v.CPUs, err = parseCPUList(s)
		}
		if err != nil {
			n.add(fact, err.Error())
			continue
		}
		total, free, err := f.nodeMemory(path.Join(node, "meminfo"), number)
		v.Total = keeper[int64](n, fact+".memory_bytes")(total, err)
		if err == nil {
			v.Free = &free
		}
		all = append(all, v)
	}
	return all
}

// nodeMemory reads "Node 0 MemTotal: 123 kB" (drivers/base/node.c, node_read_meminfo).
func (f FS) nodeMemory(file string, node int) (total, free int64, err error) {
	all, err := f.Fields(file)
	if err != nil {
		return 0, 0, err
	}
	prefix := fmt.Sprintf("Node %d Mem", node)
	if total, err = tree.Kilobytes(all[prefix+"Total"]); err == nil {
		free, err = tree.Kilobytes(all[prefix+"Free"])
	}
	if err != nil {
		return 0, 0, fmt.Errorf("/%s: %w", file, err)
	}
	return total, free, nil
}

// maxCPU is the greatest number that a CPU can have.
const maxCPU = unit.MaxCPU

// parseCPUList reads the CPUs of a list such as "0-3,8,10-11".
func parseCPUList(s string) ([]int, error) { return unit.ParseList(s, maxCPU) }

// cpuList reads a file with a list of CPUs.
func (f FS) cpuList(name string) ([]int, error) {
	s, err := f.Text(name)
	if err != nil {
		return nil, err
	}
	cpus, err := parseCPUList(s)
	if err != nil {
		return nil, fmt.Errorf("/%s: %w", name, err)
	}
	return cpus, nil
}

// parseCPUMask reads a set of CPUs such as "00000000,0000000f": hexadecimal,
// in groups of 8 digits, the highest first (lib/vsprintf.c, bitmap_string).
func parseCPUMask(s string) ([]int, error) {
	n, ok := new(big.Int).SetString(strings.ReplaceAll(s, ",", ""), 16)
	if !ok || n.Sign() < 0 || n.BitLen() > maxCPU {
		return nil, fmt.Errorf("%.80q is not a CPU mask", s)
	}
	var cpus []int
	for cpu := range n.BitLen() {
		if n.Bit(cpu) == 1 {
			cpus = append(cpus, cpu)
		}
	}
	return cpus, nil
}

// cpuinfo holds facts about the first processor of /proc/cpuinfo.
type cpuinfo struct {
	model string // "" where the architecture names none
	guest *bool  // the flag `hypervisor` (x86, CPUID leaf 1, ECX bit 31); nil: no such flag on this architecture
}

// parseCPUInfo reads the first processor (arch/x86/kernel/cpu/proc.c,
// arch/arm64/kernel/cpuinfo.c). arm64 has numbers instead of a name.
func parseCPUInfo(text string) (cpuinfo, error) {
	var c cpuinfo
	var implementer, part string
	for line := range strings.Lines(text) {
		key, value, ok := strings.Cut(line, ":")
		if !ok {
			break // the first processor ends with an empty line
		}
		value = strings.TrimSpace(value)
		switch strings.TrimSpace(key) {
		case "model name":
			c.model = value
		case "flags":
			c.guest = new(slices.Contains(strings.Fields(value), "hypervisor"))
		case "CPU implementer":
			implementer = value
		case "CPU part":
			part = value
		}
	}
	if c.model == "" && part != "" {
		c.model = "implementer " + implementer + " part " + part
	}
	if c.model == "" && c.guest == nil {
		return cpuinfo{}, errors.New("no model and no flags")
	}
	return c, nil
}

// firstCPU reads the beginning of /proc/cpuinfo; the whole file has some KB
// for each processor.
func (f FS) firstCPU() (cpuinfo, error) {
	const enough = 16 << 10
	return tree.Parsed(func(name string) ([]byte, error) { return f.Head(name, enough) }, "proc/cpuinfo", parseCPUInfo)
}
