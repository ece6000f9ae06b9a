package iperf3

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"thru/internal/measure"
)

// direction is one direction of a test, seen from this end.
type direction struct {
	ids   []int            // stream ids
	ours  measure.Evidence // evidence of this end
	spec  measure.Spec
	omit  time.Duration // initial time that does not count
	speak string        // name and version of the far end's program
}

// directionsOf splits a test into its directions, the flow's own first. The client opens its sending streams first, and stream ids follow that order.
func directionsOf(spec measure.Spec, own measure.Evidence, back *measure.Evidence, omit time.Duration, speak string) []direction {
	n := spec.Streams
	first, second := make([]int, n), make([]int, n)
	for i := range n {
		first[i], second[i] = streamID(i), streamID(n+i)
	}
	if back == nil {
		return []direction{{first, own, spec, omit, speak}}
	}
	if own.Sends != own.Dialled { // the client does not send the flow's own direction
		first, second = second, first
	}
	return []direction{{first, own, spec, omit, speak}, {second, *back, spec, omit, speak}}
}

// testRecord is the common part of both roles: the worker of a test, and the results of the far end.
type testRecord struct {
	dataSession
	mu        sync.Mutex
	omit      time.Duration // initial time that does not count
	far, back *measure.Evidence
}

// begins stores the time that does not count.
func (t *testRecord) begins(omit time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.omit = omit
}

// directions returns the directions of a finished test.
func (t *testRecord) directions(s measure.Spec, m dataSession, speak string) []direction {
	own, back := m.Evidence(), (*measure.Evidence)(nil)
	if b, ok := m.Back(); ok {
		back = &b
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return directionsOf(s, own, back, t.omit, speak)
}

// keep stores the results that the far end reports.
func (t *testRecord) keep(directions []direction, r results) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.far = directions[0].reported(r)
	if len(directions) > 1 {
		t.back = directions[1].reported(r)
	}
}

// Far implements engine.Session.
func (t *testRecord) Far() (far, back *measure.Evidence) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.far, t.back
}

// idsOf returns the stream ids of all directions.
func idsOf(directions []direction) (ids []int) {
	for _, w := range directions {
		ids = append(ids, w.ids...)
	}
	return ids
}

// reported returns the far end's evidence of a direction, from its results.
func (w direction) reported(r results) *measure.Evidence {
	e := &measure.Evidence{
		Reported: w.speak, Sends: !w.ours.Sends, Dialled: !w.ours.Dialled, LocalAddr: w.ours.PeerAddr, PeerAddr: w.ours.LocalAddr,
		RampNs: int64(w.omit), Output: r.Output, Streams: []measure.Stream{}, Bins: []measure.StreamBin{},
	}
	for i, id := range w.ids {
		s := find(r.Streams, id)
		x := w.stream(s, r, e.Sends)
		if x.Index = i; i < len(w.ours.Streams) {
			x.Local, x.Peer = w.ours.Streams[i].Peer, w.ours.Streams[i].Local
		}
		e.Streams = append(e.Streams, x)
		e.Bytes += x.Bytes
		e.TotalBytes += x.TotalBytes
		e.MeasuredNs = max(e.MeasuredNs, int64(min(max(s.End-s.Start, 0), 2*mostTime)*1e9))
	}
	span := cmp.Or(e.MeasuredNs, w.ours.MeasuredNs)
	if r.CPUUser > 0 || r.CPUSystem > 0 {
		share := func(pct float64) int64 { return int64(min(max(pct, 0), 1e6) / 100 * float64(span)) }
		e.Worker = &measure.Process{UserNs: share(r.CPUUser), SystemNs: share(r.CPUSystem)}
	}
	w.missing(e, r)
	if r.Cut > 0 {
		why := fmt.Sprintf("it has %d bytes; thru keeps the first %d", r.Cut, len(r.Output))
		e.Missing = append(e.Missing, measure.NotChecked{Fact: "output", Why: why})
	}
	if e.MeasuredNs = span; w.ours.Sends && w.ours.TotalBytes > 0 && e.Bytes/2 > w.ours.TotalBytes {
		e.Missing = append(e.Missing, measure.NotChecked{Fact: "bytes", Why: "it reports more bytes received than were sent"})
		e.MeasuredNs, e.Bytes, e.TotalBytes = 0, 0, 0
	}
	return e
}

// find returns the result of a stream; readResults guarantees that it exists.
func find(all []streamResult, id int) streamResult {
	if i := slices.IndexFunc(all, func(s streamResult) bool { return s.ID == id }); i >= 0 {
		return all[i]
	}
	return streamResult{ID: id, Retransmits: -1}
}

func (w direction) isUDP() bool { return w.spec.Protocol == measure.UDP }

