package stat

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"thru/internal/measure"
	"thru/internal/unit"
)

// drops is one counter's report of lost datagrams.
type drops struct {
	place    string
	endPoint string
	counter  string  // its name, and its limitations
	fix      string  // what to do against it
	n        int64   // what it counted
	each     float64 // datagrams that one count may stand for: many are handled as one with UDP_SEGMENT and UDP_GRO
	exact    bool    // it counts this test's datagrams only
}

// attribute divides lost datagrams among the places that counted drops, never more than were lost. Counters of the
// test's own sockets come first, since they count nothing else; then those of the hosts, in the order in which a
// datagram passes them. The remainder goes to the counters whose counts stand for several datagrams, and then to
// the path.
func attribute(lost int64, counters []drops) []measure.LossPlace {
	if lost <= 0 {
		return nil
	}
	counters = slices.Clone(counters)
	slices.SortStableFunc(counters, func(a, b drops) int { return unit.Bit(b.exact) - unit.Bit(a.exact) })
	took := make([]int64, len(counters))
	left := lost
	take := func(i int, most float64) {
		n := left
		if most < float64(left) {
			n = int64(max(most, 0))
		}
		took[i] += n
		left -= n
	}
	for i, c := range counters {
		take(i, float64(c.n))
	}
	for i, c := range counters {
		if c.each > 1 {
			take(i, float64(c.n)*(c.each*slack-1))
		}
	}
	var places []measure.LossPlace
	for i, c := range counters {
		if took[i] > 0 {
			p := measure.LossPlace{Place: c.place, EndPoint: c.endPoint, Packets: took[i], Counter: c.counter, Fix: c.fix}
			if took[i] > c.n {
				p.Estimate = true
				p.Counter += fmt.Sprintf(", of which each stands for about %.0f datagrams that travelled as one", float64(took[i])/float64(c.n))
			}
			places = append(places, p)
		}
	}
	if left > 0 {
		places = append(places, measure.LossPlace{Place: measure.LossPath, Packets: left, Counter: "the rest", Fix: pathFix})
	}
	return places
}

// slack is how much larger than the mean the batches that find no room are.
const slack = 1.12

const pathFix = "lower the sending rate (-b), or check the drop counters of the switches and hypervisors between the ends and of the receiver's own firewall; `thru test -u --search` finds the rate that passes"

// lossPlaces fills where datagrams were lost in the measured time: the hosts' counters cover no more of a run.
func (s *summary) lossPlaces() {
	var all []measure.LossPlace
	measured := false
	for _, p := range s.runs {
		lost, known := lostInTime(p)
		if !known {
			continue
		}
		measured = true
		if lost > 0 && isReported(p.receiver) && !p.isWatched() {
			s.missing("loss_places", "no counter of drops was read at either end")
			continue
		}
		places := p.beyond(attribute(lost, s.dropsOf(p, lost)))
		all = mergePlaces(all, places)
		s.unseen(p, places)
	}
	slices.SortStableFunc(all, func(a, b measure.LossPlace) int { return cmp.Compare(b.Packets, a.Packets) })
	s.cell.LossPlaces = all
	if d := s.cell.Datagrams; d != nil && d.Lost > 0 && len(all) == 0 && measured && !s.lacks("loss_places") {
		s.missing("loss_places", "none was lost in the measured time, which the counters of the hosts cover")
	}
}

// unseenPct is the share of a loss that may be after the last received datagram, where no gap in the sequence
// shows it.
const unseenPct = 10

// lostInTime returns how many datagrams were lost in a run's measured time: the gaps in the sequence that the
// receiver saw. If a path stops carrying data there are no gaps; then it is what the sender sent in its measured
// time and the receiver did not get in its own, which began at a slightly different time.
func lostInTime(p pair) (n int64, known bool) {
	span, sent := countOf(p.receiver, inTime), countOf(p.sender, inTime)
	if !span.known {
		return 0, false
	}
	if isReported(p.receiver) || !countOf(p.receiver, inLife).known { // the end of its time is not ours: what was sent later is no loss
		return span.Lost, true
	}
	life := sub(countOf(p.sender, inLife).Packets, countOf(p.receiver, inLife).Packets)
	behind := sub(life, countOf(p.receiver, inLife).Lost)
	if sent.known && float64(behind) > float64(life)*unseenPct/100 {
		return max(span.Lost, min(life, sub(sent.Packets, span.Packets))), true
	}
	return span.Lost, true
}

