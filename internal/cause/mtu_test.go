package cause

import (
	"testing"

	"thru/internal/cause/diagnose"
	"thru/internal/measure"
)

// searched sets what passes, what each end claims, and whether larger packets are dropped silently.
func searched(bytes, claimed, peer int, silent bool) func(*measure.Document) {
	return func(d *measure.Document) {
		d.Paths[0].Forward.MTU = &measure.PathMTU{Bytes: bytes, Claimed: claimed, Silent: silent, Probes: 60}
		d.Paths[0].Back.MTU = &measure.PathMTU{Bytes: bytes, Claimed: peer, Silent: silent}
	}
}

// stuck is a flow that carries nothing, with segments of that size.
func stuck(mss uint32) func(*measure.Document) {
	return func(d *measure.Document) {
		rate(0)(d)
		t := near(d).Streams[0].TCP
		t.SendMSS, t.Cwnd, t.Backoff, t.TotalRTO, t.Retrans, t.DataSegsOut = &mss, new(uint32(1)), new(uint8(4)), new(uint16(4)), new(uint32(6)), new(uint32(36))
	}
}

// onSegment removes the router from the path.
func onSegment(d *measure.Document) {
	for _, w := range []*measure.DirectionFacts{&d.Paths[0].Forward, &d.Paths[0].Back} {
		w.Hops, w.Route.Gateway = new(0), ""
	}
}

func routerSays(bytes int) func(*measure.Document) {
	return func(d *measure.Document) {
		d.Paths[0].Forward.MTU.Router, d.Paths[0].Forward.MTU.Silent = &bytes, false
	}
}

func udp(bytes int64, lossPct float64) func(*measure.Document) {
	return func(d *measure.Document) {
		c := &d.Cells[0]
		c.Protocol, c.Spec.Protocol = measure.UDP, measure.UDP
		for _, e := range []*measure.Evidence{near(d), far(d)} {
			e.Streams[0].TCP, e.Streams[0].TCPStart = nil, nil
		}
		c.Datagrams = &measure.DatagramFigures{Bytes: bytes, LossPct: lossPct, Sent: 100_000, Received: int64(1000 * (100 - lossPct)), Lost: int64(1000 * lossPct), DelayMeanNs: new(int64(100_000))}
	}
}

func TestMTUBlackHole(t *testing.T) {
	hole := searched(1500, 9000, 9000, true)
	judgeRows(t, "mtu-black-hole", []row{
		{"all passes", "no", "1500 bytes pass", nil},
		{"nothing comes through", "certain", "packets above 1500 bytes are dropped silently", edits{stuck(8948), hole}},
		{"probing found what passes", "certain", "", edits{rate(2e9), hole, func(d *measure.Document) {
			counters(near(d), map[string]uint64{"TcpExt.TCPMTUPSuccess": 5, "TcpExt.TCPTimeouts": 3})
		}}},
		{"the segments are smaller", "certain beside", "", edits{hole}},
		{"larger ones pass all the same", "no", "", edits{hole, func(d *measure.Document) { near(d).Streams[0].TCP.SendMSS = new(uint32(8948)) }}},
		{"a router says so", "no", "a router reports", edits{hole, routerSays(1500)}},
		{"refused, not swallowed", "no", "rejected, not dropped silently", edits{searched(1500, 9000, 9000, false)}},
		{"not searched, nothing comes through", "possible", "", edits{stuck(1448), noPath}},
		{"not searched, small ones pass", "likely", "", edits{stuck(1448), noPath, try(diagnose.SmallSegments, 2e6)}},
		{"not searched, small ones do not", "possible", "", edits{stuck(1448), noPath, try(diagnose.SmallSegments, 0)}},
		{"not searched, well", "no", "", edits{noPath}},
		{"nothing known", "missing", "", edits{noPath, noEvidence}},
		{"datagrams that are too large", "certain", "", edits{hole, udp(8000, 100)}},
		{"datagrams that fit", "certain beside", "", edits{hole, udp(1400, 0)}},
		{"datagrams, not searched", "missing", "", edits{noPath, udp(1400, 100)}},
		{"loopback", "no", "", edits{hole, func(d *measure.Document) { near(d).PeerAddr = "[::1]:5202" }}},
	})
}

