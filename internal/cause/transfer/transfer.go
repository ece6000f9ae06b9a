// Package transfer holds the causes of file transfers: which layer of one binds, and
// why.
package transfer

import (
	"fmt"
	"slices"
	"strings"

	"thru/internal/cause/diagnose"
	"thru/internal/measure"
	"thru/internal/stat"
	"thru/internal/unit"
)

// Bars of what is said of a transfer.
const (
	reachedShare = 0.85 // of a layer's rate: from there ...
	nearlyMore   = 1.05 // a layer that is exceeded by more carries "about as much"
	beyondShare  = 1.25 // ... to here that layer binds; what carried more did not hang on it
	waitedShare  = 60.0 // percent of the time spent in this end's file: then it binds
	busyCores    = 0.85 // of one CPU, used by this process: one stream fills it
	busyMachine  = 95.0 // percent of all CPUs of this machine
	farNs        = 1e6  // round trip in ns from which waiting for answers costs
	briefNs      = 1e9  // a run shorter than this says little
	windowLow    = 0.6  // of window over round trip: a rate from here ...
	nearLow      = 0.2  // the same on a short way, where a window also waits for the program to wake up
	sentLow      = 0.4  // the same of a send buffer, in which a kernel counts its own overhead
	windowHigh   = 1.3  // ... to here is that of the window, or of the requests under way
)

// course is one transfer with what its rules ask of it.
type course struct {
	doc *measure.Document
	cat *diagnose.Catalogue
	t   *measure.Transfer
	run *measure.TransferRun // over memory, else the whole
	bps float64              // that it reached
}

// Transfer is Transfer by these rules.
func Transfer(d *measure.Document, cat *diagnose.Catalogue) {
	t := d.Transfer
	if t == nil {
		return
	}
	t.Binds, t.Why = "", ""
	c := newCourse(d)
	if c == nil {
		return
	}
	c.cat = cat
	layer, o := c.judge()
	if o == nil {
		return
	}
	f := measure.Finding{
		Cause: o.cause, Where: o.Where, Confidence: o.Confidence, Summary: diagnose.Line(o.Text), Evidence: diagnose.Numbers(o.Evidence),
		Effect: o.Effect, Next: o.Next, Remedy: o.Remedy, Healthy: o.Healthy, Source: "causes.md; docs/transfer.md",
	}
	f.Next = strings.Replace(f.Next, "--link-rate", "thru test --link-rate", 1) // which no transfer has
	if c.brief(layer) && f.Confidence != measure.Possible {
		f.Confidence, f.Next = measure.Possible, larger(t)+": this run took under a second"
	}
	t.Binds, t.Why = layer, f.Summary
	d.Findings = append([]measure.Finding{f}, c.beside(layer, f.Cause)...)
}

// brief tells whether the run that shows the layer was too short to be sure.
func (c *course) brief(layer string) bool {
	run := c.run
	if w := c.wholeRun(); w != nil && (layer == measure.LayerDiskHere || layer == measure.LayerWhole) {
		run = w
	}
	return run.ElapsedNs < briefNs
}

// beside are the findings of the network's own test that are said of the transfer
// too: those of a network that it does not fill stand with that test alone.
func (c *course) beside(layer, cause string) []measure.Finding {
	cell := c.networkCell()
	if layer != measure.LayerNetwork || cell == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(cell.Findings), func(x measure.Finding) bool { return x.Cause == measure.CauseNone || x.Cause == cause })
}

// larger is how more is moved: a file that is there has the size that it has.
func larger(t *measure.Transfer) string {
	if t.Asked.From == "generated" {
		return "a larger --size"
	}
	return "a larger file, or generated data"
}

// bound is what a rule of transfers says.
type bound struct {
	cause string
	diagnose.Outcome
}

func binds(cause, confidence, format string, args ...any) *bound {
	return &bound{cause, *diagnose.Held(confidence, format, args...)}
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
	if _, _, refuted := MemoryRefuted(t); refuted {
		c.run = c.wholeRun()
		c.bps = c.run.Bps.Value
	}
	return c
}

// MemoryRefuted tells whether a transfer carried clearly less over memory than over
// the disk, in bit/s: what lies on a layer carries no more than that, so the layer
// was measured wrong, and binds nothing.
func MemoryRefuted(t *measure.Transfer) (memory, whole float64, refuted bool) {
	for i := range t.Runs {
		switch r := &t.Runs[i]; {
		case r.Bps == nil || r.Error != nil:
		case r.Layer == measure.LayerMemory:
			memory = r.Bps.Value
		case r.Layer == measure.LayerWhole:
			whole = r.Bps.Value
		}
	}
	return memory, whole, memory > 0 && Exceeds(whole, memory)
}

