package iperf2

import (
	"cmp"
	"errors"
	"math"
	"time"

	"thru/internal/engine"
	"thru/internal/engine/worker"
	"thru/internal/fault"
	"thru/internal/measure"
)

// Limits are what a server allows each call; 0 means no limit beyond those of measure.
type Limits struct {
	Streams  int
	Duration time.Duration
	RateBps  int64 // goodput of all streams together
}

// port is iperf2's default port, for headers that name a port which nobody connects to.
const port = 5001

// rampSlack extends the time that a server sends, so that the last second of the receiver is complete.
const rampSlack = 2 * amountUnit

// headerOf returns the header that requests a Spec from a server. sends is this end's role, and ramp comes before the measured time.
func headerOf(s measure.Spec, sends bool, ramp time.Duration) (header, error) {
	h := header{
		flags: flagExtended | flagLength, streams: uint32(s.Streams), port: port,
		length: uint32(s.Length.Send), version: spoken, tos: uint8(s.DSCP << 2), rate: uint64(s.Rate) / uint64(s.Streams),
	}
	size := headerSize
	if s.Protocol == measure.UDP {
		size += datagramSize
		h.flags |= flagNumber64
		h.length = uint32(cmp.Or(s.Length.Send, defaultDatagram))
	}
	h.flags |= uint32(size) << 1
	switch {
	case s.Duplex:
		h.upper = upperFullDuplex
	case !sends:
		h.upper = upperReverse
	}
	if h.upper != 0 {
		h.flags |= flagVersion2
		if s.Protocol == measure.UDP {
			h.flags |= flagUDPTests
		} else {
			h.flags |= flagAsksPeer // else a server that knows the flags looks the same as one that does not
		}
	}
	if s.Amount > 0 {
		each := ceil(s.Amount, int64(s.Streams))
		if each > math.MaxInt32 && h.upper != 0 {
			return h, fault.Usagef("use -t, or fewer bytes for each stream", "iperf2: requesting %d bytes: the protocol allows %d at most", each, math.MaxInt32)
		}
		h.amount = int32(min(each, math.MaxInt32))
		return h, nil
	}
	span := time.Duration(s.Duration) + ramp
	if h.upper != 0 {
		span += rampSlack
	}
	h.amount = -int32(ceil(int64(span), int64(amountUnit)))
	return h, nil
}

// defaultDatagram is iperf2's default length: it fits MTU 1500.
const defaultDatagram = 1470

func ceil(n, by int64) int64 { return n/by + min(n%by, 1) }

// test is the test that a client requests.
type test struct {
	protocol string
	header   header // zero without one
	streams  int    // arrived so far

	// UDP, from the first datagram.
	length      int
	numbering   worker.Numbering
	firstNumber uint64
}

// refusal returns the reason to refuse a test; nil to run it.
func (t test) refusal(l Limits) error {
	h := t.header
	switch {
	case h.flags&flagKey != 0:
		return fault.Failf("omit --permit-key", "iperf2: accepting a client: the client requires a key, which thru does not support")
	case h.callsBack() && t.protocol == measure.UDP:
		return fault.Failf("test it from here: thru test -u iperf2://CLIENT, with iperf -s -u there",
			"iperf2: accepting a client: the client requests datagrams (-d, -r); iperf2 over UDP does not prove the client's address, so thru sends none")
	case h.callsBack() && (h.port == 0 || h.port > math.MaxUint16):
		return fault.Failf("", "iperf2: accepting a client: the client requests a connection to port %d, which is not valid", h.port)
	case t.protocol == measure.UDP && (h.reverse() || h.fullDuplex()):
		return fault.Failf("test it from here: thru test -R -u iperf2://CLIENT, with iperf -s -u there",
			"iperf2: accepting a client: the client requests datagrams; iperf2 over UDP does not prove the client's address, so thru sends none")
	case int64(h.streams) > int64(l.streams()):
		return fault.Failf("use fewer streams, or a higher limit here", "iperf2: accepting a client: %d streams exceed the limit of %d", h.streams, l.streams())
	case t.protocol == measure.UDP && l.RateBps > 0:
		return t.tooFast(l.RateBps)
	}
	return nil
}

