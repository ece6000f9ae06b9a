package transfer

import (
	"fmt"
	"slices"
	"strings"

	"thru/internal/cause/control"
	"thru/internal/cause/diagnose"
	"thru/internal/measure"
	"thru/internal/stat"
	"thru/internal/unit"
)

// sureTCP holds where TCP holds the data connections up for certain, however busy
// the CPUs are.
func (c *course) sureTCP() *bound {
	if o := c.heldByTCP(); o != nil && o.Confidence == measure.Certain {
		return o
	}
	return nil
}

// tcp holds where the server has no CPU left, TCP holds the data connections up,
// or they have nothing to carry.
func (c *course) tcp() *bound {
	if o := c.farCPU(); o != nil {
		return o
	}
	if o := c.heldByTCP(); o != nil {
		return o
	}
	return c.starved()
}

// starved holds where the server's program has nothing to send most of the time,
// though there is room for it. One that is asked for each block waits for that.
func (c *course) starved() *bound {
	f := c.dataFlow()
	streams := slices.Contains([]string{"http", "https", "ftp", "ftps", "rsync", "thru"}, c.t.Protocol)
	if f == nil || c.t.Direction == measure.Upload || !streams {
		return nil
	}
	idle, known := control.IdlePct(f.Sender)
	full, counted := bufferFull(f.Sender)
	if !known || !counted || idle < starvedBar || full >= diagnose.BlockedBar {
		return nil
	}
	o := binds("app-limited", measure.Likely, "the server offers no more: its socket had room, and nothing to send %s of the time", unit.Percent(idle))
	if idle > surelyStarved {
		o.Confidence = measure.Certain
	}
	o.At(c.farEnd()).By(diagnose.Above(c.farProof("readings in which nothing waits and no window is full", idle, "pct"), starvedBar),
		diagnose.Below(c.farProof("readings in which the send buffer was used up", full, "pct"), diagnose.BlockedBar))
	o.Then("CPU, disk and limits of the server: thru disk, thru check there")
	return o
}

// Bars of a server that has nothing to send, in percent of the readings.
const (
	starvedBar    = 50
	surelyStarved = 90
)

// heldByTCP holds where TCP holds the data connections up: by what both
// kernels have of them, and the rules of any flow.
func (c *course) heldByTCP() *bound {
	f := c.dataFlow()
	if f == nil {
		return nil
	}
	held := c.sendRoom(f)
	for n, r := range c.cat.Causes {
		if !slices.Contains(ofConnections(), r.Cause) || c.isDisproved(r.Cause) || c.isOff(r.Cause, f) {
			continue
		}
		if o := r.Apply(f); o != nil && o.State == diagnose.Holds && c.isSure(r.Cause, o) {
			held = append(held, diagnose.Judged{Rule: r, Place: n, Outcome: o})
		}
	}
	for _, j := range diagnose.InOrder(held) {
		if j.Outcome.Aside {
			continue
		}
		if o := j.Outcome; o.Where.Place == "" {
			o.At(measure.Where{Place: measure.AtPath})
		}
		j.Outcome.Where.From, j.Outcome.Where.To = f.Cell.From, f.Cell.To
		return &bound{j.Rule.Cause, *j.Outcome}
	}
	return nil
}

// ofConnections are the causes that the counters of a connection and of the host
// tell by themselves. What a program does with it is no matter of these: app-limited would be said of
// every protocol that waits for answers; and what paces shows in the network's own test.
func ofConnections() []string {
	return []string{"cpu-quota", "mtu-black-hole", "broken-tso", "window-scaling-off", "receive-window", "slow-reader", "policer", "reordering", "loss", "shaper", "sack-off"}
}

// isDisproved tells of causes of the path that the network's own test did not
// meet: memory to memory it carried more.
func (c *course) isDisproved(cause string) bool {
	net, known := c.rate(measure.LayerNetwork)
	return known && c.bps < reachedShare*net && slices.Contains([]string{"shaper", "policer", "mtu-black-hole", "broken-tso"}, cause)
}

