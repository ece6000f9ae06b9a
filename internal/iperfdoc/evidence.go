package iperfdoc

import (
	"math"
	"strings"

	"thru/internal/measure"
	"thru/internal/unit"
)

// flow returns one direction with the document's figures of both ends; an end without figures is nil.
func (r *reading) flow(sends bool) measure.Flow {
	spec := r.spec(sends)
	here, there := r.near(sends), r.other(sends)
	f := measure.Flow{From: spec.From, To: spec.To, Sender: here, Receiver: there}
	if !sends {
		f.Sender, f.Receiver = there, here
	}
	return f
}

// other returns the document's figures of the far end: its own document where the client requested it, else the figures that it reported at the end.
func (r *reading) other(sends bool) *measure.Evidence {
	if theirs := r.root.get("server_output_json"); theirs.kind == kindObject && !r.server {
		x := reading{found: found{root: theirs}, start: theirs.get("start"), end: theirs.get("end"), far: nearName}
		if err := x.look(); err == nil && len(x.rows(!sends)) > 0 {
			e := x.near(!sends)
			e.EndPoint = r.far
			return e
		}
	}
	if r.isPartial() || (r.server || sends && r.protocol != measure.UDP) && !r.knowsFar(sends) {
		return nil
	}
	e := r.evidence(!sends, r.rows(sends), false)
	e.EndPoint, e.Dialled = r.far, r.server
	e.LocalAddr, e.PeerAddr = e.PeerAddr, e.LocalAddr
	for i := range e.Streams {
		s := &e.Streams[i]
		s.Local, s.Peer = s.Peer, s.Local
	}
	r.wholeLife(e)
	if cpu := r.end.get("cpu_utilization_percent"); !r.server {
		e.Worker = process(cpu, "remote", e.MeasuredNs)
	}
	if text := r.root.get("server_output_text").str(); text != "" {
		e.Output = text
	}
	e.Missing = append(e.Missing, measure.NotChecked{Fact: "streams.tcp", Why: unreported})
	return e
}

// knowsFar reports whether the document has figures of the far end. A server usually prints zeros for its client, because the results go the other way. A
// client prints zeros where it received none, even if TCP had acknowledged all data.
func (r *reading) knowsFar(sends bool) bool {
	key := "sum_sent"
	if sends {
		key = "sum_received"
	}
	return r.sum(key, sends).get("bytes").count() > 0
}

// near returns the figures of the end that wrote the document.
func (r *reading) near(sends bool) *measure.Evidence {
	rows := r.rows(sends)
	e := r.evidence(sends, rows, true)
	e.EndPoint, e.Dialled = nearName, !r.server
	e.Bins = merged(r.bins(sends, rows))
	if e.MeasuredNs == 0 {
		reckoned(e)
	}
	r.complete(e, rows)
	r.wholeLife(e)
	e.Worker = process(r.end.get("cpu_utilization_percent"), "host", e.MeasuredNs)
	return e
}

// reckoned computes the figures of a test without an end from its seconds.
func reckoned(e *measure.Evidence) {
	var all measure.Datagrams
	e.Bytes = 0
	for _, b := range e.Bins {
		e.MeasuredNs, e.Bytes = e.MeasuredNs+b.Span, e.Bytes+b.Bytes
		for i := range e.Streams {
			e.Streams[i].Bytes += b.Streams[i]
		}
		if b.Datagrams != nil {
			all.Packets, all.Lost, all.JitterNs = all.Packets+b.Datagrams.Packets, all.Lost+b.Datagrams.Lost, b.Datagrams.JitterNs
		}
	}
	if len(e.Streams) == 1 && all.Packets+all.Lost > 0 { // with several streams it is not known which of them had what
		e.Streams[0].Datagrams = &all
	}
}

// omits reports whether iperf3 omitted the start (-O): then it reports nothing about the whole life of the connections.
func (r *reading) omits() bool { return duration(r.test.get("omit")) > 0 }

// wholeLife sets the figures of the whole life where the measured time covers it.
func (r *reading) wholeLife(e *measure.Evidence) {
	if r.omits() {
		return
	}
	e.TotalBytes = e.Bytes
	for i := range e.Streams {
		s := &e.Streams[i]
		s.TotalBytes, s.DatagramsAll = s.Bytes, s.Datagrams
	}
}

// rows returns the streams of one direction.
func (r *reading) rows(sends bool) []stream {
	return unit.Filtered(r.streams, func(s stream) bool { return s.sends == sends })
}

// evidence returns the figures in `end` of one end, the sender or the receiver. here is set where that end wrote the document.
func (r *reading) evidence(sends bool, rows []stream, here bool) *measure.Evidence {
	dataOut := sends == here // the direction, seen from here
	e := &measure.Evidence{Reported: r.program, Sends: sends, RampNs: duration(r.test.get("omit")), Streams: []measure.Stream{}, Bins: []measure.StreamBin{},
		Missing: []measure.NotChecked{{Fact: "host", Why: unreported}, {Fact: "streams.tcp.bytes_sent", Why: unreported}, {Fact: "streams.mss", Why: unreported}}}
	key, side := "sum_received", "receiver"
	if sends {
		key, side = "sum_sent", "sender"
	}
	sum := r.sum(key, dataOut)
	for i, row := range rows {
		s := measure.Stream{Index: i, Local: row.local, Peer: row.peer, Length: r.test.get("blksize").count(), Congestion: r.end.get(side + "_tcp_congestion").str()}
		if r.protocol == measure.UDP {
			r.udp(&s, sends, r.ends[row.socket].get("udp"), sum)
		} else {
			r.tcp(&s, sends, r.ends[row.socket].get(side))
		}
		s.Window = r.buffer(sends)
		e.Bytes += s.Bytes
		e.Streams = append(e.Streams, s)
	}
	if len(rows) > 0 {
		e.LocalAddr, e.PeerAddr = rows[0].local, rows[0].peer
	}
	if n, ok := sum.get("bytes").integer(); ok && sum.kind == kindObject {
		e.Bytes = n
		if len(rows) == 1 {
			e.Streams[0].Bytes = n
		}
	}
	if e.MeasuredNs = duration(sum.get("seconds")); e.MeasuredNs == 0 && len(rows) > 0 { // 3.6 and older have no such sums for UDP
		row := r.ends[rows[0].socket]
		e.MeasuredNs = max(duration(row.get(side).get("seconds")), duration(row.get("udp").get("seconds")))
	}
	return e
}

