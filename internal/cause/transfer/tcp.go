package transfer

import (
	"slices"

	"thru/internal/cause/diagnose"
	"thru/internal/measure"
	"thru/internal/stat"
)

// sureTCP holds if TCP certainly limits the data connections, however busy the CPUs are.
func (c *scene) sureTCP() *bound {
	if o := c.limitedByTCP(); o != nil && o.Confidence == measure.Certain {
		return o
	}
	return nil
}

// tcp holds if the server has no free CPU, TCP limits the data connections, or they have nothing to carry.
func (c *scene) tcp() *bound {
	if o := c.farCPU(); o != nil {
		return o
	}
	if o := c.limitedByTCP(); o != nil {
		return o
	}
	return c.starved()
}

// limitedByTCP holds if TCP limits the data connections: by both kernels' counters of them, and the rules of any
// flow.
func (c *scene) limitedByTCP() *bound {
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
		if j.Outcome.NotBinding {
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

// ofConnections returns the causes that the counters of a connection and of the host show by themselves. They
// exclude what a program does with the connection: app-limited would hold for every protocol that waits for
// answers; and pacing shows in the network's own test.
func ofConnections() []string {
	return []string{"cpu-quota", "mtu-black-hole", "broken-tso", "window-scaling-off", "receive-window", "slow-reader", "policer", "reordering", "loss", "shaper", "sack-off"}
}

// isDisproved reports whether the network's own test did not meet a cause of the path: it carried more from memory
// to memory.
func (c *scene) isDisproved(cause string) bool {
	net, known := c.rate(measure.LayerNetwork)
	return known && c.bps < reachedShare*net && slices.Contains([]string{"shaper", "policer", "mtu-black-hole", "broken-tso"}, cause)
}

// isOff reports whether a cause rests on one figure only. On a path so short that no window is too small, the
// kernel tunes the window well enough; and data that waits briefly for a busy CPU leaves the window open.
func (c *scene) isOff(cause string, f *diagnose.Flow) bool {
	switch base, known := f.BaseRTT(); cause {
	case "receive-window":
		return known && base < farNs && c.t.Asked.BufferBytes == 0
	case "slow-reader":
		held, _, reported := f.WindowLimited()
		behind, seen := f.UnreadShare()
		return reported && seen && held < diagnose.RwndClear && behind <= diagnose.UnreadBar
	}
	return false
}

// isSure excludes what is merely possible, which the other rules of a transfer decide better; except for loss,
// which was counted.
func (c *scene) isSure(cause string, o *diagnose.Outcome) bool {
	return o.Confidence != measure.Possible || cause == "loss"
}

// dataFlow returns the run as a flow: its data connections as both kernels have them. nil if nothing is known of
// the sending end.
func (c *scene) dataFlow() *diagnose.Flow {
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

// evidence returns what one end saw of the run. Its seconds are those that this end counts.
func (c *scene) evidence(name string, streams []measure.Stream, span *measure.HostSpan) *measure.Evidence {
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
