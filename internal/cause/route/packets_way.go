package route

import (
	"fmt"

	"thru/internal/cause/diagnose"
	"thru/internal/measure"
	"thru/internal/unit"
)

func packetsAsymmetric(f *diagnose.Flow) *diagnose.Outcome {
	if f.OnOneMachine() {
		return diagnose.No("no link lies between the ends")
	}
	if o := oneWayOnly(f); o != nil {
		return o
	}
	x := f.Crossing
	if x == nil {
		return diagnose.Missing("routers on the way there and back", "one capture shows how far packets have come, not how far they go; a second one at the other end would tell")
	}
	there, ok1 := diagnose.HopsBetween(x.Left, x.Right, func(c *measure.Connection) measure.Way { return c.Data })
	back, ok2 := diagnose.HopsBetween(x.Right, x.Left, func(c *measure.Connection) measure.Way { return c.Acks })
	switch {
	case !ok1 || !ok2:
		return diagnose.Missing("routers on the way there and back", "the time to live of packets does not tell: there are several, or a device sets it anew")
	case there == back:
		return diagnose.No("routers on the way: %d there, %d back", there, back)
	}
	return diagnose.Likely("the ways there and back differ: %d routers against %d", there, back).Beside().
		By(x.Right.Proof("routers on the way there, by the time to live", float64(there), ""), x.Left.Proof("routers on the way back, by the time to live", float64(back), "")).
		Mend(diagnose.Advise(nil, "look at the routes of both ends and of the routers between (traceroute from each end)"))
}

// oneWayOnly judges a capture between the ends that has one direction only; nil
// where there is none.
func oneWayOnly(f *diagnose.Flow) *diagnose.Outcome {
	s := f.Spot(measure.AtPath, "")
	if s == nil || s.Data.Packets < diagnose.LeastSegments || s.Acks.Packets > 0 {
		return nil
	}
	return diagnose.Possible("the capture has one direction only: the other takes another way, or the port that copies packets copies one direction").Beside().
		By(s.Proof("packets of the data", float64(s.Data.Packets), "packets", s.Main().FirstPacket), s.Proof("packets of its acknowledgements", 0, "packets")).
		Then("a capture at an end").Mend(diagnose.Advise(nil, "look at the routes of both ends, and at what the port that copies packets is set to"))
}

// missedBar is the share of packets, in percent, that a capture may miss before
// its counts are not to be trusted.
const missedBar = 1

// PacketsMissed judges the captures themselves: what one did not get proves
// nothing of the network. It is nil where all are whole.
func PacketsMissed(f *diagnose.Flow) *diagnose.Outcome {
	for _, s := range f.Spots {
		dropped := 0.0
		if s.Dropped != nil {
			dropped = diagnose.Share(float64(*s.Dropped), float64(*s.Dropped+s.Packets))
		}
		unseen := diagnose.Share(float64(s.Data.Unseen.N+s.Acks.Unseen.N), float64(s.Data.Segments+s.Acks.Segments))
		if dropped == 0 && unseen == 0 {
			continue
		}
		o := diagnose.Possible("the capture %s misses packets: what it lacks looks like loss, and is not", s.From()).Beside().At(measure.Where{Place: measure.AtTool, EndPoint: s.EndPoint}).
			Mend(diagnose.Advise(nil, "capture less of each packet (tcpdump -s 128), only this flow, and with a larger buffer (-B 65536)"))
		if dropped > 0 {
			o.By(diagnose.Above(s.Proof("packets that the kernel could not keep", dropped, "pct"), missedBar))
		}
		if unseen > 0 {
			o.By(diagnose.Above(s.Proof("acknowledged without having been captured", unseen, "pct", s.Data.Unseen.Packets...), missedBar))
		}
		if max(dropped, unseen) > missedBar {
			o.Confidence = measure.Likely
			o.Text = fmt.Sprintf("the capture %s misses %s of the packets: what it lacks looks like loss, and is not", s.From(), unit.Percent(max(dropped, unseen)))
		}
		return o
	}
	return nil
}
