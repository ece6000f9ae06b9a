package diagnose

import (
	"fmt"
	"slices"

	"thru/internal/measure"
	"thru/internal/stat"
	"thru/internal/unit"
)

// Causes that only a file transfer has.
const (
	CauseDisk      = "disk"        // a disk is no faster
	CauseCipher    = "cipher-cpu"  // one stream's cipher takes a whole CPU
	CauseRoundTrip = "round-trips" // the protocol waits for answers: block x in flight / RTT
	CauseClient    = "client"      // the program that moves the bytes is no faster
)

// Bars of what is said of a transfer.
const (
	reachedShare = 0.85 // of a layer's rate: from there on that layer binds
	waitedShare  = 60.0 // percent of the time spent in this end's file: then it binds
	busyCores    = 0.85 // of one CPU, used by this process: one stream fills it
	busyMachine  = 95.0 // percent of all CPUs of this machine
	farNs        = 1e6  // round trip in ns from which waiting for answers costs
	briefNs      = 1e9  // a run shorter than this says little
	windowLow    = 0.6  // of window over round trip: a rate from here ...
	windowHigh   = 1.3  // ... to here is that of the window
)

// course is one transfer with what its rules ask of it.
type course struct {
	doc   *measure.Document
	t     *measure.Transfer
	run   *measure.TransferRun // over memory, else the whole
	bps   float64              // that it reached
	brief bool
}

// Transfer names which layer of a transfer binds, and why. It does nothing where
// nothing was moved.
func Transfer(d *measure.Document) {
	t := d.Transfer
	if t == nil {
		return
	}
	t.Binds, t.Why = "", ""
	c := newCourse(d)
	if c == nil {
		return
	}
	layer, o := c.judge()
	if o == nil {
		return
	}
	f := measure.Finding{
		Cause: o.cause, Where: o.where, Confidence: o.confidence, Summary: line(o.text), Evidence: numbers(o.evidence),
		Effect: o.effect, Next: o.next, Remedy: o.remedy, Healthy: o.healthy, Source: "causes.md; docs/transfer.md",
	}
	if c.brief && f.Confidence != measure.Possible {
		f.Confidence, f.Next = measure.Possible, "a larger --size: this run took under a second"
	}
	t.Binds, t.Why = layer, f.Summary
	d.Findings = append([]measure.Finding{f}, slices.DeleteFunc(d.Findings, func(x measure.Finding) bool { return x.Cause == measure.CauseNone })...)
}

// bound is what a rule of transfers says.
type bound struct {
	cause string
	outcome
}

func binds(cause, confidence, format string, args ...any) *bound {
	return &bound{cause, *held(confidence, format, args...)}
}

func newCourse(d *measure.Document) *course {
	t := d.Transfer
	c := &course{doc: d, t: t}
	for i := range t.Runs {
		r := &t.Runs[i]
		if r.Bps != nil && r.Error == nil && (c.run == nil || r.Layer == measure.LayerMemory) {
			c.run, c.bps = r, r.Bps.Value
		}
	}
	if c.run == nil {
		return nil
	}
	c.brief = c.run.ElapsedNs < briefNs
	return c
}

// rate of a layer; false where it was not measured.
func (c *course) rate(name string) (float64, bool) {
	for _, l := range c.t.Layers {
		if l.Name == name && l.Bps != nil && *l.Bps > 0 {
			return *l.Bps, true
		}
	}
	return 0, false
}

// judge names the layer that binds: first what the disk of this end adds to the
// protocol, then the lower layers that the protocol fills, then the protocol.
func (c *course) judge() (string, *bound) {
	if o := c.diskHere(); o != nil {
		return measure.LayerDiskHere, o
	}
	if layer, o := c.floor(); o != nil {
		return layer, o
	}
	for _, rule := range []func() *bound{c.window, c.sureTCP, c.cipher, c.tcp, c.roundTrips, c.open} {
		if o := rule(); o != nil {
			return c.run.Layer, o
		}
	}
	return "", nil
}

