package host

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"thru/internal/host/tree"
	"thru/internal/measure"
)

// parseMeminfo reads MemTotal and MemAvailable of /proc/meminfo
// (proc_meminfo(5)). "Available" is the kernel's own estimate of the memory
// that can be had without swapping, since Linux 3.14.
func parseMeminfo(text string) (measure.Memory, error) {
	all, err := tree.Fields(text)
	if err != nil {
		return measure.Memory{}, err
	}
	total, err1 := tree.Kilobytes(all["MemTotal"])
	available, err2 := tree.Kilobytes(all["MemAvailable"])
	if err1 != nil || err2 != nil {
		return measure.Memory{}, errors.New("no MemTotal or no MemAvailable")
	}
	return measure.Memory{Total: total, Available: available}, nil
}

// parseSwap reads how many pages were swapped in and out since boot (pswpin
// and pswpout of /proc/vmstat, proc_vmstat(5)). A kernel without swapping has
// neither.
func parseSwap(text string) (m measure.SwapSpan, err error) {
	for line := range tree.Lines(text) {
		name, value, _ := strings.Cut(line, " ")
		switch name {
		case "pswpin":
			m.InPages, err = strconv.ParseUint(value, 10, 64)
		case "pswpout":
			m.OutPages, err = strconv.ParseUint(value, 10, 64)
		}
		if err != nil {
			return m, fmt.Errorf("%s is %.40q, not a count", name, value)
		}
	}
	return m, nil
}

// MemoryRoom returns how much memory this process can take before the kernel
// takes it from others or ends the process, in bytes: the available memory
// or, where less, what its control groups allow. 0 means not known.
func (h *Host) MemoryRoom() int64 {
	room := int64(0)
	if m, err := tree.Parsed(h.fs.Read, "proc/meminfo", parseMeminfo); err == nil {
		room = m.Available
	}
	if g := h.fs.cgroup(&notes{}); g != nil && g.MemoryMax != nil {
		room = min(room, *g.MemoryMax)
	}
	return room
}
