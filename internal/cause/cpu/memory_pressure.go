package cpu

import (
	"cmp"
	"fmt"

	"thru/internal/cause/diagnose"
	"thru/internal/cause/gate"
	"thru/internal/cause/hypervisor"
	"thru/internal/cause/rule"
	"thru/internal/cause/scene"
	"thru/internal/measure"
	"thru/internal/unit"
)

// MemoryPressure is the cause `memory-pressure`.
func MemoryPressure() rule.Cause {
	return rule.Cause{
		Rule: diagnose.Rule{
			Cause: "memory-pressure", TCP: true, UDP: true, Title: "memory is short", Judge: func(f *diagnose.Flow) *diagnose.Outcome { return f.Either(judgeMemoryPressure) },
			Seen:        "the kernel entered TCP memory pressure, or swapped, in the measured time; in the hypervisor's counters: the guest waited for memory, or the host reclaimed some of it (balloon) or swapped it out",
			Distinction: "a small socket buffer prunes its queue without memory pressure",
			Fix:         "free or add memory, raise tcp_mem", Effect: "the rate falls in steps",
			Source: "TcpExt.TCPMemoryPressures, PruneCalled; /proc/vmstat pswpin, pswpout; ESXi's mem.vmmemctl, mem.swapped, mem.latency", Brings: []string{"receive-window", "slow-reader"},
		},
		Gates: []gate.Rule{
			{ID: "memory", Words: "ram swap balloon", Title: "Memory", About: "available memory, the control groups' limit, swap in use, and memory that the hypervisor reclaimed",
				Warns:  "less than 256 MiB are available; or less than a tenth, with swap in use or memory reclaimed; or a limit below 128 MiB",
				Why:    "a kernel short of memory cuts TCP's buffers and swaps: the rate falls in steps",
				Source: "C-30; thru's own thresholds (a test takes 50 to 130 MiB)", Fix: "free or add memory", Checklist: []string{"C-30", "C-12"}, Host: gateMemory},
			{ID: "tcp-memory", Words: "tcp_mem", Title: "Memory of TCP", About: "the memory that all TCP sockets use and may use (tcp_mem), against the windows that the path needs",
				Warns:  "three quarters of tcp_mem are in use; or the planned windows take more than half of it",
				Why:    "above the limit the kernel shrinks every socket's buffer and drops received data",
				Source: "ip-sysctl.rst, tcp_mem", Fix: "raise tcp_mem", Checklist: []string{"C-30"}, Host: gateTCPMemory},
		},
	}
}

// judgeMemoryPressure joins what the kernel counted with what its hypervisor did.
func judgeMemoryPressure(e *diagnose.End) *diagnose.Outcome {
	own, under := pressureSeen(e), HypervisorMemory(e)
	if under != nil && under.State == diagnose.Unknown && own != nil && own.State == diagnose.Excluded { // a guest does not see what its host takes
		return under
	}
	return hypervisor.Seconded(own, under)
}

func pressureSeen(e *diagnose.End) *diagnose.Outcome {
	entered, known := e.Counter("TcpExt.TCPMemoryPressures")
	if !known {
		return e.Lacks("counters of memory pressure")
	}
	pruned, _ := e.Counter("TcpExt.PruneCalled")
	swapped := 0.0
	if s := e.Seen.Host.Swap; s != nil {
		swapped = float64(s.InPages) + float64(s.OutPages)
	}
	if entered == 0 && swapped < swapBar {
		if gates := hypervisor.Conditions(e.Flow, "memory-pressure", e.Name); len(gates) > 0 {
			return hypervisor.Condition(e, gates[0]).MarkNotBinding()
		}
		return diagnose.No("the %s's kernel had enough memory", e.Place)
	}
	o := diagnose.Likely("the %s's kernel was short of memory for TCP", e.Place).At(e.Where())
	if entered > 0 {
		o.By(diagnose.Above(e.Proof("TcpExt.TCPMemoryPressures", entered, ""), 0))
	} else {
		o = diagnose.Possible("the %s swapped during the measurement", e.Place).At(e.Where())
	}
	if pruned > 0 {
		o.By(e.Proof("TcpExt.PruneCalled", pruned, ""))
	}
	if swapped >= swapBar {
		o.By(diagnose.Above(e.Proof("/proc/vmstat pswpin and pswpout", swapped, "pages"), swapBar))
	}
	if e.Flow.IsAll() != nil {
		o.MarkNotBinding()
	}
	return o.AddFix(diagnose.Advise(e, "free or add memory; raise net.ipv4.tcp_mem where TCP alone is short of it"))
}