// tooFast returns the reason to refuse a UDP client with a rate above a limit in bit/s: only the client itself can limit its rate.
func (t test) tooFast(most int64) error {
	h := t.header
	asked := float64(h.rate) * float64(max(h.streams, 1))
	if h.upper&upperPackets != 0 {
		asked *= float64(t.length) * 8
	}
	switch {
	case asked == 0:
		return fault.Failf("start the client with -b", "iperf2: accepting a client: the client gives no rate, and the limit is %d bit/s", most)
	case asked > float64(most):
		return fault.Failf("use a smaller -b there (for each stream; M is 1048576, m is 1000000), or a higher limit here",
			"iperf2: accepting a client: %.0f bit/s exceed the limit of %d", asked, most)
	}
	return nil
}

// errTooLittle is for a header with a time or an amount too small to measure.
var errTooLittle = errors.New("iperf2: accepting a client: the time or the amount is zero or negative")

// specs returns the flows of the test, named for the far end point: first the one that the client sends, if it sends.
func (t test) specs(name string, l Limits) ([]measure.Spec, error) {
	if err := t.refusal(l); err != nil {
		return nil, err
	}
	h := t.header
	longest := cmp.Or(l.Duration, measure.MaxDuration)
	s := measure.Spec{
		From: name, To: "local", DialFrom: true, Engine: measure.IPerf2, Protocol: t.protocol, Streams: t.streams,
		Duration: int64(longest), NoRamp: true, Interval: int64(time.Second), Together: true, MaxRate: l.RateBps,
		Length: t.lengths(), DSCP: int(h.tos >> 2),
	}
	s.Rate = h.rateOf(t.streams)
	backward := h.reverse() || h.fullDuplex()
	switch {
	case h.amount < 0:
		s.Duration = int64(min(longest, max(measure.MinDuration, -time.Duration(h.amount)*amountUnit)))
	case h.amount > 0:
		s.Amount = int64(h.amount) * int64(t.streams)
	case backward:
		return nil, errTooLittle
	}
	if !backward {
		s.Amount = 0 // it ends when the client has sent it
		return []measure.Spec{s}, nil
	}
	back := s
	back.From, back.To, back.DialFrom = s.To, s.From, false
	if h.reverse() {
		return []measure.Spec{back}, nil
	}
	s.Duplex, back.Duplex = true, true
	return []measure.Spec{s, back}, nil
}

// rateOf returns the total rate that the client requests for that many streams; 0: no limit. A rate in datagrams is left to the client.
func (h header) rateOf(streams int) int64 {
	if h.upper&upperPackets != 0 || h.rate > measure.MaxRate/uint64(streams) {
		return 0
	}
	return int64(h.rate) * int64(streams)
}

// callback returns the test that the client requests from here to its own port; nil without one.
func (t test) callback(name string, l Limits) *engine.Callback {
	h := t.header
	if !h.callsBack() {
		return nil
	}
	streams := min(max(int(h.streams), 1), l.streams())
	s := measure.Spec{
		From: "local", To: name, DialFrom: true, Engine: measure.IPerf2, Protocol: measure.TCP, Streams: streams,
		Duration: int64(cmp.Or(l.Duration, measure.MaxDuration)), NoRamp: true, Interval: int64(time.Second), Together: true, MaxRate: l.RateBps,
		DSCP: int(h.tos >> 2),
	}
	s.Rate = h.rateOf(streams)
	if h.amount > 0 {
		s.Amount = int64(h.amount) * int64(streams)
	} else {
		s.Duration = int64(min(time.Duration(s.Duration), max(measure.MinDuration, -time.Duration(h.amount)*amountUnit)))
	}
	return &engine.Callback{Spec: s, Port: int(h.port), AtOnce: h.flags&flagRunNow != 0}
}

// lengths returns the lengths of the calls: the client's, where it names a valid one.
func (t test) lengths() measure.Pair {
	n := int64(t.header.length)
	switch {
	case t.protocol == measure.UDP:
		n = min(max(int64(t.length), measure.MinDatagram), measure.MaxDatagram)
	case n > measure.MaxLength || !(t.header.reverse() || t.header.fullDuplex()):
		n = 0 // the client's write size does not matter for the reading end
	}
	return measure.Pair{Send: n, Recv: n}
}
