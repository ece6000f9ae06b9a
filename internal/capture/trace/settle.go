package trace

import (
	"slices"

	"thru/internal/capture/frame"
	"thru/internal/measure"
)

// settle decides for the bytes between two positions which of the packets
// that sent them arrived, and as which packet.
func (p *passage) settle(sent, came []int32, begin, end int64) {
	n := int32(end - begin)
	switch {
	case len(sent) == 0: // the first capture lacks them
		for _, i := range came {
			p.lacking(&p.came[i], begin)
		}
	case len(came) == 0 && end <= p.acked:
		for _, i := range sent {
			p.fates[i].missed += n
		}
	case len(sent) == len(came) && p.agree(sent, came):
		for k, i := range sent {
			p.arrive(i, came[k], n, p.isSole(i, came[k], sent))
		}
	default:
		p.pair(sent, came, begin, n)
	}
}

// agree reports whether the packets may be equal in this order.
func (p *passage) agree(sent, came []int32) bool {
	for k, i := range sent {
		if p.differ(&p.sent[i], &p.came[came[k]]) {
			return false
		}
	}
	return true
}

// differ reports whether the time stamps prove that the packets differ.
func (p *passage) differ(sent, came *transit) bool {
	return p.hasStamps(sent, came) && sent.tsval != came.tsval
}

func (p *passage) hasStamps(sent, came *transit) bool {
	return p.c.stamps && sent.bits&came.bits&hasStamp != 0
}

// isSole reports whether a packet that arrived can only be this one of those
// that left.
func (p *passage) isSole(i, j int32, sent []int32) bool {
	one, came := &p.sent[i], &p.came[j]
	if len(sent) == 1 {
		return p.hasStamps(one, came) || isCopy(one, came) || came.time < p.until // a copy may have left later
	}
	alike := 0
	for _, k := range sent {
		if isCopy(&p.sent[k], came) || p.hasStamps(&p.sent[k], came) && p.sent[k].tsval == came.tsval {
			alike++
		}
	}
	return alike == 1 && (isCopy(one, came) || p.hasStamps(one, came))
}

// pair matches packets that arrived with those of the same bytes that left,
// of which there are more, or fewer. They are in the order of the captures.
func (p *passage) pair(sent, came []int32, begin int64, n int32) {
	var used [mostCopies]bool
	for _, j := range came {
		best, most, others := -1, 0, 0
		for k, i := range sent {
			if rank := p.rank(&p.sent[i], &p.came[j]); !used[k] && rank > 0 && rank >= most {
				best, most = k, rank
			}
			if p.differ(&p.sent[i], &p.came[j]) {
				others++
			}
		}
		switch {
		case best >= 0:
			used[best] = true
			p.arrive(sent[best], j, n, most >= sureRank || p.isSole(sent[best], j, sent))
		case others == len(sent):
			p.lacking(&p.came[j], begin)
		case slices.ContainsFunc(sent, func(i int32) bool { return isCopy(&p.sent[i], &p.came[j]) }):
			p.twice[j] = true
		}
	}
}

// sureRank is the rank of packets that are certainly the same.
const sureRank = 4

// rank returns how certain it is that the packets are the same: 0 is
// impossible. Copies of one segment differ by their time stamps (RFC 7323)
// and by the IP ID; of copies that do not differ, the latest that can have
// arrived counts.
func (p *passage) rank(sent, came *transit) int {
	rank := 0
	if came.time-sent.time >= p.x.clock.bound/2 {
		rank = 1
	}
	if p.hasStamps(sent, came) {
		if sent.tsval != came.tsval {
			return 0
		}
		rank += 2
	}
	if isCopy(sent, came) {
		rank += 4
	}
	return rank
}

// isCopy compares the IP IDs, which offload changes: so only for packets of
// equal size.
func isCopy(a, b *transit) bool {
	return a.id != 0 && a.id == b.id && a.payload == b.payload && a.seq == b.seq
}

// arrive notes that bytes of one packet arrived as part of another.
func (p *passage) arrive(sent, came, n int32, sole bool) {
	f := &p.fates[sent]
	f.arrived += n
	if f.as < 0 {
		f.as, f.isSole = came, sole
	}
	if sole && p.origins[came] < 0 {
		p.origins[came] = sent
	}
}