// swapBar is how many pages moved to and from disk mean that memory is short: 4 MiB; a few are normal.
const swapBar = 1024

// HypervisorMemory judges the memory that the host took back from the guest.
func HypervisorMemory(e *diagnose.End) *diagnose.Outcome {
	if e.Guest() == nil {
		return hypervisor.NoPlacement(e, "memory that the host reclaimed")
	}
	var o *diagnose.Outcome
	waited, read := 0.0, 0.0
	why, known := "", false
	for _, t := range signsOfMemory() {
		r := e.OfGuest(t.counter)
		x, ok := r.Whole()
		if t.unit == "pct" && ok { // the virtual CPU that waited longest
			x, ok = r.Worst()
		}
		if !ok {
			why = cmp.Or(why, r.Why)
			continue
		}
		switch known = true; {
		case t.unit == "pct":
			waited = max(waited, x.Mean)
		case t.counter == measure.CounterSwapIn:
			read = x.Mean
		}
		if x.Mean > t.bar {
			if o == nil {
				o = diagnose.Possible("%s is short of memory: %s", hypervisor.HostName(e), fmt.Sprintf(t.words, hypervisor.GuestName(e), amount(x.Mean, t.unit)))
			}
			o.By(diagnose.Above(hypervisor.GaugeEvidence(x, e.Name, x.Mean, t.unit), t.bar))
		}
	}
	switch {
	case !known:
		return diagnose.Missing("memory that the host reclaimed from the "+e.Place, why)
	case o == nil:
		return diagnose.No("the host reclaimed no memory from the %s", e.Place)
	}
	sureOfMemory(e, o, waited, read)
	return o.At(hypervisor.AtHost(e, hypervisor.HostName(e))).AddFix(&measure.Fix{EndPoint: hypervisor.HostName(e), Advice: "reserve the memory of " + hypervisor.GuestName(e) +
		", free memory of the host, or move guests away from it", Risk: "other guests lose the memory that is reserved"})
}

func signsOfMemory() []taken {
	return []taken{
		{measure.CounterMemWait, "pct", memWaitBar, "%s waited for memory %s of the time"},
		{measure.CounterSwapWait, "pct", memWaitBar, "%s waited %s of the time for memory to be read back from disk"},
		{measure.CounterSwapIn, "bytes", 0, "memory of %s is read back from disk at %s per second"},
		{measure.CounterSwapped, "bytes", ballooned, "%s has %s swapped out"},
		{measure.CounterBalloon, "bytes", ballooned, "%s lost %s to its balloon driver"},
	}
}

// taken is one sign that a guest lacks some of its memory.
type taken struct {
	counter, unit string
	bar           float64
	words         string // format of the guest's name and the value
}

// Thresholds of a guest's memory.
const (
	ballooned  = 1 << 20 // bytes: below it is rounding
	memWaitBar = 1       // percent of the time spent waiting for memory
	memCertain = 10
)

// amount words a share or a size.
func amount(value float64, of string) string {
	if of == "pct" {
		return unit.Percent(value)
	}
	return unit.Size(int64(value))
}

