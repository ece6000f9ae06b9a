package host

import (
	"errors"
	"fmt"
	"path"

	"thru/internal/host/tree"
	"thru/internal/measure"
)

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