// stream returns the far end's figures of one stream.
func (w direction) stream(s streamResult, r results, sends bool) measure.Stream {
	x := measure.Stream{Bytes: s.Bytes, Length: w.spec.Length.Send, Congestion: r.Congestion}
	if w.omit == 0 {
		x.TotalBytes = s.Bytes
	}
	if !w.isUDP() {
		if sends && r.Retransmits && s.Retransmits >= 0 {
			x.TCP = &measure.TCPInfo{Retrans: new(uint32(min(s.Retransmits, 1<<32-1)))}
			x.TCPStart = x.TCP.AtBirth()
		}
		return x
	}
	x.Congestion = ""
	all := datagrams(s.Packets, s.Errors, s.Jitter, sends)
	span := all
	if w.omit > 0 {
		// Their sizes are equal, so the bytes give the number, which old versions do not report.
		x.TotalBytes = all.Packets * x.Length
		span.Packets = s.Bytes / max(x.Length, 1)
		if s.OmittedPackets != nil {
			span = datagrams(max(s.Packets-*s.OmittedPackets, 0), max(s.Errors-*s.OmittedErrors, 0), s.Jitter, sends)
		}
	}
	x.Datagrams, x.DatagramsAll = &span, &all
	return x
}

// datagrams returns the counts of one end: a receiver reports the highest number received, and how many were missing.
func datagrams(packets, lost int64, jitter float64, sends bool) measure.Datagrams {
	if sends {
		return measure.Datagrams{Packets: packets}
	}
	d := measure.Datagrams{Packets: max(packets-lost, 0), Lost: lost}
	if d.Packets > 1 {
		d.JitterNs = new(int64(jitter * 1e9))
	}
	return d
}

// missing lists what iperf3 does not report.
func (w direction) missing(e *measure.Evidence, r results) {
	not := func(fact, why string) { e.Missing = append(e.Missing, measure.NotChecked{Fact: fact, Why: why}) }
	const never = "iperf3 does not report it"
	for _, fact := range []string{"io", "route", "bins", "host", "streams.blocked_ns", "streams.window"} {
		not(fact, never)
	}
	if e.MeasuredNs == 0 {
		not("measured_ns", "iperf3 before 3.2 does not report it: thru uses the value of this end")
	}
	if e.TotalBytes == 0 && w.omit > 0 {
		not("total_bytes", "iperf3 reports only what it counts after the omitted time")
	}
	if e.Worker != nil {
		not("worker.resident_bytes", never)
	} else {
		not("worker", "the iperf3 there does not report its CPU time")
	}
	switch {
	case !w.isUDP() && (!e.Sends || e.Streams[0].TCP == nil):
		not("streams.tcp", never)
	case !w.isUDP():
		not("streams.tcp.rtt_ns", "iperf3 reports only retransmits")
	case !e.Sends:
		not("streams.datagrams.reordered", never)
		not("streams.datagrams.duplicates", never)
		not("streams.datagrams.socket_drops", never)
		if w.omit > 0 && find(r.Streams, w.ids[0]).OmittedPackets == nil {
			not("streams.datagrams.lost", "older iperf3 versions include the omitted time")
		}
	}
}

// describe returns this end's results, for all directions.
func describe(directions []direction, output string) results {
	r := results{Output: output}
	for _, w := range directions {
		e := w.ours
		if p := e.Worker; p != nil && e.MeasuredNs > 0 && r.CPUTotal == 0 { // one worker moves both directions
			pct := func(ns int64) float64 { return 100 * float64(ns) / float64(e.MeasuredNs) }
			r.CPUUser, r.CPUSystem, r.CPUTotal = pct(p.UserNs), pct(p.SystemNs), pct(p.UserNs+p.SystemNs)
		}
		r.Retransmits = r.Retransmits || e.Sends && !w.isUDP()
		for i, id := range w.ids {
			s := streamResult{ID: id, Retransmits: -1, End: float64(e.MeasuredNs) / 1e9}
			if i < len(e.Streams) {
				w.fillStream(&s, e.Streams[i])
				r.Congestion = cmp.Or(r.Congestion, e.Streams[i].Congestion)
			}
			r.Streams = append(r.Streams, s)
		}
	}
	return r
}

// fillStream fills this end's figures of a stream.
func (w direction) fillStream(s *streamResult, x measure.Stream) {
	s.Bytes = x.Bytes
	if w.ours.Sends && w.isUDP() && w.omit == 0 {
		s.Bytes = x.TotalBytes // the last call ends after the measured time, and its data is received
	}
	if n := x.Delta(measure.Retransmits); w.ours.Sends && n.Known {
		s.Retransmits = *n.Signed()
	}
	if all, span := x.DatagramsAll, x.Datagrams; all != nil && span != nil {
		s.Packets, s.Errors = all.Packets+all.Lost, all.Lost
		s.OmittedPackets, s.OmittedErrors = new(int64), new(int64)
		if w.omit > 0 {
			*s.OmittedPackets, *s.OmittedErrors = max(s.Packets-span.Packets-span.Lost, 0), max(all.Lost-span.Lost, 0)
		}
		if span.JitterNs != nil {
			s.Jitter = float64(*span.JitterNs) / 1e9
		}
	}
}
