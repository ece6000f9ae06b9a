package host

import (
	"errors"
	"fmt"
	"os"
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

// ram reads the memory and its use (proc_meminfo(5)).
func (f FS) ram(n *notes, hypervisor *string) *measure.RAM {
	var r measure.RAM
	info, err := f.Fields("proc/meminfo")
	if err != nil {
		n.add("ram", err.Error())
		return nil
	}
	bytesOf := func(fact, name string) *int64 {
		s, ok := info[name]
		if !ok {
			n.add("ram."+fact, "/proc/meminfo has no "+name)
			return nil
		}
		return keeper[int64](n, "ram."+fact)(tree.Kilobytes(s))
	}
	r.Total = bytesOf("total_bytes", "MemTotal")
	r.Available = bytesOf("available_bytes", "MemAvailable")
	r.SwapTotal = bytesOf("swap_total_bytes", "SwapTotal")
	if free := bytesOf("swap_used_bytes", "SwapFree"); free != nil && r.SwapTotal != nil {
		r.SwapUsed = new(max(*r.SwapTotal-*free, 0))
	}
	if _, ok := info["HugePages_Total"]; ok {
		r.HugePages = keeper[int64](n, "ram.huge_pages")(tree.Count(info["HugePages_Total"]))
		r.HugeFree = keeper[int64](n, "ram.huge_pages_free")(tree.Count(info["HugePages_Free"]))
		r.HugeSize = bytesOf("huge_page_bytes", "Hugepagesize")
	} else {
		n.add("ram.huge_pages", "this kernel is built without them")
	}
	r.THP = keeper[string](n, "ram.transparent_huge")(f.choice("sys/kernel/mm/transparent_hugepage/enabled"))
	r.Balloon = keeper[int64](n, "ram.balloon_bytes")(f.balloon(info, hypervisor))
	r.TCPPages = keeper[int64](n, "ram.tcp_memory_bytes")(f.tcpMemory())
	r.TCPMax = keeper[int64](n, "ram.tcp_memory_max_bytes")(f.tcpMemoryMax())
	return &r
}

// choice reads a file that marks one word as chosen.
func (f FS) choice(name string) (string, error) {
	s, err := f.Text(name)
	if err != nil {
		return "", err
	}
	if s, err = chosen(s); err != nil {
		return "", fmt.Errorf("/%s: %w", name, err)
	}
	return s, nil
}

// balloon returns the memory that the hypervisor has taken back: by the
// kernel's own sum (since 6.16), by its counters of pages in and out, which
// the drivers of Hyper-V and Xen do not keep (mm/balloon_compaction.c), or by
// VMware's driver (drivers/misc/vmw_balloon.c, for root).
func (f FS) balloon(info map[string]string, hypervisor *string) (int64, error) {
	if s, ok := info["Balloon"]; ok {
		return tree.Kilobytes(s)
	}
	if hypervisor == nil {
		return 0, errors.New("the presence of a hypervisor is not known")
	}
	page := int64(os.Getpagesize())
	switch *hypervisor {
	case "none":
		return 0, nil
	case "hyperv", "xen":
		return 0, errors.New(notShown)
	case "vmware":
		if text, err := f.Text("sys/kernel/debug/vmmemctl"); err == nil {
			return vmwareBalloon(text)
		}
	}
	c, err := tree.Parsed(f.Read, "proc/vmstat", tree.Counts)
	if err != nil {
		return 0, err
	}
	in, ok1 := c["balloon_inflate"]
	out, ok2 := c["balloon_deflate"]
	if !ok1 || !ok2 {
		_, err := f.Names("sys/kernel/debug")
		if *hypervisor == "vmware" && err != nil {
			return 0, err
		}
		return 0, errors.New(notShown)
	}
	return max(in-out, 0) * page, nil
}

// vmwareBalloon reads the number of 4 KiB pages that VMware's driver holds
// now.
func vmwareBalloon(text string) (int64, error) {
	all, err := tree.Fields(text)
	if err != nil {
		return 0, err
	}
	pages, _, _ := strings.Cut(all["current"], " ")
	held, err := tree.Count(pages)
	if err != nil || held > 1<<50 {
		return 0, fmt.Errorf("/sys/kernel/debug/vmmemctl: %s is not a number of pages", quoted(pages))
	}
	return held << 12, nil
}

// tcpMemory returns the memory of all TCP sockets of the host, in bytes
// (net/ipv4/proc.c, sockstat_seq_show: pages).
func (f FS) tcpMemory() (int64, error) {
	all, err := tree.Parsed(f.net, "sockstat", tree.Fields)
	if err != nil {
		return 0, err
	}
	words := strings.Fields(all["TCP"])
	for i := 0; i+1 < len(words); i += 2 {
		if words[i] == "mem" {
			return pages(words[i+1])
		}
	}
	return 0, errors.New("/proc/net/sockstat has no TCP memory")
}

// tcpMemoryMax returns the last of the three limits of tcp_mem, in bytes
// (tcp(7): pages). A separate network namespace does not show them.
func (f FS) tcpMemoryMax() (int64, error) {
	s, err := f.Text("proc/sys/net/ipv4/tcp_mem")
	if err != nil {
		return 0, err
	}
	words := strings.Fields(s)
	if len(words) != 3 {
		return 0, fmt.Errorf("/proc/sys/net/ipv4/tcp_mem: %s is not three limits", quoted(s))
	}
	return pages(words[2])
}

// pages converts a number of pages to bytes.
func pages(s string) (int64, error) {
	n, err := tree.Count(s)
	size := int64(os.Getpagesize())
	if err != nil || n > (1<<63-1)/size {
		return 0, fmt.Errorf("%s is not a number of pages", quoted(s))
	}
	return n * size, nil
}