func TestJumboMismatch(t *testing.T) {
	both, one := searched(1500, 9000, 9000, true), searched(1504, 9000, 1500, true)
	judgeRows(t, "jumbo-mismatch", []row{
		{"no jumbo", "no", "MTU 1500", nil},
		{"jumbo passes", "no", "9000 bytes pass", edits{searched(9000, 9000, 9000, false)}},
		{"on one segment, nothing comes through", "certain", "both ends but do not pass", edits{stuck(8948), both, onSegment}},
		{"behind a router the hole is first", "certain beside", "", edits{stuck(8948), both}},
		{"a router tells, TCP works", "certain beside", "", edits{both, routerSays(1500)}},
		{"one end only, the MSS keeps TCP small", "certain beside", "set at near but not at far", edits{one, onSegment}},
		{"one end only, datagrams", "certain", "", edits{one, onSegment, udp(4000, 100)}},
		{"not searched", "missing", "", edits{noPath}},
	})
}

// TestRootOfAHole: on one segment the wrong setting is the root of the stall, behind a router the router that
// drops packets silently.
func TestRootOfAHole(t *testing.T) {
	for name, c := range map[string]struct {
		edits edits
		first string
	}{
		"segment": {edits{stuck(8948), searched(1500, 9000, 9000, true), onSegment}, "jumbo-mismatch"},
		"router":  {edits{stuck(8948), searched(1500, 9000, 9000, true)}, "mtu-black-hole"},
	} {
		d := flowDoc(c.edits...)
		Diagnose(d)
		if got := d.Cells[0].Findings[0]; got.Cause != c.first || got.Confidence != measure.Certain {
			t.Errorf("%s: %s %s is first, want %s", name, got.Confidence, got.Cause, c.first)
		}
		for _, x := range d.Cells[0].Findings[1:] {
			if x.Cause == "loss" && x.BecauseOf != c.first {
				t.Errorf("%s: loss is because of %q", name, x.BecauseOf)
			}
		}
	}
}