func (c *course) here() measure.Where {
	place := measure.AtReceiver
	if c.t.Direction == measure.Upload {
		place = measure.AtSender
	}
	return measure.Where{Place: place, EndPoint: "local"}
}

func (c *course) there() measure.Where {
	place := measure.AtSender
	if c.t.Direction == measure.Upload {
		place = measure.AtReceiver
	}
	return measure.Where{Place: place}
}

func (c *course) proof(counter string, value float64, unitName string) measure.Proof {
	return measure.Proof{EndPoint: "local", Counter: counter, Value: value, Unit: unitName, SpanNs: c.run.ElapsedNs}
}

// wholeRun is the run over this end's disk; nil where there was none.
func (c *course) wholeRun() *measure.TransferRun {
	for i := range c.t.Runs {
		if r := &c.t.Runs[i]; r.Layer == measure.LayerWhole && r.Bps != nil && r.Error == nil {
			return r
		}
	}
	return nil
}

// diskHere holds where the same transfer is slower with the disk of this end.
func (c *course) diskHere() *bound {
	w := c.wholeRun()
	if w == nil {
		return nil
	}
	disk, known := c.rate(measure.LayerDiskHere)
	waited := 100 * float64(w.LocalNs) / float64(w.ElapsedNs*int64(max(c.t.Asked.Clients, 1)))
	slower := c.run != w && w.Bps.Value < reachedShare*c.bps
	at := known && w.Bps.Value >= reachedShare*disk && (c.run == w || disk < c.bps)
	if !slower && !at || !slower && waited < waitedShare {
		return nil
	}
	if slower && !at && waited < waitedShare/2 {
		return nil // slower, but not for the file: it varies
	}
	o := binds(CauseDisk, measure.Likely, "the disk here takes %s%s", unit.Rate(w.Bps.Value), c.without(w))
	if known && !at {
		o.next = "the disk itself carries " + unit.Rate(disk) + " with several workers: one file, written by one program, does not reach that"
	}
	if at && (slower || waited >= waitedShare) {
		o.confidence = measure.Certain
	}
	if c.t.Direction == measure.Upload {
		o.text = fmt.Sprintf("the disk here gives %s%s", unit.Rate(w.Bps.Value), c.without(w))
	}
	o.at(c.here()).by(above(c.proof("time in this end's file", waited, "pct"), waitedShare))
	if known {
		o.by(c.proof("transfer.layers, disk here", disk, "bps"))
		o.costs(disk, "the disk carries "+unit.Rate(disk), "thru disk")
	}
	o.mend(&measure.Remedy{EndPoint: "local", Advice: "none in the network: a faster disk, or a transfer that need not end on it (--to nowhere shows what the rest carries)"})
	return o
}

// without says what the same carries without the disk.
func (c *course) without(w *measure.TransferRun) string {
	if c.run == w {
		return ""
	}
	return ", without it " + unit.Rate(c.bps) + " pass"
}

// floor holds where the protocol carries what the layer below it does: the least
// of those that were measured.
func (c *course) floor() (string, *bound) {
	least, name := 0.0, ""
	for _, l := range []string{measure.LayerDiskFar, measure.LayerNetwork, measure.LayerLibrary} {
		if bps, ok := c.rate(l); ok && (name == "" || bps < least) {
			least, name = bps, l
		}
	}
	if name == "" || c.bps < reachedShare*least {
		return "", nil
	}
	p := below(c.proof("goodput of the transfer over that of the layer", c.bps/least, ""), 1)
	switch name {
	case measure.LayerDiskFar:
		o := binds(CauseDisk, measure.Likely, "the server's disk carries %s", unit.Rate(least))
		o.at(c.there()).by(p).mend(&measure.Remedy{Advice: "none in the network: a faster disk at the server"})
		return name, o
	case measure.LayerLibrary:
		o := binds(CauseClient, measure.Likely, "the client (%s) carries no more than %s, also on this machine alone", c.t.Client, unit.Rate(least))
		o.at(measure.Where{Place: measure.AtTool}).by(p).then("--many 4: several at once")
		return name, o
	}
	return name, c.network(least, p)
}

