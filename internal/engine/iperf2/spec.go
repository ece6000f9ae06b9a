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

// Limits are what a server allows of each call; 0 is no bound beyond those of measure.
type Limits struct {
	Streams  int
	Duration time.Duration
	RateBps  int64 // of goodput, of all streams together
}

// port of iperf2, where a header names one and nobody calls it.
const port = 5001

// rampSlack is added to the time that a server shall send, so that the last
// second of the receiver is full.
const rampSlack = 2 * amountUnit

// headerOf says to a server what a Spec asks for; sends is this end, and ramp
// comes before the measured time.
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
			h.flags |= flagAsksPeer // else a server that knows the flags could not be told from one that does not
		}
	}
	if s.Amount > 0 {
		each := ceil(s.Amount, int64(s.Streams))
		if each > math.MaxInt32 && h.upper != 0 {
			return h, fault.Usagef("take -t, or fewer bytes of each stream", "iperf2: asking for %d bytes: an iperf2 server is told of %d at most", each, math.MaxInt32)
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

// defaultDatagram is what iperf2 sends by default: it fits MTU 1500.
const defaultDatagram = 1470

func ceil(n, by int64) int64 { return n/by + min(n%by, 1) }

// test is what a client asks for.
type test struct {
	protocol string
	header   header // zero where it sent none
	streams  int    // that have come

	// Of UDP, as the first datagram shows.
	length      int
	numbering   worker.Numbering
	firstNumber uint64
}

// refusal says why a test is not run here; nil if it is.
func (t test) refusal(l Limits) error {
	h := t.header
	switch {
	case h.flags&flagKey != 0:
		return fault.Failf("leave --permit-key out", "iperf2: taking a call: the client brings a key, and thru has none")
	case h.callsBack() && t.protocol == measure.UDP:
		return fault.Failf("test it from here: thru test -u iperf2://CLIENT, with iperf -s -u there",
			"iperf2: taking a call: the client wants datagrams sent to it (-d, -r); its address is not proven by iperf2 over UDP, so thru sends none")
	case h.callsBack() && (h.port == 0 || h.port > math.MaxUint16):
		return fault.Failf("", "iperf2: taking a call: the client wants to be called back at port %d, which is none", h.port)
	case t.protocol == measure.UDP && (h.reverse() || h.fullDuplex()):
		return fault.Failf("test it from here: thru test -R -u iperf2://CLIENT, with iperf -s -u there",
			"iperf2: taking a call: the client wants datagrams sent to it; its address is not proven by iperf2 over UDP, so thru sends none")
	case int64(h.streams) > int64(l.streams()):
		return fault.Failf("fewer streams, or a higher limit here", "iperf2: taking a call: %d streams are above the limit of %d", h.streams, l.streams())
	case t.protocol == measure.UDP && l.RateBps > 0:
		return t.tooFast(l.RateBps)
	}
	return nil
}

// tooFast says why a client by UDP is not run within a bound in bit/s: nobody
// but itself can hold it to one.
func (t test) tooFast(most int64) error {
	h := t.header
	asked := float64(h.rate) * float64(max(h.streams, 1))
	if h.upper&upperPackets != 0 {
		asked *= float64(t.length) * 8
	}
	switch {
	case asked == 0:
		return fault.Failf("start it with -b", "iperf2: taking a call: the client does not name its rate, and %d bit/s are the limit", most)
	case asked > float64(most):
		return fault.Failf("a smaller -b there (it counts for each stream; M is 1048576, m is 1000000), or a higher limit here",
			"iperf2: taking a call: %.0f bit/s are above the limit of %d", asked, most)
	}
	return nil
}

// errTooLittle is of a header whose time is below what can be measured.
var errTooLittle = errors.New("iperf2: taking a call: the time or the amount is not above zero")

// specs are the flows of the test, named for the far end point: that which the
// client sends first, if it sends.
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

// rateOf is what the client asks that many streams to send together; 0 is no
// bound. One in datagrams is the client's own.
func (h header) rateOf(streams int) int64 {
	if h.upper&upperPackets != 0 || h.rate > measure.MaxRate/uint64(streams) {
		return 0
	}
	return int64(h.rate) * int64(streams)
}

// callback is the test that the client wants from here to its own port; nil
// where it wants none.
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

// lengths of the calls: the client's, where it names one that can be.
func (t test) lengths() measure.Pair {
	n := int64(t.header.length)
	switch {
	case t.protocol == measure.UDP:
		n = min(max(int64(t.length), measure.MinDatagram), measure.MaxDatagram)
	case n > measure.MaxLength || !(t.header.reverse() || t.header.fullDuplex()):
		n = 0 // how a client writes does not bind the end that reads
	}
	return measure.Pair{Send: n, Recv: n}
}