// mergePlaces adds the places of one run to those of the runs before.
func mergePlaces(all, more []measure.LossPlace) []measure.LossPlace {
	for _, p := range more {
		i := slices.IndexFunc(all, func(q measure.LossPlace) bool { return q.Place == p.Place && q.EndPoint == p.EndPoint })
		if i < 0 {
			all = append(all, p)
		} else {
			addTo(&all[i].Packets, p.Packets)
			all[i].Estimate = all[i].Estimate || p.Estimate
		}
	}
	return all
}

// dropsOf lists the counters of a run in the order in which datagrams pass them. The kernel counts some drops at
// two places, and each is taken once: a datagram that the sender's queue or interface refuses is a SndbufError too
// (net/ipv4/udp.c, udp_send_skb), one that the receiver's backlog refuses is a drop of its interface
// (net/core/dev.c, enqueue_to_backlog), and over veth one of the sender's interface as well.
func (s *summary) dropsOf(p pair, lost int64) []drops {
	batch := s.batch(p.sender)
	backlog := backlogDrops(p.receiver)
	face := sub(faceDrops(p.sender, sent), virtualOnly(s.isVirtual(p.sender), backlog))
	queue := qdiscDrops(p.sender)
	ring := ringDrops(p.receiver)
	var all []drops
	add := func(d drops, e *measure.Evidence) {
		if d.n > 0 {
			d.endPoint, d.each = e.EndPoint, max(d.each, 1)
			all = append(all, d)
		}
	}
	add(senderSocket(p.sender, queue+faceDrops(p.sender, sent)), p.sender)
	add(drops{place: measure.LossQdisc, n: queue, each: batch, counter: "drops of the queueing discipline" + qdiscName(p.sender) + hostWide,
		fix: "lower the sending rate (-b), or raise the limit of the sender's queue: `tc -s qdisc` shows it"}, p.sender)
	add(drops{place: measure.LossSendNIC, n: face, each: batch, counter: "tx_dropped and tx_errors" + faceName(p.sender) + hostWide,
		fix: "lower the sending rate (-b), or check the sender's driver counters (ethtool -S) and its ring (ethtool -g)"}, p.sender)
	add(drops{place: measure.LossRing, n: ring, counter: "rx_missed, rx_fifo and rx_over errors" + faceName(p.receiver) + hostWide,
		fix: "raise the receiver's ring: ethtool -g shows its size, ethtool -G sets it; or spread its interrupts over more CPUs"}, p.receiver)
	add(drops{place: measure.LossRecvNIC, n: sub(sub(faceDrops(p.receiver, received), ring), backlog), counter: "rx_dropped and rx_errors" + faceName(p.receiver) + hostWide,
		fix: "check the receiver's driver counters: ethtool -S, ip -s -s link"}, p.receiver)
	add(drops{place: measure.LossBacklog, n: backlog, each: s.batch(p.receiver), counter: "dropped in softnet_stat, for all traffic of this host",
		fix: "raise the receiver's net.core.netdev_max_backlog, or spread its packets over more CPUs (RPS)"}, p.receiver)
	add(drops{place: measure.LossFragment, n: s.notJoined(p, lost), counter: "Ip.ReasmFails, although the fragments arrived" + hostWide,
		fix: "send datagrams that fit the MTU (-l), or raise the receiver's net.ipv4.ipfrag_high_thresh"}, p.receiver)
	add(receiverSocket(p.receiver, s.batch(p.receiver)), p.receiver)
	return all
}