// network says what holds the network itself, where its own cells know.
func (c *course) network(bps float64, p measure.Proof) *bound {
	o := binds("network", measure.Certain, "the network carries %s from memory to memory", unit.Rate(bps))
	o.at(measure.Where{Place: measure.AtPath}).by(p)
	for _, f := range c.doc.Findings {
		if f.Cause != measure.CauseNone && len(c.t.Cells) > 0 {
			o.cause, o.confidence, o.healthy, o.remedy = f.Cause, f.Confidence, f.Healthy, f.Remedy
			o.where = f.Where
			o.text += ": " + f.Summary
			break
		}
	}
	return o
}

// socket is the connection that carried the most; nil where none was read.
func (c *course) socket() *measure.Stream {
	if len(c.run.Sockets) == 0 || c.run.Sockets[0].TCP == nil {
		return nil
	}
	return &c.run.Sockets[0]
}

// window holds where a buffer of a fixed size, over the round trip, is the rate.
func (c *course) window() *bound {
	s, rtt := c.socket(), stat.TransferRTT(c.run)
	if s == nil || rtt <= 0 {
		return nil
	}
	if o := c.peerWindow(s); o != nil {
		return o
	}
	if s.Window.Asked <= 0 || s.Window.Usable <= 0 {
		return nil
	}
	most := stat.WindowRate(float64(s.Window.Usable), rtt) * float64(len(c.run.Sockets))
	if share := c.bps / most; share < windowLow || share > windowHigh {
		return nil
	}
	cause, whose := "receive-window", "receive"
	if c.t.Direction == measure.Upload {
		cause, whose = "send-buffer", "send"
	}
	o := binds(cause, measure.Likely, "a %s buffer of %s, which was set (--buffer), carries %s over a round trip of %s",
		whose, unit.Size(s.Window.Usable), unit.Rate(most), unit.Duration(rtt))
	if rtt >= farNs {
		o.confidence = measure.Certain
	}
	o.at(c.here()).by(c.proof("socket buffer, usable", float64(s.Window.Usable), "bytes"), c.proof("tcp_info.min_rtt_us", float64(rtt), "ns"))
	o.costs(most, "W * 8 / RTT", fmt.Sprintf("%s * 8 / %s", unit.Size(s.Window.Usable), unit.Duration(rtt)))
	o.mend(&measure.Remedy{EndPoint: "local", Advice: "leave --buffer out, so that the kernel tunes it, or take the bandwidth-delay product twice"})
	return o
}

// peerWindow holds where the kernel counts that the server's window, or this
// end's send buffer, held an upload up for most of the time.
func (c *course) peerWindow(s *measure.Stream) *bound {
	if c.t.Direction != measure.Upload || s.TCP.BusyUs == nil || *s.TCP.BusyUs == 0 {
		return nil
	}
	busy := float64(*s.TCP.BusyUs)
	for _, x := range []struct {
		us             *uint64
		cause, counter string
		where          measure.Where
		text           string
	}{
		{s.TCP.RwndLimitedUs, "receive-window", "tcp_info.rwnd_limited_us of busy_time_us", c.there(), "the server's receive window holds it up: a socket buffer that is too small there, or a server that reads no faster"},
		{s.TCP.SndbufLimUs, "send-buffer", "tcp_info.sndbuf_limited_us of busy_time_us", c.here(), "the send buffer here holds it up"},
	} {
		if x.us == nil || 100*float64(*x.us)/busy < rwndBar {
			continue
		}
		if x.where.EndPoint == "" && stat.TransferRTT(c.run) < farNs { // no window is too small for so short a way
			x.cause, x.text = "slow-reader", "the server takes the data no faster: its window is used up on a short way"
		}
		o := binds(x.cause, measure.Likely, "%s", x.text)
		o.at(x.where).by(above(c.proof(x.counter, 100*float64(*x.us)/busy, "pct"), rwndBar))
		return o
	}
	return nil
}