// lacking counts, once, a packet that arrived and that the first capture
// should hold. A packet that arrived soon after that capture began may have
// left before.
func (p *passage) lacking(came *transit, begin int64) {
	if begin == came.begin && came.time-p.roundTrip() > p.begins(p.from) && came.time < p.until {
		p.x.unseen[p.from]++
	}
}

// bare matches the packets without payload by their numbers.
func (p *passage) bare() {
	sent, came := p.bySight(p.from, p.sent), p.bySight(p.to, p.came)
	for s, list := range sent {
		switch there := came[s]; {
		case len(list) == 1 && len(there) == 1:
			p.arrive(list[0], there[0], 0, true)
		case len(list) == len(there):
			for k, i := range list {
				p.arrive(i, there[k], 0, false)
			}
		default:
			p.pairInOrder(list, there) // there can be many duplicate acknowledgements
		}
	}
}

// pairInOrder matches copies that differ only by their order and time.
func (p *passage) pairInOrder(sent, came []int32) {
	for _, i := range sent {
		for len(came) > 0 && p.came[came[0]].time < p.sent[i].time {
			came = came[1:] // it arrived before this one left, and before all later ones
		}
		for k, j := range came[:min(len(came), mostCopies)] {
			if p.rank(&p.sent[i], &p.came[j]) > 0 {
				p.arrive(i, j, 0, false)
				came = came[k+1:]
				break
			}
		}
	}
}

func (p *passage) bySight(side int, all []transit) map[sight][]int32 {
	out := map[sight][]int32{}
	for i := range all {
		if all[i].payload == 0 {
			s := p.c.sight(side, all[i].record, p.c.stamps)
			s.kind |= all[i].flags & frame.FIN << 7
			out[s] = append(out[s], int32(i))
		}
	}
	return out
}

// count fills in the result: packets that left while both captures ran, and
// that arrived at any time.
func (p *passage) count() {
	r := &p.result
	var delays []int64
	for i := range p.sent {
		if f := &p.fates[i]; f.as >= 0 && f.isSole {
			delays = append(delays, max(p.x.clock.tick, p.came[f.as].time-p.sent[i].time)) // a smaller delay is within the error
		}
	}
	late := p.usual(delays)
	begins, ends := p.begins(p.to), p.ends(p.to)
	lacks := p.lacks()
	for i := range p.sent {
		s, f := &p.sent[i], &p.fates[i]
		whole := f.as >= 0 && f.arrived+f.missed >= s.payload
		if !whole && (s.time < begins || s.time+late > ends) {
			continue // it arrived before the other capture began, or after its end
		}
		if f.missed > 0 {
			p.x.unseen[p.to]++
		}
		if s.payload == 0 && f.as < 0 && lacks {
			continue // nothing acknowledges it: it may have arrived
		}
		p.classify(s, f)
		if f.as >= 0 {
			p.compareFields(s, &p.came[f.as])
			r.MaxArrived = max(r.MaxArrived, p.single(s), p.single(&p.came[f.as]))
		}
	}
	for i := range p.came {
		if p.twice[int32(i)] {
			r.Doubled.Seen(p.came[i].number, int(p.came[i].payload))
		}
	}
	if p.x.clock.known {
		r.Delay = spread(delays)
	}
}

// lacks reports whether the arriving capture misses packets that passed it:
// data that the other one has, or that was acknowledged.
func (p *passage) lacks() bool {
	to := p.c.conns[p.to]
	return p.x.unseen[p.to] > 0 || to.Data.Unseen.N > 0 || to.Acks.Unseen.N > 0 ||
		slices.ContainsFunc(p.fates, func(f fate) bool { return f.missed > 0 })
}

// single returns the size of a packet that is no super-packet, else 0.
func (p *passage) single(s *transit) int {
	if int(s.size) > p.full {
		return 0
	}
	return int(s.size)
}

