package cpu

import (
	"thru/internal/cause/gate"
)

// MemoryGates judge memory.
func MemoryGates() []gate.Rule {
	return []gate.Rule{
		{ID: "memory", Title: "Memory", About: "memory that programs can have, the control groups' limit, swap in use, and what the hypervisor has taken back",
			Warns:  "less than 256 MiB can be had; or less than a tenth, with swap in use or memory taken back; or a limit below 128 MiB",
			Why:    "a kernel short of memory cuts TCP's buffers and swaps: the rate falls in steps",
			Source: "C-30; thru's own bounds (a test takes 50 to 130 MiB)", Remedy: "free or add memory", Cause: "memory-pressure", Checklist: []string{"C-30", "C-12"}, Host: memory},
		{ID: "tcp-memory", Title: "Memory of TCP", About: "what all TCP sockets have, and may have (tcp_mem), against the windows that the path needs",
			Warns:  "three quarters are in use; or the planned windows take more than half of it",
			Why:    "above its limit the kernel shrinks every socket's buffer and drops what has arrived",
			Source: "ip-sysctl.rst, tcp_mem", Remedy: "raise tcp_mem", Cause: "memory-pressure", Checklist: []string{"C-30"}, Host: tcpMemory},
	}
}

// Bounds of memory in bytes.
const (
	littleMemory = 256 << 20
	littleLimit  = 128 << 20
)

func memory(h *gate.Host) *gate.Finding {
	m := h.RAM
	if m == nil || m.Available == nil || *m.Available < 0 {
		return h.Missing("memory that can be had", "ram.available_bytes")
	}
	total := *m.Available
	if m.Total != nil && *m.Total > 0 {
		total = *m.Total
	}
	tenth := *m.Available < total/10
	fix := gate.Advise("stop what takes it, or give this host more memory")
	switch {
	case h.Cgroup != nil && h.Cgroup.MemoryMax != nil && *h.Cgroup.MemoryMax < littleLimit:
		return gate.Warn("the control group allows %s of memory", gate.Size(max(0, *h.Cgroup.MemoryMax))).Do(fix)
	case *m.Available < littleMemory:
		return gate.Warn("%s of %s memory can be had", gate.Size(*m.Available), gate.Size(total)).Do(fix)
	case tenth && m.Balloon != nil && *m.Balloon > 0:
		return gate.Warn("%s of %s memory can be had; the hypervisor has taken back %s", gate.Size(*m.Available), gate.Size(total), gate.Size(*m.Balloon)).
			Do(gate.Advise("reserve memory for this guest").Risking(gate.OnTheHost))
	case tenth && m.SwapUsed != nil && *m.SwapUsed > 0:
		return gate.Warn("%s of %s memory can be had, %s are swapped out", gate.Size(*m.Available), gate.Size(total), gate.Size(*m.SwapUsed)).Do(fix)
	}
	return gate.Pass("%s of %s memory can be had", gate.Size(*m.Available), gate.Size(total))
}

func tcpMemory(h *gate.Host) *gate.Finding {
	m := h.RAM
	if m == nil || m.TCPMax == nil || *m.TCPMax <= 0 {
		return nil // only Linux has it, and says so with the memory
	}
	product, _ := h.BDP()
	planned := 2 * product // all windows together, at the buffers' size
	raise := gate.Remedy{}
	if h.System == "linux" {
		raise = gate.Sysctls(h, gate.TcpPages(int64(min(4*(planned+float64(*m.TCPMax))/4096, 1<<40))))
	}
	switch {
	case m.TCPPages != nil && float64(*m.TCPPages) > 0.75*float64(*m.TCPMax):
		return gate.Warn("TCP has %s of the %s that it may have", gate.Size(*m.TCPPages), gate.Size(*m.TCPMax)).Do(raise)
	case planned > 0.5*float64(*m.TCPMax):
		return gate.Warn("the path needs %s of buffers, all TCP may have %s", gate.Size(planned), gate.Size(*m.TCPMax)).Do(raise)
	case m.TCPPages == nil:
		return h.Missing("how much of its "+gate.Size(*m.TCPMax)+" TCP has", "ram.tcp_memory_bytes", "ram")
	}
	return gate.Pass("TCP has %s of the %s that it may have", gate.Size(max(0, *m.TCPPages)), gate.Size(*m.TCPMax))
}
