package cpu

import (
	"fmt"
	"math"
	"strings"

	"thru/internal/cause/gate"
)

// LoadGates judge what else the host does.
func LoadGates() []gate.Rule {
	return []gate.Rule{
		{ID: "cpu-load", Title: "Other load of the CPUs", About: "what the host does while no test runs",
			Warns:  "above 20% of the machine, or 80% of one CPU",
			Why:    "what others use is missing to the test, and changes from run to run",
			Source: "thru's own bound", Remedy: "see what it is, and measure when the host is quiet", Cause: "noisy-neighbour", Checklist: []string{"C-29", "C-33"}, Host: cpuLoad},
		{ID: "backlog", Title: "Backlog of received packets", About: "packets that the kernel dropped before a full backlog while no test ran",
			Warns:  "any",
			Why:    "a host that drops packets while idle drops more of them under load",
			Source: "Linux softnet_stat, column 2", Remedy: "a longer backlog; more CPUs for received packets", Cause: "backlog-overflow", Checklist: []string{"C-32"}, Host: backlog},
		{ID: "security", Title: "Security modules", About: "SELinux, AppArmor and seccomp around thru; information only",
			Why:    "they may refuse or slow system calls: a result should name them (C-32)",
			Source: "C-32", Remedy: "none", Checklist: []string{"C-32"}, Host: security},
	}
}

func cpuLoad(h *gate.Host) *gate.Finding {
	l := h.Load
	if l == nil || l.CPUPct == nil {
		return h.Missing("load of the CPUs", "load.cpu_pct")
	}
	busiest := math.NaN()
	if l.BusiestPct != nil {
		busiest = *l.BusiestPct
	}
	fix := lookAtBusiest(h)
	switch {
	case *l.CPUPct > 20:
		return gate.Warn("%s of the CPUs are busy%s", gate.Percent(*l.CPUPct), busiestProcess(h)).Do(fix)
	case busiest > 80:
		return gate.Warn("one CPU is %s busy%s", gate.Percent(busiest), busiestProcess(h)).Do(fix)
	}
	return gate.Pass("%s of the CPUs are busy", gate.Percent(*l.CPUPct))
}

// muchOfCPU is what of one CPU a process takes, in percent, that is held for
// the reason of a load.
const muchOfCPU = 20

// busiestProcess names it, and says where none explains the load: package host
// lists those above 5% of a CPU.
func busiestProcess(h *gate.Host) string {
	l := h.Load
	switch {
	case len(l.Top) == 0 && gate.Reason(h.NotChecked, "load.processes") != gate.NotRead:
		return ""
	case len(l.Top) == 0:
		return "; no process takes more than 5% of one"
	}
	p, most := l.Top[0], ", most by"
	if !(p.CPUPct >= muchOfCPU) {
		most = "; the busiest process is"
	}
	return fmt.Sprintf("%s %.40s (process %d, %s of one)", most, p.Name, p.PID, gate.Percent(p.CPUPct))
}

// lookAtBusiest is for a process that takes much: it may be what the host is for.
func lookAtBusiest(h *gate.Host) gate.Remedy {
	top := h.Load.Top
	if len(top) == 0 || top[0].PID <= 0 || !(top[0].CPUPct >= muchOfCPU) {
		return gate.Remedy{}
	}
	name := ""
	if gate.Plain(top[0].Name, "") {
		name = " (" + top[0].Name + ")"
	}
	return gate.Advise(fmt.Sprintf("see what process %d%s does; measure when it is idle or has ended", top[0].PID, name))
}

func backlog(h *gate.Host) *gate.Finding {
	l := h.Load
	if l == nil || l.Dropped == nil {
		return nil // only Linux counts it, and the gate of the load says where it was not read
	}
	if *l.Dropped > 0 {
		fix := gate.Remedy{}
		if h.System == "linux" {
			fix = gate.Sysctls(h, "net.core.netdev_max_backlog="+gate.Doubled(h))
		}
		return gate.Warn("%d packets dropped before a full backlog in %s", *l.Dropped, gate.Span(l.SpanNs)).Do(fix)
	}
	return gate.Pass("no packets dropped before the backlog")
}

func security(h *gate.Host) *gate.Finding {
	s := h.Security
	if s == nil {
		return nil
	}
	var parts []string
	for _, p := range [][2]string{{"SELinux", text(s.SELinux)}, {"AppArmor", text(s.AppArmor)}, {"seccomp", text(s.Seccomp)}, {"CPU mitigations", text(s.Mitigations)}} {
		if p[1] != "" {
			parts = append(parts, p[0]+" "+p[1])
		}
	}
	if len(parts) == 0 {
		return nil
	}
	return gate.Pass("%s", strings.Join(parts, ", "))
}