// classify counts a packet that left, by its size.
func (p *passage) classify(s *transit, f *fate) {
	r := &p.result
	lost := s.payload - f.arrived - f.missed
	none := lost > 0 && f.arrived+f.missed == 0 || s.payload == 0 && f.as < 0
	r.Sent += int64(s.payload)
	r.Arrived += int64(s.payload - lost)
	if lost > 0 || none {
		r.Lost.Seen(s.number, int(lost))
	}
	seen := func(sent, gone *measure.Count) {
		sent.Seen(s.number, int(s.payload))
		if none {
			gone.Seen(s.number, int(lost))
		}
	}
	const options = 4 // bytes by which padding may shorten a full segment
	switch size := int(s.size); {
	case size > p.full:
		seen(&r.SuperSent, &r.SuperLost)
		return
	case size > p.full-options:
		seen(&r.FullSent, &r.FullLost)
	case size <= p.full/2:
		seen(&r.SmallSent, &r.SmallLost)
	}
	seen(&r.SingleSent, &r.SingleLost)
}

// order counts the reordered packets: those that arrived after one that had
// left after them (RFC 4737), or after a later part of the same super-packet.
// It leaves out packets that match none that left.
func (p *passage) order() {
	if p.x.unseen[p.from] > 0 && !p.c.stamps {
		return // a copy that the first capture lacks would be taken for the original
	}
	last, high := int32(-1), int64(0) // of the arrived ones: the one that left last, and its latest part
	for j := range p.came {
		i, c := p.origins[j], &p.came[j]
		switch {
		case i < 0:
		case i < last || i == last && c.begin < high:
			p.result.Late.Seen(c.number, int(c.payload))
		default:
			last, high = i, c.begin
		}
	}
}

// usual returns a delay that few packets exceed: a packet that left closer to
// the end of the other capture may still be in flight.
func (p *passage) usual(delays []int64) int64 {
	const least = 1_000_000 // ns
	d := spread(delays)
	if d == nil {
		return p.roundTrip()
	}
	return max(2*d.P99, least)
}

// begins returns when the capture of a side begins, by the left clock.
func (p *passage) begins(side int) int64 {
	return p.leftTime(side, p.x.sides[side].Records.first)
}

// ends returns when the capture of a side ends. A side that receives nothing
// is silent: where the other one runs on for long and receives nothing that
// passed the silent one, the silent capture did not end.
func (p *passage) ends(side int) int64 {
	rec, other := p.x.sides[side].Records, p.x.sides[1-side].Records
	if rec.full {
		return p.leftTime(side, rec.until)
	}
	const long = 1_000_000_000 // ns
	end, further := p.leftTime(side, rec.last), p.leftTime(1-side, other.last)
	trip := p.roundTrip()
	if further-end < max(long, 3*trip) || p.heardFrom(side)-trip > end {
		return end
	}
	return further - trip
}

// heardFrom returns when the other side last captured a packet that had to
// pass a side.
func (p *passage) heardFrom(side int) int64 {
	other, last := 1-side, int64(-1<<63)
	comes := 1 // direction that passes side first: the data where it leaves there
	if (side == p.x.left) != p.c.against {
		comes = 0
	}
	for _, chunk := range p.c.records[other].chunks {
		for i := range chunk {
			if p.c.back(other, &chunk[i]) == comes {
				last = max(last, chunk[i].at)
			}
		}
	}
	return p.leftTime(other, last)
}

// roundTrip returns the round-trip time between the ends, as well as it is
// known.
func (p *passage) roundTrip() int64 {
	for _, c := range p.c.conns {
		if c.RTT != nil {
			return c.RTT.P99
		}
		if c.OpenNs != nil {
			return *c.OpenNs
		}
	}
	return 2 * p.x.clock.bound
}

// leftTime converts a time of a side to the left clock.
func (p *passage) leftTime(side int, ns int64) int64 {
	if side == p.x.left {
		return ns
	}
	return p.x.clock.atLeft(ns)
}

// spread returns the distribution of delays; nil without any.
func spread(delays []int64) *measure.Delay {
	if len(delays) == 0 {
		return nil
	}
	slices.Sort(delays)
	at := func(pct int) int64 { return delays[(len(delays)-1)*pct/100] }
	return &measure.Delay{Min: delays[0], P50: at(50), P90: at(90), P99: at(99), Max: at(100), Samples: int64(len(delays))}
}
