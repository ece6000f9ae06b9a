package transfer

import (
	"fmt"
	"slices"

	"thru/internal/cause/control"
	"thru/internal/cause/diagnose"
	"thru/internal/measure"
	"thru/internal/stat"
	"thru/internal/unit"
)

// starved holds if the server's program has nothing to send most of the time although there is room for it. A
// program that sends one requested block at a time waits for requests.
func (c *scene) starved() *bound {
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
	o := binds("app-limited", measure.Likely, "the server offers no more data: its socket had room, and nothing to send %s of the time", unit.Percent(idle))
	if idle > surelyStarved {
		o.Confidence = measure.Certain
	}
	o.At(c.farEnd()).By(diagnose.Above(c.farProof("readings without data to send and without a full window", idle, "pct"), starvedBar),
		diagnose.UnderBar(c.farProof("readings with a full send buffer", full, "pct"), diagnose.BlockedBar))
	o.Then("check CPU, disk and limits of the server: `thru disk` and `thru check` there")
	return o
}

// Thresholds of a server without data to send, in percent of the readings.
const (
	starvedBar    = 50
	surelyStarved = 90
)

// open names the remaining possibilities if nothing was found.
func (c *scene) open() *bound {
	net, known := c.rate(measure.LayerNetwork)
	if !known || c.bps > beyondShare*net {
		o := binds("app-limited", measure.Possible, "the server or the network limits it; this end cannot see which%s", c.inFlight())
		o.At(c.there()).By(c.proof("goodput of the transfer", c.bps, "bps"))
		if o.Then("run `thru serve` at the server, and add --end-point NAME here"); known {
			o.Text = "no measured layer limits it: it carries more than the network did from memory to memory"
			o.Then("repeat the transfer: the path or the hosts were busier while the network was measured")
		}
		return o
	}
	o := binds("app-limited", measure.Likely, "the server %s no more data: the network carries %s, this end waits%s", c.serverDoes(), unit.Rate(net), c.inFlight())
	o.At(c.farEnd()).By(diagnose.UnderBar(c.proof("share of the network's rate", c.bps/net, ""), reachedShare))
	o.Then("check CPU, disk and limits of the server: `thru disk` and `thru check` there")
	return o
}

func (c *scene) serverDoes() string {
	if c.t.Direction == measure.Upload {
		return "takes"
	}
	return "offers"
}

// inFlight describes the data in flight on a long path, which a small buffer at the server limits as well as a
// slow server does.
func (c *scene) inFlight() string {
	rtt := stat.TransferRTT(c.run)
	if rtt < farNs {
		return ""
	}
	return fmt.Sprintf(" (%s pass in each round trip of %s: a socket buffer of that size at the server has the same effect)", unit.Size(int64(c.inRoundTrip(rtt))), unit.Duration(rtt))
}