// isOff tells of causes that one figure alone speaks for. On a way so short that no
// window is too small the kernel tunes it well enough; and data that waits a moment
// for a busy CPU leaves the window open.
func (c *course) isOff(cause string, f *diagnose.Flow) bool {
	switch base, known := f.BaseRTT(); cause {
	case "receive-window":
		return known && base < farNs && c.t.Asked.BufferBytes == 0
	case "slow-reader":
		held, _, told := f.WindowHeld()
		behind, seen := f.UnreadShare()
		return told && seen && held < diagnose.RwndClear && behind <= diagnose.UnreadBar
	}
	return false
}

// isSure leaves out what is merely possible, where the other rules of a transfer
// know better; but for loss, which was counted.
func (c *course) isSure(cause string, o *diagnose.Outcome) bool {
	return o.Confidence != measure.Possible || cause == "loss"
}

// dataFlow is the run as a flow: its data connections as both kernels have them.
// Nil where nothing is known of the end that sends.
func (c *course) dataFlow() *diagnose.Flow {
	here, there := c.evidence("local", c.run.Sockets, c.run.HereHost), c.evidence(c.server(), c.run.There, c.run.ThereHost)
	sender, receiver := there, here
	if c.t.Direction == measure.Upload {
		sender, receiver = here, there
	}
	sender.Sends = true
	if len(sender.Streams) == 0 {
		return nil
	}
	cell := measure.Cell{
		From: sender.EndPoint, To: receiver.EndPoint, Protocol: measure.TCP, Streams: len(sender.Streams), Goodput: c.run.Bps,
		Spec: measure.Spec{Traffic: measure.Bulk, Protocol: measure.TCP, Streams: len(sender.Streams)}, Steady: new(stat.Steady(c.run.Seconds)),
	}
	cell.Runs = []measure.Run{{Goodput: &c.bps, Flows: []measure.Flow{{From: cell.From, To: cell.To, Sender: sender, Receiver: receiver}}}}
	for _, i := range c.t.Cells {
		if i >= 0 && i < len(c.doc.Cells) && c.doc.Cells[i].Ceiling != nil {
			ceiling := *c.doc.Cells[i].Ceiling
			ceiling.SharePct = 100 * c.bps / ceiling.Bps
			cell.Ceiling = &ceiling
		}
	}
	doc := &measure.Document{EndPoints: c.doc.EndPoints, Paths: c.doc.Paths, Gates: c.doc.Gates, Cells: []measure.Cell{cell}}
	return diagnose.NewFlow(c.cat, doc, &doc.Cells[0])
}

// evidence is what one end saw of the run. Its seconds are those that this end
// counts.
func (c *course) evidence(name string, streams []measure.Stream, span *measure.HostSpan) *measure.Evidence {
	e := &measure.Evidence{
		EndPoint: name, MeasuredNs: c.run.ElapsedNs, Bytes: c.run.Bytes, TotalBytes: c.run.Bytes, Streams: streams, Host: span,
	}
	if len(streams) > 0 {
		e.LocalAddr, e.PeerAddr = streams[0].Local, streams[0].Peer
	}
	if span != nil && span.NIC != nil {
		e.Route = &measure.Route{Interface: span.NIC.Name}
	}
	for i, bps := range c.run.Seconds {
		e.Bins = append(e.Bins, measure.StreamBin{At: int64(i) * 1e9, Span: 1e9, Bytes: int64(bps / 8)})
	}
	return e
}

// server is the name of the agent at the server; empty without one.
func (c *course) server() string {
	for _, e := range c.doc.EndPoints {
		if e.Name != "local" {
			return e.Name
		}
	}
	return ""
}

// farEnd is the place of what is found at the server.
func (c *course) farEnd() measure.Where {
	w := c.there()
	w.EndPoint = c.server()
	return w
}

func (c *course) farProof(counter string, value float64, unitName string) measure.Proof {
	p := c.proof(counter, value, unitName)
	p.EndPoint = c.server()
	return p
}