// Exceeds tells whether a rate is clearly more than another.
func Exceeds(bps, than float64) bool { return bps > nearlyMore*than }

// below are the layers that a transfer over memory lies on.
func below() []string {
	return []string{measure.LayerDiskFar, measure.LayerNetwork, measure.LayerLibrary}
}

// Outdone tells whether a layer is one below a transfer that carried clearly more: so it
// holds nothing.
func Outdone(t *measure.Transfer, layer string) bool {
	c := newCourse(&measure.Document{Transfer: t})
	if c == nil || !slices.Contains(below(), layer) {
		return false
	}
	most, known := c.rate(layer)
	return known && c.bps > beyondShare*most
}

// FillsBelow tells whether a rate is what a layer below the protocol carries.
func FillsBelow(t *measure.Transfer, bps float64) bool {
	c := course{t: t}
	return slices.ContainsFunc(below(), func(layer string) bool {
		most, known := c.rate(layer)
		return known && fills(bps, most)
	})
}

// fills tells whether a rate is about that of a layer. One that exceeds it does not hang on it.
func fills(bps, most float64) bool { return bps >= reachedShare*most && bps <= beyondShare*most }

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
	if layer, o := c.diskHere(); o != nil {
		return layer, o
	}
	if layer, o := c.floor(); o != nil {
		return layer, o
	}
	for _, rule := range []func() *bound{c.buffer, c.sureTCP, c.cipher, c.tcp, c.peerWindow, c.roundTrips, c.open} {
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
	return proofOf(c.run, counter, value, unitName)
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

// clients are how many work at once; every layer is the sum of as many.
func (c *course) clients() int { return max(c.t.Asked.Clients, 1) }

// floor holds where the protocol carries what a layer below it does: the least of
// those that it reaches. A layer that it exceeds it does not hang on: the file of a
// slow disk comes out of memory.
func (c *course) floor() (string, *bound) {
	least, name := 0.0, ""
	for _, l := range below() {
		bps, ok := c.rate(l)
		if l == measure.LayerLibrary && isBusy(c.run.HereCPU) {
			continue // busy CPUs held it alone as well: they are the cause
		}
		if ok && fills(c.bps, bps) && (name == "" || bps < least) {
			least, name = bps, l
		}
	}
	if name == "" {
		return "", nil
	}
	p := diagnose.Above(c.proof("share of the rate of the layer below", c.bps/least, ""), reachedShare)
	switch name {
	case measure.LayerDiskFar:
		o := binds(CauseDisk, measure.Likely, "the server's disk carries %s", unit.Rate(least))
		o.At(c.farEnd()).By(p).Mend(&measure.Remedy{EndPoint: c.server(), Advice: "none in the network: a faster disk at the server"})
		if o.Then("thru disk at the server, with other block sizes"); c.t.Direction == measure.Download {
			o.Then("the same again: what the server's memory has kept meanwhile passes faster")
		}
		return name, o
	case measure.LayerLibrary:
		o := binds(CauseClient, measure.Likely, "the client (%s) carries what it does on this machine alone, %s", c.t.Client, unit.Rate(least))
		o.At(measure.Where{Place: measure.AtTool}).By(p).Then("move several at once (--many 4)")
		return name, o
	}
	return name, c.network(least, p)
}

// networkCell is the test of the network; nil where there was none.
func (c *course) networkCell() *measure.Cell {
	if len(c.t.Cells) == 0 || c.t.Cells[0] < 0 || c.t.Cells[0] >= len(c.doc.Cells) {
		return nil
	}
	return &c.doc.Cells[c.t.Cells[0]]
}

// network says what holds the network itself, where its own test knows.
func (c *course) network(bps float64, p measure.Proof) *bound {
	o := binds(CauseNetwork, measure.Certain, "the network carries %s from memory to memory", unit.Rate(bps))
	if Exceeds(c.bps, bps) {
		o.Text = fmt.Sprintf("the network carries about as much, %s from memory to memory when it was tested", unit.Rate(bps))
	}
	o.At(measure.Where{Place: measure.AtPath}).By(p)
	cell := c.networkCell()
	if cell == nil {
		return o
	}
	if streams := max(cell.Streams, 1); streams < c.clients() { // more of them might carry more
		o.Confidence = measure.Likely
		o.Text += fmt.Sprintf(" by %s", unit.Plural(streams, "stream"))
	}
	if len(cell.Findings) == 0 || cell.Findings[0].Cause == measure.CauseNone || cell.Findings[0].Confidence == measure.Possible {
		return o // what is off there, and costs nothing, comes after "none"
	}
	f := &cell.Findings[0]
	if diagnose.Weight(f.Confidence) < diagnose.Weight(o.Confidence) {
		o.Confidence = f.Confidence
	}
	o.cause, o.Healthy, o.Remedy, o.Where, o.Next = f.Cause, f.Healthy, f.Remedy, f.Where, f.Next
	o.Text += ": " + f.Summary
	o.By(f.Evidence...)
	return o
}

// connections are those that carry data at once: a client may make one after the other.
func (c *course) connections() int { return max(min(len(c.run.Sockets), c.clients()), 1) }

// socket is the connection that carried the most; nil where none was read.
func (c *course) socket() *measure.Stream {
	if len(c.run.Sockets) == 0 || c.run.Sockets[0].TCP == nil {
		return nil
	}
	return &c.run.Sockets[0]
}

// buffer holds where a buffer that was set here, over the round trip, is the rate.
func (c *course) buffer() *bound {
	s, rtt := c.socket(), stat.TransferRTT(c.run)
	if s == nil || rtt <= 0 || s.Window.Asked <= 0 || s.Window.Usable <= 0 {
		return nil
	}
	passes := c.inRoundTrip(rtt)
	cause, whose, least, most := "receive-window", "receive", windowLow, windowHigh
	window, counter := s.Window.Usable, "socket buffer, usable"
	switch {
	case c.t.Direction == measure.Upload:
		if c.congestionHolds(s, passes) {
			return nil
		}
		cause, whose, least, most = "send-buffer", "send", sentLow, 1/sentLow
		window, counter = s.Window.Usable+s.Window.Granted/2, "socket buffer, usable and as granted, mean"
	case s.TCP.RecvWnd != nil && int64(*s.TCP.RecvWnd) > 0: // what the kernel makes of the buffer is its own
		window, counter = int64(*s.TCP.RecvWnd), "tcp_info.rcv_wnd"
	}
	if rtt < farNs && c.halfOfNetwork() {
		least = nearLow
	}
	if share := passes / float64(window); share < least || share > most {
		return nil
	}
	o := binds(cause, measure.Likely, "a %s buffer of %s was set (--buffer): %s pass in each round trip of %s",
		whose, unit.Size(s.Window.Asked), unit.Size(int64(passes)), unit.Duration(rtt))
	if rtt >= farNs {
		o.Confidence = measure.Certain
	}
	o.At(c.here()).By(c.proof(counter, float64(window), "bytes"), c.proof("in a round trip, by goodput", passes, "bytes"), c.proof("tcp_info.min_rtt_ns", float64(rtt), "ns"))
	o.Costs(c.bps, "what fits in it carries "+unit.Rate(c.bps), fmt.Sprintf("%s * 8 / %s", unit.Size(int64(passes)), unit.Duration(rtt)))
	o.Mend(&measure.Remedy{EndPoint: "local", Advice: "leave --buffer out, so that the kernel tunes it, or take twice the bandwidth-delay product"})
	return o
}

// halfOfNetwork tells whether memory to memory, with the kernel's own buffers, the
// network carries more than twice as much.
func (c *course) halfOfNetwork() bool {
	net, known := c.rate(measure.LayerNetwork)
	return known && c.bps < net/2
}

// inRoundTrip is what a connection carries in a round trip, in bytes.
func (c *course) inRoundTrip(rtt int64) float64 {
	return c.bps * float64(rtt) / 8e9 / float64(c.connections())
}

// congestionHolds tells whether the congestion window of an upload, or the
// server's window, lets no more pass: then it is not the send buffer.
func (c *course) congestionHolds(s *measure.Stream, passes float64) bool {
	if n, mss := s.TCP.Cwnd, s.TCP.SendMSS; n != nil && mss != nil && float64(*n)*float64(*mss) < 1.2*passes {
		return true
	}
	pct, known := s.Delta(measure.WindowLimited).Pct(s.Delta(measure.BusyTime))
	return known && pct >= diagnose.RwndBar
}

// peerWindow holds where the kernel counts that the server's window, or this
// end's send buffer, held an upload up for most of the time.
func (c *course) peerWindow() *bound {
	s := c.socket()
	if s == nil || c.t.Direction != measure.Upload {
		return nil
	}
	for _, x := range []struct {
		limited        measure.Counter
		cause, counter string
		where          measure.Where
		text           string
	}{
		{measure.WindowLimited, "receive-window", "tcp_info.rwnd_limited_us of busy_time_us", c.there(), "the server's receive window holds it up: a socket buffer that is too small there, or a server that reads no faster"},
		{measure.BufferLimited, "send-buffer", "tcp_info.sndbuf_limited_us of busy_time_us", c.here(), "the send buffer here holds it up"},
	} {
		pct, known := s.Delta(x.limited).Pct(s.Delta(measure.BusyTime))
		if !known || pct < diagnose.RwndBar {
			continue
		}
		if x.where.EndPoint == "" && stat.TransferRTT(c.run) < farNs { // no window is too small for so short a way
			x.cause, x.text = "slow-reader", "the server takes the data no faster: its window is used up on a short way"
		}
		o := binds(x.cause, measure.Likely, "%s", x.text)
		o.At(x.where).By(diagnose.Above(c.proof(x.counter, pct, "pct"), diagnose.RwndBar))
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
	if isBusy(cpu) {
		return c.busyHere(c.run)
	}
	if cpu == nil || cpu.WorkerCores == nil || *cpu.WorkerCores < busyCores*float64(c.clients()) {
		return nil
	}
	p := diagnose.Above(c.proof("cores used by this process", *cpu.WorkerCores, ""), busyCores)
	if c.encrypted() {
		o := binds(CauseCipher, measure.Likely, "one stream's cipher and protocol take a whole CPU here")
		o.At(c.here()).By(p).Then("move two at once (--many 2): they carry more")
		o.Mend(&measure.Remedy{EndPoint: "local", Advice: "several transfers at once, a cipher that the CPU has instructions for (AES-GCM), or a protocol without one on a trusted path"})
		return o
	}
	o := binds(CauseClient, measure.Likely, "the client takes a whole CPU here")
	o.At(c.here()).By(p).Then("move two at once (--many 2): they carry more")
	return o
}

// roundTrips holds where a protocol of requests has as many under way as its
// client asks for at once, and the round trip is the rate. One that streams waits
// for no answer.
func (c *course) roundTrips() *bound {
	rtt := stat.TransferRTT(c.run)
	if rtt < farNs || c.t.InFlight <= 0 {
		return nil
	}
	most := stat.WindowRate(float64(c.t.InFlight), rtt) * float64(c.connections())
	if share := c.bps / most; share < windowLow || share > windowHigh {
		return nil
	}
	text := fmt.Sprintf("the client has %s of requests under way, and waits %s for an answer", unit.Size(c.t.InFlight), unit.Duration(rtt))
	if b := c.t.Asked.BlockBytes; b > 0 {
		text = fmt.Sprintf("the client has %s of %s under way (--block), and waits %s for an answer", unit.Plural(int(c.t.InFlight/b), "request"), unit.Size(b), unit.Duration(rtt))
	}
	o := binds(CauseRoundTrip, measure.Likely, "%s", text)
	if net, known := c.rate(measure.LayerNetwork); known && c.bps < net/2 {
		o.Confidence = measure.Certain
		o.Text += fmt.Sprintf("; the network carries %s", unit.Rate(net))
	}
	o.At(measure.Where{Place: measure.AtPath}).By(c.proof("requests in flight", float64(c.t.InFlight), "bytes"), c.proof("tcp_info.min_rtt_ns", float64(rtt), "ns"))
	o.Costs(most, "what is under way carries "+unit.Rate(most), fmt.Sprintf("%s * 8 / %s", unit.Size(c.t.InFlight), unit.Duration(rtt)))
	o.Then("move several at once (--many 4): where round trips bind, they carry more in proportion")
	o.Mend(&measure.Remedy{EndPoint: "local", Advice: "larger blocks or more of them at once (--block, and what the server takes), several transfers at once, or a protocol that streams (http, ftp, rsync)"})
	return o
}

// open says what is left when nothing was found.
func (c *course) open() *bound {
	net, known := c.rate(measure.LayerNetwork)
	if !known || c.bps > beyondShare*net {
		o := binds("app-limited", measure.Possible, "the server or the network: which of them cannot be told from this end%s", c.underWay())
		o.At(c.there()).By(c.proof("goodput of the transfer", c.bps, "bps"))
		if o.Then("run thru serve at the server, and say --end-point NAME here"); known {
			o.Text = "nothing that was measured holds it: it carries more than the network did from memory to memory"
			o.Then("transfer once more: the path or the hosts were busier while the network was measured")
		}
		return o
	}
	o := binds("app-limited", measure.Likely, "the server %s no more: the network carries %s, this end waits%s", c.serverDoes(), unit.Rate(net), c.underWay())
	o.At(c.farEnd()).By(diagnose.Below(c.proof("share of the network's rate", c.bps/net, ""), reachedShare))
	o.Then("look at CPU, disk and limits of the server: thru disk and thru check there")
	return o
}

func (c *course) serverDoes() string {
	if c.t.Direction == measure.Upload {
		return "takes"
	}
	return "offers"
}

// underWay says what is on the way of a long path, which a small buffer at the
// server holds as well as a slow one does.
func (c *course) underWay() string {
	rtt := stat.TransferRTT(c.run)
	if rtt < farNs {
		return ""
	}
	return fmt.Sprintf(" (%s pass in a round trip of %s: a socket buffer of that size there does the same)", unit.Size(int64(c.inRoundTrip(rtt))), unit.Duration(rtt))
}