func TestBrokenTSO(t *testing.T) {
	// broken is a flow at that rate with that percentage of retransmissions.
	broken := func(bps, again float64) func(*measure.Document) {
		return func(d *measure.Document) {
			rate(bps)(d)
			lost(again)(d)
			near(d).Streams[0].TCP.TotalRTO = new(uint16(19))
		}
	}
	asked := func(again float64) func(*measure.Cell) {
		return func(c *measure.Cell) {
			c.Spec.Rate, c.Spec.MSS = 2e6, 536
			c.Runs[0].Flows[0].Sender.Streams[0].TCP.Retrans = new(uint32(again * 10_000))
		}
	}
	clean := try(diagnose.SmallSegments, 2e6, asked(0))
	lossy := func(pct float64) func(*measure.Cell) {
		return func(c *measure.Cell) {
			c.Datagrams = &measure.DatagramFigures{Sent: 10_000, Lost: int64(pct * 100)}
			c.LossPlaces = []measure.LossPlace{{Place: measure.LossPath, Packets: int64(pct * 100)}}
		}
	}
	judgeRows(t, "broken-tso", []row{
		{"well", "no", "9.40 Gb/s pass", nil},
		{"not yet tried, the probe lost nothing", "likely", "segmentation offload", edits{broken(1.6e6, 17)}},
		{"not yet tried, fewer lost", "possible", "", edits{broken(1.6e6, 4)}},
		{"not yet tried, no probe", "possible", "", edits{broken(1.6e6, 17), noPath}},
		{"small segments pass, and far below them", "certain", "never arrive", edits{broken(0.7e6, 17), clean}},
		{"small segments pass", "likely", "", edits{broken(1.6e6, 17), clean}},
		{"small segments and full datagrams pass", "certain", "", edits{broken(1.6e6, 17), clean, try(diagnose.UdpThrice, 4.8e6, lossy(0))}},
		{"a policer", "no", "UDP", edits{broken(1.6e6, 17), clean, try(diagnose.UdpThrice, 3e6, lossy(37))}},
		{"small segments are lost too", "no", "small segments at a low rate are lost too", edits{broken(1.6e6, 17), try(diagnose.SmallSegments, 1.9e6, asked(15))}},
		{"small segments failed", "possible", "", edits{broken(1.6e6, 4), try(diagnose.SmallSegments, 1e4, asked(15), fails)}},
		{"small segments are lost less", "possible", "segmentation offload", edits{broken(1.6e6, 17), try(diagnose.SmallSegments, 1.5e6, asked(4))}},
		{"a slower link", "no", "", edits{broken(1e6, 17), try(diagnose.SmallSegments, 1e6, asked(0))}},
		{"not searched, small segments pass", "likely", "", edits{broken(0.7e6, 17), noPath, clean}},
		{"the path takes less", "no", "at most 1400", edits{broken(1.6e6, 17), searched(1400, 1500, 1500, true)}},
		{"the path takes less than the sender's MTU, and its segments fit", "likely", "segmentation offload", edits{broken(1.6e6, 17), searched(1504, 9000, 1500, true)}},
		{"offload is off", "no", "off at the sender", edits{broken(1.6e6, 17), func(d *measure.Document) { cardOf(d).Offloads["tcp-segmentation-offload"] = false }}},
		{"just fast enough", "no", "", edits{broken(501e6, 17)}},
		{"few sent again", "no", "", edits{broken(1.6e6, 2.9)}},
		{"no timeout", "no", "", edits{rate(1.6e6), lost(17)}},
		{"imported", "missing", "", edits{func(d *measure.Document) { near(d).Streams[0].TCP = nil }}},
	})
}

func TestMSSClamp(t *testing.T) {
	clamp := func(mss int) func(*measure.Document) {
		return func(d *measure.Document) { d.Paths[0].Handshake.SYNACKSeen.MSS = &mss }
	}
	uses := func(mss uint32) func(*measure.Document) {
		return func(d *measure.Document) { near(d).Streams[0].TCP.SendMSS = &mss }
	}
	judgeRows(t, "mss-clamp", []row{
		{"as sent", "no", "1460", nil},
		{"a little smaller", "no", "", edits{clamp(1440)}},
		{"smaller, link full", "certain beside", "1000 bytes of 1460", edits{clamp(1000)}},
		{"headers are what is missing", "certain", "", edits{share100(91), clamp(536)}},
		{"the link is not full", "certain beside", "", edits{share100(60), clamp(536)}},
		{"other direction", "no", "", edits{func(d *measure.Document) { d.Paths[0].Handshake.SYNSeen.MSS = new(1000) }}},
		{"what the path takes", "no", "to what the path passes", edits{clamp(1360), searched(1400, 1500, 1500, true)}},
		{"by the connection", "certain beside", "988 bytes", edits{noPath, uses(988)}},
		{"by a window of two segments", "missing", "", edits{noPath, uses(988), func(d *measure.Document) {
			for i := range near(d).Bins {
				near(d).Bins[i].TCP[0].SendWnd = new(uint32(1976))
			}
		}}},
		{"by the path's MTU", "no", "", edits{noPath, uses(1348), func(d *measure.Document) { near(d).Streams[0].TCP.PMTU = new(uint32(1400)) }}},
		{"by probing", "missing", "", edits{noPath, uses(988), func(d *measure.Document) { counters(near(d), map[string]uint64{"TcpExt.TCPMTUPSuccess": 1}) }}},
		{"asked for", "no", "-M", edits{clamp(1000), func(d *measure.Document) { d.Cells[0].Spec.MSS = 1000 }}},
		{"nothing known", "missing", "", edits{noPath, noEvidence}},
	})
}