// farCPU holds where the CPUs of the server are busy, or its processes keep one
// busy for each client that they have.
func (c *course) farCPU() *bound {
	cpu := c.run.ThereCPU
	if cpu == nil {
		return nil
	}
	if isBusy(cpu) {
		o := binds(c.there().Place+"-cpu", measure.Likely, "all CPUs of the server are busy")
		o.At(c.farEnd()).By(diagnose.Above(c.farProof("there_cpu.machine_pct", cpu.Pct, "pct"), busyMachine))
		o.Mend(&measure.Remedy{EndPoint: c.server(), Advice: "nothing else beside it, or more CPUs at the server"})
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
		o := binds(CauseCipher, measure.Likely, "one stream's cipher and protocol take a whole CPU there (%s)", program)
		o.At(c.farEnd()).By(p).Then("move two at once (--many 2): they carry more where the server takes a process or thread for each")
		o.Mend(&measure.Remedy{EndPoint: c.server(), Advice: "several transfers at once, a cipher that the CPU has instructions for (AES-GCM), or a protocol without one on a trusted path"})
		return o
	}
	o := binds(c.there().Place+"-cpu", measure.Likely, "%s takes a whole CPU", program)
	o.At(c.farEnd()).By(p).Then("move two at once (--many 2): they carry more where the server takes a process or thread for each")
	return o
}

// sendRoom holds where the send buffer is used up though nothing else holds the
// sender: no rule of threads can tell it of a program that is not thru.
func (c *course) sendRoom(f *diagnose.Flow) []diagnose.Judged {
	full, known := bufferFull(f.Sender)
	flight, ok1 := f.InFlight()
	waits, ok2 := f.NotSent()
	cwnd, ok3 := f.Cwnd()
	rwnd, _, _ := f.WindowHeld()
	loaded, base, ok4 := f.RTT()
	buffer := f.SendBuffer()
	switch {
	case !known || !ok1 || !ok2 || !ok3 || !ok4 || full < diagnose.BlockedBar || base < farNs:
		return nil
	case waits > flight/4 && waits > 2*f.MSS(), flight > 0.85*cwnd, rwnd > diagnose.RwndBar, f.Lengthens(flight):
		return nil
	}
	bound := f.BoundOf(flight)
	o := diagnose.Likely("%s send buffer (SO_SNDBUF %s) is too small for a round trip of %s", c.senders(), unit.Size(int64(buffer)), unit.Duration(int64(loaded)))
	o.At(f.Sender.Where()).By(diagnose.Above(f.Sender.Proof("readings in which the send buffer was used up", full, "pct"), diagnose.BlockedBar),
		f.Sender.Proof("in flight, mean", flight, "bytes"), f.Sender.Proof("SO_SNDBUF as granted", buffer, "bytes"), f.Sender.Proof("congestion window, mean", cwnd, "bytes")).
		Costs(bound, "what fits in it carries "+unit.Rate(bound), fmt.Sprintf("%s under way * 8 / %s", unit.Size(int64(flight)), unit.Duration(int64(loaded)))).
		Mend(f.RaiseWindow(f.Sender, base))
	if f.FitOf(flight) <= diagnose.SendFitBar && full > 80 && loaded < diagnose.FitsBar*base {
		o.Confidence = measure.Certain
	}
	return []diagnose.Judged{{Rule: diagnose.Rule{Cause: "send-buffer"}, Outcome: o}}
}

// senders is the end that sends, in the words of a sentence.
func (c *course) senders() string {
	if c.t.Direction == measure.Upload {
		return "this end's"
	}
	return "the server's"
}

// bufferFull is the share of readings in which the send buffer was used up, in percent.
func bufferFull(e *diagnose.End) (float64, bool) {
	var all []float64
	for _, s := range e.Streams() {
		if s.Course != nil && s.Course.BufferFull != nil {
			all = append(all, *s.Course.BufferFull)
		}
	}
	if len(all) == 0 {
		return 0, false
	}
	return stat.Mean(all), true
}