// notJoined returns how many datagrams the receiver failed to reassemble although all fragments had arrived. A
// datagram with a fragment lost on the path is a ReasmFail too; there are no more of those than missing fragments
// (Ip.ReasmReqds counts the received ones).
func (s *summary) notJoined(p pair, lost int64) int64 {
	sent := countOf(p.sender, inTime)
	pieces := Fragments(Link{MTU: s.pathMTU(), IPv6: s.isIPv6()}, s.payload())
	if !sent.known || pieces < 2 || sent.Packets > math.MaxInt64/int64(pieces) {
		return 0
	}
	astray := sub(sent.Packets*int64(pieces), protoSum(p.receiver, "Ip.ReasmReqds", "Ip6.ReasmReqds"))
	return min(protoSum(p.receiver, "Ip.ReasmFails", "Ip6.ReasmFails"), sub(lost, astray))
}

// hostWide is added to a counter that is not only the test's.
const hostWide = " (may include other programs)"

// senderSocket returns what the sender's socket refused. The host's counter includes what queue and interface
// dropped later.
func senderSocket(e *measure.Evidence, behind int64) drops {
	d := drops{place: measure.LossSender, fix: "raise the sender's socket buffer (-w), or lower the sending rate (-b)"}
	if t := countOf(e, inTime); t.SendErrors > 0 {
		d.n, d.exact, d.counter = t.SendErrors, true, "sends that the test's own sockets refused (ENOBUFS)"
		return d
	}
	d.n = sub(protoSum(e, "Udp.SndbufErrors", "Udp6.SndbufErrors"), behind)
	d.counter = "Udp.SndbufErrors" + hostWide
	return d
}

// receiverSocket returns what found no room in the receiver's socket buffers.
func receiverSocket(e *measure.Evidence, each float64) drops {
	d := drops{place: measure.LossSocket, each: each,
		fix: "raise the receiver's buffer: thru test -u -w 8M (sysctl net.core.rmem_max on the receiver), or lower the sending rate (-b)"}
	if n, known := socketDrops(e); known {
		// The socket also counts datagrams with a wrong checksum, which are the path's.
		n = sub(n, protoSum(e, "Udp.InCsumErrors", "Udp6.InCsumErrors"))
		d.n, d.exact, d.counter = n, true, "drops of the test's own sockets (SO_MEMINFO)"
		return d
	}
	d.n = protoSum(e, "Udp.RcvbufErrors", "Udp6.RcvbufErrors", "Udp.MemErrors", "Udp6.MemErrors")
	d.counter = "Udp.RcvbufErrors" + hostWide
	return d
}

// socketDrops returns the drops of all sockets; not known if one does not report them.
func socketDrops(e *measure.Evidence) (n int64, known bool) {
	known = len(streams(e)) > 0
	for _, x := range streams(e) {
		if x.Datagrams == nil || x.Datagrams.SocketDrops == nil {
			return 0, false
		}
		addTo(&n, *x.Datagrams.SocketDrops)
	}
	return n, known
}

// mostTogether is how many datagrams the kernel sends or delivers as one (UDP_MAX_SEGMENTS, include/linux/udp.h).
const mostTogether = 128

// batch returns how many datagrams an end moved as one, if it does that at all: the mean of its calls, at most
// what fits a packet of 64 KB.
func (s *summary) batch(e *measure.Evidence) float64 {
	if e == nil || e.IO != measure.IOGSO || s.payload() == 0 {
		return 1
	}
	var calls int64
	for _, x := range e.Streams {
		addTo(&calls, x.Calls)
	}
	fits := min(float64(measure.MaxDatagram/s.payload()), mostTogether)
	return max(1, min(fits, valueOr(Known(ratio(float64(countOf(e, inTime).Packets), float64(calls))), 1)))
}

// isVirtual reports whether the interface is lo or a veth, which have no ring and count what their peer drops.
func (s *summary) isVirtual(e *measure.Evidence) bool {
	if e == nil || e.Route == nil {
		return false
	}
	face := s.ends[e.EndPoint].Interface(e.Route.Interface)
	return isLoopback(e) || face != nil && face.Driver != nil && *face.Driver == "veth"
}

func virtualOnly(virtual bool, n int64) int64 {
	if virtual {
		return n
	}
	return 0
}

// sub returns a minus b, at least zero.
func sub(a, b int64) int64 { return max(0, a-b) }
