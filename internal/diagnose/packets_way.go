package diagnose

import (
	"fmt"

	"thru/internal/measure"
	"thru/internal/unit"
)

func packetsAsymmetric(f *flow) *outcome {
	if f.onOneMachine() {
		return no("no link lies between the ends")
	}
	if o := f.oneWayOnly(); o != nil {
		return o
	}
	x := f.crossing
	if x == nil {
		return missing("routers on the way there and back", "one capture shows how far packets have come, not how far they go; a second one at the other end would tell")
	}
	there, ok1 := hopsBetween(x.left, x.right, func(c *measure.Connection) measure.Way { return c.Data })
	back, ok2 := hopsBetween(x.right, x.left, func(c *measure.Connection) measure.Way { return c.Acks })
	switch {
	case !ok1 || !ok2:
		return missing("routers on the way there and back", "the time to live of packets does not tell: there are several, or a device sets it anew")
	case there == back:
		return no("routers on the way: %d there, %d back", there, back)
	}
	return likely("the ways there and back differ: %d routers against %d", there, back).beside().
		by(x.right.proof("routers on the way there, by the time to live", float64(there), ""), x.left.proof("routers on the way back, by the time to live", float64(back), "")).
		mend(advise(nil, "look at the routes of both ends and of the routers between (traceroute from each end)"))
}

// oneWayOnly judges a capture between the ends that has one direction only; nil
// where there is none.
func (f *flow) oneWayOnly() *outcome {
	s := f.spot(measure.AtPath, "")
	if s == nil || s.data.Packets < leastSegments || s.acks.Packets > 0 {
		return nil
	}
	return possible("the capture has one direction only: the other takes another way, or the port that copies packets copies one direction").beside().
		by(s.proof("packets of the data", float64(s.data.Packets), "packets", s.main().FirstPacket), s.proof("packets of its acknowledgements", 0, "packets")).
		then("a capture at an end").mend(advise(nil, "look at the routes of both ends, and at what the port that copies packets is set to"))
}

// hopsBetween is by how much the time to live fell from one place to the other;
// false where there are several, or it rose.
func hopsBetween(from, to *spot, way func(*measure.Connection) measure.Way) (int, bool) {
	a, b := way(from.main()).TTLs, way(to.main()).TTLs
	if len(a) != 1 || len(b) != 1 || b[0] > a[0] {
		return 0, false
	}
	return a[0] - b[0], true
}

// missedBar is the share of packets, in percent, that a capture may miss before
// its counts are not to be trusted.
const missedBar = 1

// packetsMissed judges the captures themselves: what one did not get proves
// nothing of the network. It is nil where all are whole.
func packetsMissed(f *flow) *outcome {
	for _, s := range f.spots {
		dropped := 0.0
		if s.Dropped != nil {
			dropped = share(float64(*s.Dropped), float64(*s.Dropped+s.Packets))
		}
		unseen := share(float64(s.data.Unseen.N+s.acks.Unseen.N), float64(s.data.Segments+s.acks.Segments))
		if dropped == 0 && unseen == 0 {
			continue
		}
		o := possible("the capture %s misses packets: what it lacks looks like loss, and is not", s.from()).beside().at(measure.Where{Place: measure.AtTool, EndPoint: s.EndPoint}).
			mend(advise(nil, "capture less of each packet (tcpdump -s 128), only this flow, and with a larger buffer (-B 65536)"))
		if dropped > 0 {
			o.by(above(s.proof("packets that the kernel could not keep", dropped, "pct"), missedBar))
		}
		if unseen > 0 {
			o.by(above(s.proof("acknowledged without having been captured", unseen, "pct", s.data.Unseen.Packets...), missedBar))
		}
		if max(dropped, unseen) > missedBar {
			o.confidence = measure.Likely
			o.text = fmt.Sprintf("the capture %s misses %s of the packets: what it lacks looks like loss, and is not", s.from(), unit.Percent(max(dropped, unseen)))
		}
		return o
	}
	return nil
}