// sureOfMemory sets the certainty: memory taken back earlier costs nothing until the guest needs it; a guest that
// waits for memory is slowed down.
func sureOfMemory(e *diagnose.End, o *diagnose.Outcome, waited, swappedIn float64) {
	cpu := e.CPUs()
	switch {
	case e.Flow.IsAll() != nil || waited <= memWaitBar && swappedIn <= 0:
		o.MarkNotBinding()
	case waited > memCertain && cpu.ReadyKnown && cpu.Net < readyBar && cpu.Unlimited:
		o.Confidence = measure.Certain
	case waited > memWaitBar:
		o.Confidence = measure.Likely
	}
}

func gateMemory(h *scene.Host) *gate.Finding {
	m := h.RAM
	if m == nil || m.Available == nil || *m.Available < 0 {
		return gate.Missing(h, "available memory", "ram.available_bytes")
	}
	total := *m.Available
	if m.Total != nil && *m.Total > 0 {
		total = *m.Total
	}
	tenth := *m.Available < total/10
	fix := scene.Advise("stop the programs that use the memory, or give this host more memory")
	switch {
	case h.Cgroup != nil && h.Cgroup.MemoryMax != nil && *h.Cgroup.MemoryMax < littleLimit:
		return gate.Warn("the control group allows %s of memory", gate.Size(max(0, *h.Cgroup.MemoryMax))).Do(fix)
	case *m.Available < littleMemory:
		return gate.Warn("%s of %s memory available", gate.Size(*m.Available), gate.Size(total)).Do(fix)
	case tenth && m.Balloon != nil && *m.Balloon > 0:
		return gate.Warn("%s of %s memory available; the hypervisor has reclaimed %s", gate.Size(*m.Available), gate.Size(total), gate.Size(*m.Balloon)).
			Do(scene.Advise("reserve memory for this guest").Risking(scene.OnTheHost))
	case tenth && m.SwapUsed != nil && *m.SwapUsed > 0:
		return gate.Warn("%s of %s memory available, %s are swapped out", gate.Size(*m.Available), gate.Size(total), gate.Size(*m.SwapUsed)).Do(fix)
	}
	return gate.Pass("%s of %s memory available", gate.Size(*m.Available), gate.Size(total))
}

// Limits of memory in bytes.
const (
	littleMemory = 256 << 20
	littleLimit  = 128 << 20
)

func gateTCPMemory(h *scene.Host) *gate.Finding {
	m := h.RAM
	if m == nil || m.TCPMax == nil || *m.TCPMax <= 0 {
		return nil // only Linux has it, and reports it with the memory
	}
	product, _ := h.BDP()
	planned := 2 * product // all windows together, at the buffers' size
	raise := scene.Fix{}
	if h.System == "linux" {
		raise = scene.Sysctls(h, tcpPages(int64(min(4*(planned+float64(*m.TCPMax))/4096, 1<<40))))
	}
	switch {
	case m.TCPPages != nil && float64(*m.TCPPages) > 0.75*float64(*m.TCPMax):
		return gate.Warn("TCP uses %s of the %s that it may use", gate.Size(*m.TCPPages), gate.Size(*m.TCPMax)).Do(raise)
	case planned > 0.5*float64(*m.TCPMax):
		return gate.Warn("the path needs %s of buffers, but all TCP sockets may use only %s", gate.Size(planned), gate.Size(*m.TCPMax)).Do(raise)
	case m.TCPPages == nil:
		return gate.Missing(h, "how much of its "+gate.Size(*m.TCPMax)+" TCP uses", "ram.tcp_memory_bytes", "ram")
	}
	return gate.Pass("TCP uses %s of the %s that it may use", gate.Size(max(0, *m.TCPPages)), gate.Size(*m.TCPMax))
}

// tcpPages words the maximum of tcp_mem, in pages of 4 KiB (ip-sysctl.rst).
func tcpPages(most int64) string {
	return fmt.Sprintf("net.ipv4.tcp_mem='%d %d %d'", most/2, most/4*3, most)
}
