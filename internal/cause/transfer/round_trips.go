package transfer

import (
	"fmt"

	"thru/internal/cause/diagnose"
	"thru/internal/measure"
	"thru/internal/stat"
	"thru/internal/unit"
)

// RoundTrips is the cause `round-trips`.
func RoundTrips() diagnose.Rule {
	return diagnose.Rule{
		Cause: causeRoundTrips, Title: "the protocol waits for replies",
		Seen:        "sftp, smb and nfs with an RTT of 1 ms or more: the rate is 60 to 130% of the requests in flight x 8 / RTT",
		Distinction: "the network carries more from memory to memory; several transfers at once carry proportionally more; a protocol that streams has no such limit",
		Fix:         "use larger blocks, more of them in flight, several transfers at once, or a protocol that streams",
		Effect:      "64 x 4 KiB over 20 ms: 88 of 191 Mb/s", Source: "C-41, C-42; transfer.md",
	}
}

// roundTrips holds if a request protocol has as many requests in flight as its client issues at once, and the
// round trip determines the rate. A streaming protocol waits for no answer.
func (c *scene) roundTrips() *bound {
	rtt := stat.TransferRTT(c.run)
	if rtt < farNs || c.t.InFlight <= 0 {
		return nil
	}
	most := stat.WindowRate(float64(c.t.InFlight), rtt) * float64(c.connections())
	if share := c.bps / most; share < windowLow || share > windowHigh {
		return nil
	}
	text := fmt.Sprintf("the client has %s of requests in flight, and waits %s for a reply", unit.Size(c.t.InFlight), unit.Duration(rtt))
	if b := c.t.Asked.BlockBytes; b > 0 {
		text = fmt.Sprintf("the client has %s of %s in flight (--block), and waits %s for a reply", unit.Plural(int(c.t.InFlight/b), "request"), unit.Size(b), unit.Duration(rtt))
	}
	o := binds(causeRoundTrips, measure.Likely, "%s", text)
	if net, known := c.rate(measure.LayerNetwork); known && c.bps < net/2 {
		o.Confidence = measure.Certain
		o.Text += fmt.Sprintf("; the network carries %s", unit.Rate(net))
	}
	o.At(measure.Where{Place: measure.AtPath}).By(c.proof("requests in flight", float64(c.t.InFlight), "bytes"), c.proof("tcp_info.min_rtt_ns", float64(rtt), "ns"))
	o.Costs(most, "the requests in flight carry "+unit.Rate(most), fmt.Sprintf("%s * 8 / %s", unit.Size(c.t.InFlight), unit.Duration(rtt)))
	o.Then("run several at once (--many 4): if round trips are the limit, they carry proportionally more")
	o.AddFix(&measure.Fix{EndPoint: "local", Advice: "use larger blocks or more of them at once (--block, if the server accepts it), several transfers at once, or a protocol that streams (http, ftp, rsync)"})
	return o
}
