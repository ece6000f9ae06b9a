package transfer

import (
	"fmt"
	"net/netip"
	"strings"

	"thru/internal/cause/diagnose"
	"thru/internal/measure"
)

// leastBusy is the least CPU use, in cores, of a process that waits for busy CPUs: one that uses less waits for
// something else, whoever uses the CPUs.
const leastBusy = 0.25

// isBusy reports whether all CPUs of a host are busy, and the transfer's process is among those that want them.
func isBusy(cpu *measure.CPUFigure) bool {
	return allBusy(cpu) && (cpu.WorkerCores == nil || *cpu.WorkerCores >= leastBusy)
}

// allBusy reports whether no CPU of a host is free, whoever uses them.
func allBusy(cpu *measure.CPUFigure) bool { return cpu != nil && cpu.Pct >= busyMachine }

// busyHere says that all CPUs of this end are busy in a run, and with whose work.
func (c *scene) busyHere(run *measure.TransferRun) *bound {
	cpu := run.HereCPU
	o := binds(c.here().Place+"-cpu", measure.Likely, "all CPUs here are busy%s", sharesOf(run))
	o.At(c.here()).By(diagnose.Above(proofOf(run, "here_cpu.machine_pct", cpu.Pct, "pct"), busyMachine))
	if cpu.WorkerCores != nil {
		o.By(proofOf(run, "CPU cores used by this process", *cpu.WorkerCores, ""))
	}
	o.AddFix(&measure.Fix{EndPoint: "local", Advice: "stop other work on this host, and put server and client on separate hosts"})
	return o
}

// sharesOf says who uses the CPUs of this end, as far as it is known.
func sharesOf(run *measure.TransferRun) string {
	cpu := run.HereCPU
	if cpu.WorkerCores == nil {
		return ""
	}
	own, rest, others := *cpu.WorkerCores, cpu.Cores-*cpu.WorkerCores, "others"
	text := fmt.Sprintf(": this process takes %.2f of %.2f cores", own, max(cpu.Cores, own))
	if onOneHost(run) {
		if there := run.ThereCPU; there != nil && there.WorkerCores != nil {
			text += fmt.Sprintf(", the server %.2f", *there.WorkerCores)
			rest -= *there.WorkerCores
		} else {
			others = "the server on this machine and others"
		}
	}
	if rest < leastBusy {
		return text
	}
	return text + fmt.Sprintf(", %s %.2f", others, rest)
}

// onOneHost reports whether the connections of a run have the same address at both ends.
func onOneHost(run *measure.TransferRun) bool {
	if len(run.Sockets) == 0 {
		return false
	}
	a, wrongA := netip.ParseAddrPort(run.Sockets[0].Local)
	b, wrongB := netip.ParseAddrPort(run.Sockets[0].Peer)
	return wrongA == nil && wrongB == nil && (a.Addr().Unmap() == b.Addr().Unmap() || a.Addr().IsLoopback() && b.Addr().IsLoopback())
}

// farCPU holds if the CPUs of the server are busy, or its processes keep one busy for each of their clients.
func (c *scene) farCPU() *bound {
	cpu := c.run.ThereCPU
	if cpu == nil {
		return nil
	}
	if isBusy(cpu) {
		o := binds(c.there().Place+"-cpu", measure.Likely, "all CPUs of the server are busy")
		o.At(c.farEnd()).By(diagnose.Above(c.farProof("there_cpu.machine_pct", cpu.Pct, "pct"), busyMachine))
		o.AddFix(&measure.Fix{EndPoint: c.server(), Advice: "stop other work on the server, or give it more CPUs"})
		return o
	}
	lanes := float64(max(min(max(c.t.Asked.Clients, 1), len(c.run.Programs)), 1)) // one process may serve all clients
	if cpu.WorkerCores == nil || *cpu.WorkerCores < busyCores*lanes {
		return nil
	}
	program := "the server's process"
	if len(c.run.Programs) > 0 {
		program = strings.TrimSpace("the server's " + diagnose.Word(c.run.Programs[0]))
	}
	p := diagnose.Above(c.farProof("there_cpu.worker_cores_used", *cpu.WorkerCores, ""), busyCores*lanes)
	if c.encrypted() {
		o := binds(causeCipher, measure.Likely, "one stream's cipher and protocol take a whole CPU there (%s)", program)
		o.At(c.farEnd()).By(p).Then("run two at once (--many 2): they carry more if the server uses a process or thread for each")
		o.AddFix(&measure.Fix{EndPoint: c.server(), Advice: "run several transfers at once, use a cipher that the CPU has instructions for (AES-GCM), or use a protocol without a cipher on a trusted path"})
		return o
	}
	o := binds(c.there().Place+"-cpu", measure.Likely, "%s takes a whole CPU", program)
	o.At(c.farEnd()).By(p).Then("run two at once (--many 2): they carry more if the server uses a process or thread for each")
	return o
}
