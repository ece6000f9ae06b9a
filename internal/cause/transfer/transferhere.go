package transfer

import (
	"fmt"
	"net/netip"

	"thru/internal/cause/diagnose"
	"thru/internal/measure"
	"thru/internal/unit"
)

// diskHere holds where the same transfer is slower with the file of this end, or
// reaches what its disk carries. The layer is the disk's where that is reached,
// else the whole: one file need not fill a disk.
func (c *course) diskHere() (string, *bound) {
	w := c.wholeRun()
	if w == nil {
		return "", nil
	}
	disk, known := c.rate(measure.LayerDiskHere)
	slower := c.run != w && w.Bps.Value < reachedShare*c.bps
	at := known && w.Bps.Value >= reachedShare*disk && w.Bps.Value <= beyondShare*disk && (c.run == w || disk < c.bps)
	waited := 100 * float64(w.LocalNs) / float64(w.ElapsedNs*int64(c.clients()))
	bar := waitedShare
	if slower {
		bar /= 2
	}
	switch {
	case !slower && !at:
		return "", nil
	case !at && isBusy(w.HereCPU):
		return measure.LayerWhole, c.busyHere(w)
	case waited < bar && !(slower && at): // it varies, but not for the file
		return "", nil
	}
	o, layer := c.oneFile(w, disk), measure.LayerWhole
	if at {
		o, layer = c.fullDisk(w), measure.LayerDiskHere
		if (slower || waited >= waitedShare) && !isBusy(w.HereCPU) {
			o.Confidence = measure.Certain
		}
	}
	if o.At(c.here()); waited >= bar {
		o.By(diagnose.Above(proofOf(w, "time in this end's file", waited, "pct"), bar))
	}
	if known {
		o.By(c.diskProof(w, disk))
	}
	return layer, o
}

// fullDisk says that the disk of this end is full.
func (c *course) fullDisk(w *measure.TransferRun) *bound {
	verb := "takes"
	if c.t.Direction == measure.Upload {
		verb = "gives"
	}
	o := binds(CauseDisk, measure.Likely, "the disk here %s %s%s", verb, unit.Rate(w.Bps.Value), c.without(w))
	o.Mend(&measure.Remedy{EndPoint: "local", Advice: "none in the network: a faster disk, or a transfer that need not end on it (--to nowhere shows what the rest carries)"})
	return o
}

// oneFile says that the file of this end holds it up, and not what its disk can do.
func (c *course) oneFile(w *measure.TransferRun, disk float64) *bound {
	how := "written by one program and synced"
	if c.t.Direction == measure.Upload {
		how = "read by one program"
	}
	text := fmt.Sprintf("one file here, %s, reaches %s", how, unit.Rate(w.Bps.Value))
	run := c.diskRun()
	if run != nil && disk > 0 {
		text += fmt.Sprintf("; the disk gives %s with %s", unit.Rate(disk), unit.Plural(run.Workers, "worker"))
	}
	o := binds(CauseDisk, measure.Likely, "%s%s", text, c.without(w))
	o.Mend(&measure.Remedy{EndPoint: "local", Advice: "none in the network: several files at once where the disk gives more to several, or a transfer that need not end on it (--to nowhere shows what the rest carries)"})
	return o
}

// without says what the same carries without the disk.
func (c *course) without(w *measure.TransferRun) string {
	if c.run == w {
		return ""
	}
	return "; without the file it carries " + unit.Rate(c.bps)
}

// diskRun is the test of this end's disk that its layer is of; nil where it was
// told by the time in the file.
func (c *course) diskRun() *measure.DiskRun {
	pattern := measure.SequentialWrite
	if c.t.Direction == measure.Upload {
		pattern = measure.SequentialRead
	}
	for i := range c.doc.Disks {
		for n := range c.doc.Disks[i].Runs {
			if r := &c.doc.Disks[i].Runs[n]; c.doc.Disks[i].Where == "local" && r.Pattern == pattern && r.Bytes != nil {
				return r
			}
		}
	}
	return nil
}

// diskProof is the rate of this end's disk, over the time that it was tested.
func (c *course) diskProof(w *measure.TransferRun, disk float64) measure.Proof {
	p := proofOf(w, "transfer.layers, disk here", disk, "bps")
	if r := c.diskRun(); r != nil {
		p.SpanNs = r.ElapsedNs
	}
	return p
}

// leastBusy is how many cores a process takes at least that waits for busy CPUs: one
// that takes less waits for something else, whoever fills them.
const leastBusy = 0.25

// isBusy tells whether all CPUs of a host are busy, and the transfer's process is
// among those that want them.
func isBusy(cpu *measure.CPUFigure) bool {
	return allBusy(cpu) && (cpu.WorkerCores == nil || *cpu.WorkerCores >= leastBusy)
}

// allBusy tells whether no CPU of a host is free, whoever fills them.
func allBusy(cpu *measure.CPUFigure) bool { return cpu != nil && cpu.Pct >= busyMachine }

// busyHere says that all CPUs of this end are busy in a run, and with whose work.
func (c *course) busyHere(run *measure.TransferRun) *bound {
	cpu := run.HereCPU
	o := binds(c.here().Place+"-cpu", measure.Likely, "all CPUs here are busy%s", sharesOf(run))
	o.At(c.here()).By(diagnose.Above(proofOf(run, "here_cpu.machine_pct", cpu.Pct, "pct"), busyMachine))
	if cpu.WorkerCores != nil {
		o.By(proofOf(run, "cores used by this process", *cpu.WorkerCores, ""))
	}
	o.Mend(&measure.Remedy{EndPoint: "local", Advice: "nothing else beside it, and server and client on hosts of their own"})
	return o
}

// sharesOf says who keeps the CPUs of this end busy, as far as it is known.
func sharesOf(run *measure.TransferRun) string {
	cpu := run.HereCPU
	if cpu.WorkerCores == nil {
		return ""
	}
	own, rest, others := *cpu.WorkerCores, cpu.Cores-*cpu.WorkerCores, "others"
	text := fmt.Sprintf(": this process takes %.2f cores of %.2f", own, max(cpu.Cores, own))
	if onOneHost(run) {
		if there := run.ThereCPU; there != nil && there.WorkerCores != nil {
			text += fmt.Sprintf(", the server %.2f", *there.WorkerCores)
			rest -= *there.WorkerCores
		} else {
			others = "the server, which is on this machine, and others"
		}
	}
	if rest < leastBusy {
		return text
	}
	return text + fmt.Sprintf(", %s %.2f", others, rest)
}

// onOneHost tells whether the connections of a run have one address at both ends.
func onOneHost(run *measure.TransferRun) bool {
	if len(run.Sockets) == 0 {
		return false
	}
	a, wrongA := netip.ParseAddrPort(run.Sockets[0].Local)
	b, wrongB := netip.ParseAddrPort(run.Sockets[0].Peer)
	return wrongA == nil && wrongB == nil && (a.Addr().Unmap() == b.Addr().Unmap() || a.Addr().IsLoopback() && b.Addr().IsLoopback())
}

// proofOf is a reading at this end over the time of a run.
func proofOf(run *measure.TransferRun, counter string, value float64, unitName string) measure.Proof {
	return measure.Proof{EndPoint: "local", Counter: counter, Value: value, Unit: unitName, SpanNs: run.ElapsedNs}
}