// encrypted tells of protocols whose bytes are enciphered by one CPU a stream.
func (c *course) encrypted() bool {
	return slices.Contains([]string{"https", "ftps", "sftp"}, c.t.Protocol)
}

// cipher holds where this process keeps a whole CPU busy for each stream.
func (c *course) cipher() *bound {
	cpu := c.run.HereCPU
	if isBusy(cpu, c.run.HereHost) {
		o := binds(c.here().Place+"-cpu", measure.Likely, "all CPUs here are busy")
		o.at(c.here()).by(above(c.proof("here_cpu.machine_pct", cpu.Pct, "pct"), busyMachine))
		o.mend(&measure.Remedy{EndPoint: "local", Advice: "nothing else beside it, and server and client on hosts of their own"})
		return o
	}
	if cpu == nil || cpu.WorkerCores == nil || *cpu.WorkerCores < busyCores*float64(max(c.t.Asked.Clients, 1)) {
		return nil
	}
	p := above(c.proof("cores used by this process", *cpu.WorkerCores, ""), busyCores)
	if c.encrypted() {
		o := binds(CauseCipher, measure.Likely, "one stream's cipher and protocol take a whole CPU here")
		o.at(c.here()).by(p).then("--many 2: with two at once it carries more")
		o.mend(&measure.Remedy{EndPoint: "local", Advice: "several transfers at once, a cipher that the CPU has instructions for (AES-GCM), or a protocol without one on a trusted path"})
		return o
	}
	o := binds(CauseClient, measure.Likely, "the client takes a whole CPU here")
	if c.run.SHA256 != "" {
		o.text += ", its checksum included (--no-checksum)"
	}
	o.at(c.here()).by(p).then("--many 2: with two at once it carries more")
	return o
}

// roundTrips holds where the protocol has little under way for the round trip,
// and a lower layer is known to carry more.
func (c *course) roundTrips() *bound {
	rtt := stat.TransferRTT(c.run)
	if rtt < farNs {
		return nil
	}
	underWay := c.bps * float64(rtt) / 8e9 / float64(max(len(c.run.Sockets), 1))
	net, known := c.rate(measure.LayerNetwork)
	if known && c.bps >= reachedShare*net {
		return nil
	}
	text := fmt.Sprintf("the protocol has %s under way in a round trip of %s", unit.Size(int64(underWay)), unit.Duration(rtt))
	if b := c.t.Asked.BlockBytes; b > 0 {
		text += fmt.Sprintf(": %.1f blocks of %s", underWay/float64(b), unit.Size(b))
	}
	o := binds(CauseRoundTrip, measure.Possible, "%s", text)
	if known && c.bps < net/2 {
		o.confidence = measure.Likely
	}
	o.at(measure.Where{Place: measure.AtPath}).by(c.proof("goodput * RTT / 8 of each connection", underWay, "bytes"), c.proof("tcp_info.min_rtt_us", float64(rtt), "ns"))
	o.costs(c.bps, "in flight * 8 / RTT", "")
	o.then("--many 4, or a larger --block: where round trips bind, it carries more in proportion")
	if !known {
		o.then("thru serve at the server, and --end-point NAME here: what the network carries from memory to memory is not known")
	}
	return o
}

// open says what is left when nothing was found.
func (c *course) open() *bound {
	net, known := c.rate(measure.LayerNetwork)
	if known {
		o := binds("app-limited", measure.Likely, "the server offers no more: the network carries %s, this end waits", unit.Rate(net))
		o.at(c.there()).by(below(c.proof("goodput of the transfer over the network's", c.bps/net, ""), reachedShare))
		o.then("CPU, disk and limits of the server: thru disk, thru check there")
		return o
	}
	o := binds("app-limited", measure.Possible, "the server or the network: which of them cannot be told from this end")
	o.at(c.there()).by(c.proof("goodput of the transfer", c.bps, "bps"))
	o.then("thru serve at the server, and --end-point NAME here")
	return o
}