// sum returns a sum of the main direction, or of the other one. Early versions with two-way traffic print both under the same name.
func (r *reading) sum(key string, dataOut bool) node {
	if !r.bothDirections {
		return r.end.get(key)
	}
	flagged := r.end.nth(key, 0)
	if r.protocol == measure.UDP {
		flagged = r.end.nth("sum", 0) // for datagrams only this one says which direction it is
	}
	main := r.sends == dataOut
	if f := flagged.get("sender"); f.kind == kindBool {
		main = f.isTrue() == dataOut
	}
	if main {
		return r.end.nth(key, 0)
	}
	if back := r.end.get(key + "_bidir_reverse"); back.kind == kindObject {
		return back
	}
	return r.end.nth(key, 1)
}

// tcp fills in the figures in `end` of a TCP stream. The kernel's counters start with the measured time.
func (r *reading) tcp(s *measure.Stream, sends bool, row node) {
	s.Bytes = row.get("bytes").count()
	if n, ok := row.get("retransmits").integer(); ok && sends && n <= math.MaxUint32 {
		s.TCP = &measure.TCPInfo{Retrans: new(uint32(n))}
		s.TCPStart = s.TCP.AtBirth()
	}
}

// udp fills in the figures in `end` of a UDP stream: the datagrams sent, and of these the lost ones. It computes the receiver's bytes from these, unless a sum
// has them.
func (r *reading) udp(s *measure.Stream, sends bool, row, sum node) {
	packets, known := row.get("packets").integer()
	if !known {
		return
	}
	lost := min(row.get("lost_packets").count(), packets)
	d := &measure.Datagrams{Packets: packets}
	s.Bytes = row.get("bytes").count()
	if !sends {
		d.Packets, d.Lost, d.Reordered = packets-lost, lost, row.get("out_of_order").count()
		if n, ok := sum.get("bytes").integer(); ok && n == 0 { // no datagram arrived, and so no gap was seen
			d.Packets, d.Lost = 0, packets
		}
		if ms, ok := row.get("jitter_ms").number(); ok && ms < 1e9 {
			d.JitterNs = new(int64(ms * 1e6))
		}
		s.Bytes = int64(float64(d.Packets) * float64(min(r.test.get("blksize").count(), measure.MaxDatagram)))
	}
	s.Datagrams = d
}

// buffer returns the socket buffer of an end. That of TCP is autotuned unless the user set it; the far end's is not known.
func (r *reading) buffer(sends bool) measure.Buffer {
	asked := r.start.get("sock_bufsize").count()
	b := measure.Buffer{Asked: asked, Set: asked}
	if asked == 0 && r.protocol != measure.UDP {
		return measure.Buffer{}
	}
	return b
}

// complete fills in what only the end that wrote the document knows: the size of its buffers, and its kernel's last figures of the connections.
func (r *reading) complete(e *measure.Evidence, rows []stream) {
	key := "rcvbuf_actual"
	if e.Sends {
		key = "sndbuf_actual"
	}
	for i := range e.Streams {
		s := &e.Streams[i]
		if w := &s.Window; w.Asked > 0 || r.protocol == measure.UDP {
			w.Granted = r.start.get(key).count()
			w.Usable = w.Granted
			if strings.HasPrefix(r.start.get("system_info").str(), "Linux") {
				w.Usable /= 2
			}
			w.Cut = w.Asked > 0 && w.Usable < w.Asked
		}
		if len(e.Bins) == 0 || len(e.Bins[len(e.Bins)-1].TCP) != len(rows) {
			continue
		}
		last := e.Bins[len(e.Bins)-1].TCP[i]
		if s.TCP == nil && last.Retrans != nil {
			s.TCP = &measure.TCPInfo{Retrans: last.Retrans}
			s.TCPStart = s.TCP.AtBirth()
		}
		if s.TCP != nil {
			total := s.TCP.Retrans
			*s.TCP = last
			s.TCP.Retrans = total
			if last.SendMSS != nil {
				s.MSS = int(*last.SendMSS)
			}
		}
	}
}

// process returns a program's CPU time, from percents of one core over the test.
func process(cpu node, whose string, measured int64) *measure.Process {
	user, okU := cpu.get(whose + "_user").number()
	system, okS := cpu.get(whose + "_system").number()
	const most = 100 * 4096 // that many fully used cores
	if !okU || !okS || user > most || system > most {
		return nil
	}
	return &measure.Process{UserNs: int64(user / 100 * float64(measured)), SystemNs: int64(system / 100 * float64(measured))}
}
