package host

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"

	"thru/internal/measure"
)

// parseMeminfo reads MemTotal and MemAvailable of /proc/meminfo
// (proc_meminfo(5)). "Available" is the kernel's own estimate of what could
// be had without swapping, since Linux 3.14.
func parseMeminfo(r io.Reader) (measure.Memory, error) {
	m := measure.Memory{Total: -1, Available: -1}
	s := bufio.NewScanner(r)
	for s.Scan() && (m.Total < 0 || m.Available < 0) {
		name, value, _ := strings.Cut(s.Text(), ":")
		var err error
		switch name {
		case "MemTotal":
			m.Total, err = kilobytes(value)
		case "MemAvailable":
			m.Available, err = kilobytes(value)
		}
		if err != nil {
			return measure.Memory{}, fmt.Errorf("%s: %w", name, err)
		}
	}
	if err := s.Err(); err != nil {
		return measure.Memory{}, err
	}
	if m.Total < 0 || m.Available < 0 {
		return measure.Memory{}, fmt.Errorf("no MemTotal or no MemAvailable")
	}
	return m, nil
}

// parseSwap reads how many pages have come from and gone to disk since the boot
// (pswpin and pswpout of /proc/vmstat, proc_vmstat(5)). A kernel without
// swapping has neither.
func parseSwap(r io.Reader) (measure.SwapSpan, error) {
	var m measure.SwapSpan
	s := bufio.NewScanner(r)
	for s.Scan() {
		name, value, _ := strings.Cut(s.Text(), " ")
		var err error
		switch name {
		case "pswpin":
			m.InPages, err = strconv.ParseUint(value, 10, 64)
		case "pswpout":
			m.OutPages, err = strconv.ParseUint(value, 10, 64)
		}
		if err != nil {
			return m, fmt.Errorf("%s is %.40q, which is no count", name, value)
		}
	}
	return m, s.Err()
}

// kilobytes reads "  123 kB" as bytes. The kernel's kB are 1024 bytes.
func kilobytes(s string) (int64, error) {
	digits, ok := strings.CutSuffix(strings.TrimSpace(s), " kB")
	n, err := strconv.ParseUint(digits, 10, 53)
	if !ok || err != nil {
		return 0, fmt.Errorf("%.40q is no number of kB", s)
	}
	return int64(n) << 10, nil
}

// MemoryRoom is how much memory this process may take at most before the kernel
// takes it from others or ends it: what is available, or all that its control
// groups allow where that is less. In bytes; 0: not known.
func (h *Host) MemoryRoom() int64 {
	room := int64(0)
	if m, err := parsed(h.fs.read, "proc/meminfo", parseMeminfo); err == nil {
		room = m.Available
	}
	if g := h.fs.cgroup(&notes{}); g != nil && g.MemoryMax != nil {
		room = min(room, *g.MemoryMax)
	}
	return room
}
