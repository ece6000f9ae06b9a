package transfer

import (
	"fmt"

	"thru/internal/cause/diagnose"
	"thru/internal/measure"
	"thru/internal/unit"
)

// Disk is the cause `disk`.
func Disk() diagnose.Rule {
	return diagnose.Rule{
		Cause: causeDisk, Title: "a disk is no faster",
		Seen:        "at this end: the transfer reaches the disk's own rate (85 to 125%), or it is slower with the file than without and the client waits for the file 30% of the time, while CPUs are free; at the server: 85 to 125% of what `thru disk` measures there",
		Distinction: "a transfer to and from memory does not use this end's disk; a transfer faster than the server's disk comes from the server's memory",
		Fix:         "use a faster disk, or more transfers at once if one file does not fill it; the network is not the limit",
		Effect:      "38 of 918 Mb/s with http to a disk of 5 MB/s", Source: "C-13, C-38, C-44; transfer.md",
	}
}

// diskHere holds if the same transfer is slower with the file of this end, or reaches what its disk carries. In
// the latter case the layer is the disk's, else the whole: one file need not fill a disk.
func (c *scene) diskHere() (string, *bound) {
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
	case waited < bar && !(slower && at): // it varies, but not because of the file
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
		o.By(diagnose.Above(proofOf(w, "time spent in this end's file", waited, "pct"), bar))
	}
	if known {
		o.By(c.diskProof(w, disk))
	}
	return layer, o
}

// farDisk says that the disk of the server carries no more.
func (c *scene) farDisk(bps float64, p measure.Proof) *bound {
	o := binds(causeDisk, measure.Likely, "the server's disk carries %s", unit.Rate(bps))
	o.At(c.farEnd()).By(p).AddFix(&measure.Fix{EndPoint: c.server(), Advice: "use a faster disk at the server; the network is not the limit"})
	if o.Then("`thru disk` at the server, with other block sizes"); c.t.Direction == measure.Download {
		o.Then("the same transfer again: data that the server now has in memory passes faster")
	}
	return o
}

// fullDisk says that the disk of this end is full.
func (c *scene) fullDisk(w *measure.TransferRun) *bound {
	verb := "takes"
	if c.t.Direction == measure.Upload {
		verb = "gives"
	}
	o := binds(causeDisk, measure.Likely, "the disk here %s %s%s", verb, unit.Rate(w.Bps.Value), c.without(w))
	o.AddFix(&measure.Fix{EndPoint: "local", Advice: "use a faster disk, or a transfer without it (--to nowhere shows what the rest carries); the network is not the limit"})
	return o
}

// oneFile says that the file of this end limits it, and not its disk.
func (c *scene) oneFile(w *measure.TransferRun, disk float64) *bound {
	how := "written by one program and synced"
	if c.t.Direction == measure.Upload {
		how = "read by one program"
	}
	text := fmt.Sprintf("one file here, %s, reaches %s", how, unit.Rate(w.Bps.Value))
	run := c.diskRun()
	if run != nil && disk > 0 {
		text += fmt.Sprintf("; the disk carries %s with %s", unit.Rate(disk), unit.Plural(run.Workers, "worker"))
	}
	o := binds(causeDisk, measure.Likely, "%s%s", text, c.without(w))
	o.AddFix(&measure.Fix{EndPoint: "local", Advice: "move several files at once if the disk is faster with several, or use a transfer without it (--to nowhere shows what the rest carries); the network is not the limit"})
	return o
}

// without says what the same transfer carries without the disk.
func (c *scene) without(w *measure.TransferRun) string {
	if c.run == w {
		return ""
	}
	return "; without the file it carries " + unit.Rate(c.bps)
}

// diskRun returns the test of this end's disk; nil if the time spent in the file shows the layer.
func (c *scene) diskRun() *measure.DiskRun {
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

// diskProof returns the rate of this end's disk, over the time of its test.
func (c *scene) diskProof(w *measure.TransferRun, disk float64) measure.Proof {
	p := proofOf(w, "transfer.layers, disk here", disk, "bps")
	if r := c.diskRun(); r != nil {
		p.SpanNs = r.ElapsedNs
	}
	return p
}
