package worker

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"thru/internal/engine"
	"thru/internal/engine/enginetest"
	"thru/internal/measure"
)

// run measures spec from one end to the other and returns both ends' evidence.
func (s suite) run(t *testing.T, spec measure.Spec, dialFrom bool) (sent, got measure.Evidence) {
	t.Helper()
	sender, receiver := s.pair(t, spec, dialFrom)
	start(t, rampOf(spec), sender, receiver)
	checkTimeline(t, "sender", enginetest.Finish(t, sender))
	checkTimeline(t, "receiver", enginetest.Finish(t, receiver))
	return sender.Evidence(), receiver.Evidence()
}

// rampOf returns the ramp of a test: an amount has none.
func rampOf(spec measure.Spec) time.Duration {
	if spec.Amount > 0 {
		return 0
	}
	return ramp
}

// amount: exactly the requested bytes pass, however the streams share them.
func (s suite) amount(t *testing.T) {
	for _, bytes := range []int64{1, 1_000_003, 64 << 20} {
		spec := s.spec(3)
		spec.Amount, spec.Duration = bytes, int64(limit)
		sent, got := s.run(t, spec, true)
		for _, e := range []measure.Evidence{sent, got} {
			if e.Bytes != bytes || e.TotalBytes != bytes || e.MeasuredNs <= 0 {
				t.Errorf("%s: %d bytes in the measured time, %d in all, in %d ns; want %d", e.EndPoint, e.Bytes, e.TotalBytes, e.MeasuredNs, bytes)
			}
		}
	}
}

// twoWays: both directions on the same connections, each with its evidence.
func (s suite) twoWays(t *testing.T) {
	spec := s.spec(2)
	spec.Duplex = true
	var a, b, back, echo measure.Evidence
	inOneOfSome(t, func() error {
		sender, receiver := s.pair(t, spec, true)
		start(t, ramp, sender, receiver)
		checkTimeline(t, "one end", progressOf(enginetest.Finish(t, sender), false))
		checkTimeline(t, "other end", progressOf(enginetest.Finish(t, receiver), false))
		a, b = sender.Evidence(), receiver.Evidence()
		var ok bool
		if back, ok = receiver.Back(); !ok {
			t.Fatal("no evidence of the other direction at its sender")
		}
		if echo, ok = sender.Back(); !ok {
			t.Fatal("no evidence of the other direction at its receiver")
		}
		return moved(a, b, back, echo)
	})
	for _, e := range []measure.Evidence{a, b, back, echo} {
		checkEvidence(t, e, spec)
	}
	if a.TotalBytes != b.TotalBytes || back.TotalBytes != echo.TotalBytes || !back.Sends || echo.Sends {
		t.Errorf("there %d of %d bytes, back %d of %d, roles %v and %v", b.TotalBytes, a.TotalBytes, echo.TotalBytes, back.TotalBytes, back.Sends, echo.Sends)
	}
	if a.Streams[0].Local != echo.Streams[0].Local || a.Streams[0].Peer != echo.Streams[0].Peer {
		t.Errorf("the directions use %+v and %+v", a.Streams[0], echo.Streams[0])
	}
}

// progressOf leaves out the live figures of the other direction.
func progressOf(us []engine.Update, back bool) []engine.Update {
	var kept []engine.Update
	for _, u := range us {
		if u.Back == back {
			kept = append(kept, u)
		}
	}
	return kept
}

// verified: every byte is compared, and none is wrong.
func (s suite) verified(t *testing.T, spec measure.Spec) {
	spec.Verify = true
	_, got := s.run(t, spec, true)
	for _, x := range got.Streams {
		if c := x.Checked; c == nil || c.Bytes == 0 || c.WrongBytes != 0 || c.FirstWrong != nil {
			t.Errorf("stream %d: compared %+v", x.Index, x.Checked)
		}
		if spec.Protocol == measure.TCP && x.Checked.Bytes != x.TotalBytes {
			t.Errorf("stream %d: compared %d of %d bytes", x.Index, x.Checked.Bytes, x.TotalBytes)
		}
	}
}

// runUDP runs the contract of datagrams.
func (s suite) runUDP(t *testing.T) {
	for name, length := range map[string]int64{"least": measure.MinDatagram, "default": 0, "large": measure.MaxDatagram} {
		if length == measure.MaxDatagram && s.IO == measure.IOGSO {
			continue // they exceed the MTU of loopback: refused, see TestFeaturesFallBack
		}
		t.Run(name, func(t *testing.T) { s.datagrams(t, length, true) })
	}
	t.Run("reverse", func(t *testing.T) { s.datagrams(t, 512, false) })
	t.Run("many streams", s.manyDatagramStreams)
	t.Run("as fast as it goes", s.flood)
	t.Run("datagram amount", s.datagramAmount)
	t.Run("verified", func(t *testing.T) { s.verified(t, s.udp(2, 1000)) })
	t.Run("search", s.search)
	t.Run("search is bounded", s.searchBounded)
	t.Run("closes at any time", func(t *testing.T) { s.closes(t, s.udp(2, 0)) })
}

// udp returns a short test of so few datagrams that none should be lost.
func (s suite) udp(streams int, length int64) measure.Spec {
	spec := s.spec(streams)
	spec.Protocol, spec.Rate, spec.Duration = measure.UDP, 8_000_000, int64(300*time.Millisecond)
	spec.Length = measure.Pair{Send: length, Recv: length}
	spec.Window = measure.Pair{Recv: 4 << 20}
	return spec
}

// strays is how many datagrams of other tests on this machine may arrive at a port that they used before.
const strays = 3

func (s suite) datagrams(t *testing.T, length int64, dialFrom bool) {
	spec := s.udp(2, length)
	sent, got := s.run(t, spec, dialFrom)
	checkEvidence(t, sent, spec)
	checkEvidence(t, got, spec)
	if got.IO != s.IO || sent.IO != s.IO {
		t.Errorf("paths %s and %s, want %s", sent.IO, got.IO, s.IO)
	}
	for i, x := range got.Streams {
		a, b := sent.Streams[i].DatagramsAll, x.DatagramsAll
		if a == nil || b == nil || a.Packets == 0 || a.Packets != b.Packets+b.Lost {
			t.Fatalf("stream %d: sent %+v, got %+v", i, a, b)
		}
		if b.Duplicates != 0 || b.Foreign > strays || b.JitterNs == nil {
			t.Errorf("stream %d: %+v", i, *b)
		}
		if want := a.Packets * sent.Streams[i].Length; sent.Streams[i].TotalBytes != want {
			t.Errorf("stream %d: %d bytes in %d datagrams of %d", i, sent.Streams[i].TotalBytes, a.Packets, sent.Streams[i].Length)
		}
		if length != 0 && sent.Streams[i].Length != length {
			t.Errorf("datagrams of %d bytes, want %d", sent.Streams[i].Length, length)
		}
	}
}

// manyDatagramStreams: each stream has its own port at the dialling end.
func (s suite) manyDatagramStreams(t *testing.T) {
	spec := s.udp(measure.MaxStreams, 100)
	sent, got := s.run(t, spec, true)
	ports := map[string]bool{}
	for i, x := range sent.Streams {
		ports[x.Local] = true
		if got.Streams[i].Peer != x.Local {
			t.Errorf("stream %d: %s is met by %s", i, x.Local, got.Streams[i].Peer)
		}
	}
	if len(ports) != measure.MaxStreams {
		t.Errorf("%d streams have %d ports", measure.MaxStreams, len(ports))
	}
}

// flood: nothing is counted that was not sent, whatever the loss.
func (s suite) flood(t *testing.T) {
	spec := s.udp(1, 64)
	spec.Rate, spec.Duration = 0, int64(briefly)
	sent, got := s.run(t, spec, true)
	a, b := sent.Streams[0].DatagramsAll, got.Streams[0].DatagramsAll
	if b.Packets+b.Lost > a.Packets || b.Packets == 0 || b.Duplicates != 0 {
		t.Errorf("sent %+v, got %+v", a, b)
	}
}

// datagramAmount: the datagrams of the amount pass, and the measured time is theirs.
func (s suite) datagramAmount(t *testing.T) {
	spec := s.udp(1, 1000)
	spec.Amount, spec.Duration = 100_500, int64(limit)
	inOneOfSome(t, func() error {
		sent, got := s.run(t, spec, true)
		if d := sent.Streams[0].DatagramsAll; d.Packets != 101 {
			t.Errorf("%d datagrams were sent, want 101", d.Packets)
		}
		if d := got.Streams[0].DatagramsAll; d.Packets+d.Lost != 101 || got.Bytes != d.Packets*1000 {
			t.Errorf("got %+v, %d bytes", d, got.Bytes)
		}
		// At 8 Mb/s they take 0.1 s; the wait at the end does not count.
		if rate := float64(got.Bytes) * 8e9 / float64(got.MeasuredNs); rate < 4e6 || rate > 16e6 {
			return fmt.Errorf("%.2f Mb/s of 8, in %d ns", rate/1e6, got.MeasuredNs)
		}
		return nil
	})
}

// search: the rate rises from its start.
func (s suite) search(t *testing.T) {
	spec := s.udp(1, 1000)
	spec.Rate, spec.Search, spec.Duration = 0, true, int64(time.Second)
	inOneOfSome(t, func() error {
		sent, _ := s.run(t, spec, true)
		if n := len(sent.Bins); n == 0 || sent.Bins[n-1].RateBps <= 1_000_000 {
			return fmt.Errorf("the rate stayed at %+v", sent.Bins)
		}
		return nil
	})
}

// searchBounded: the limit of an end applies to a search too.
func (s suite) searchBounded(t *testing.T) {
	spec := s.udp(1, 1000)
	spec.Rate, spec.Search, spec.Duration, spec.MaxRate = 0, true, int64(time.Second), 2_000_000
	inOneOfSome(t, func() error {
		_, got := s.run(t, spec, true)
		if rate := float64(got.Bytes) * 8e9 / float64(got.MeasuredNs); rate > 2.5e6 {
			return fmt.Errorf("%.1f Mb/s with a bound of 2", rate/1e6)
		}
		return nil
	})
}

// runRequests runs the contract of requests and responses.
func (s suite) runRequests(t *testing.T) {
	for _, tt := range []struct {
		name     string
		protocol string
		traffic  string
		sizes    measure.Pair
		forward  bool
	}{
		{"tcp", measure.TCP, measure.RR, measure.Pair{}, true},
		{"tcp reverse", measure.TCP, measure.RR, measure.Pair{Send: 100, Recv: 70_000}, false},
		{"udp", measure.UDP, measure.RR, measure.Pair{Send: 1, Recv: 1}, true},
		{"udp reverse", measure.UDP, measure.RR, measure.Pair{Send: 100, Recv: 1000}, false},
		{"udp short answer", measure.UDP, measure.RR, measure.Pair{Send: 64, Recv: 1}, true},
		{"udp short question", measure.UDP, measure.RR, measure.Pair{Send: 4, Recv: 64}, true},
		{"connect", measure.TCP, measure.CRR, measure.Pair{Send: 1, Recv: 200}, true},
	} {
		for _, rate := range []float64{0, 200} {
			name := tt.name
			if rate > 0 {
				name += " at a rate"
			}
			t.Run(name, func(t *testing.T) {
				spec := s.spec(2)
				spec.Protocol, spec.Traffic, spec.Length, spec.PerSecond = tt.protocol, tt.traffic, tt.sizes, rate
				spec.DialFrom = true
				if rate > 0 {
					spec.Duration = int64(300 * time.Millisecond)
				}
				inOneOfSome(t, func() error {
					sent, got := s.run(t, spec, tt.forward)
					return checkRequests(t, sent, got, rate)
				})
			})
		}
	}
	t.Run("requests are bounded", func(t *testing.T) {
		spec := s.spec(1)
		spec.Traffic, spec.Length, spec.MaxRate = measure.RR, measure.Pair{Send: 10_000, Recv: 10_000}, 8_000_000
		inOneOfSome(t, func() error {
			sent, _ := s.run(t, spec, true)
			if rate := float64(sent.Bytes) * 8e9 / float64(sent.MeasuredNs); rate > 12e6 {
				return fmt.Errorf("requests of %.1f Mb/s with a bound of 8", rate/1e6)
			}
			return nil
		})
	})
	t.Run("closes at any time", func(t *testing.T) {
		spec := s.spec(2)
		spec.Traffic = measure.RR
		s.closes(t, spec)
	})
}

// checkRequests checks what holds of each run, and returns an error about the timing of this one.
func checkRequests(t *testing.T, sent, got measure.Evidence, rate float64) error {
	t.Helper()
	l := sent.Latency
	if l == nil && got.Latency == nil {
		return errors.New("no request was answered in time")
	}
	if l == nil || l.Count == 0 || l.Histogram == "" || got.Latency != nil {
		t.Fatalf("latency %+v, at the answering end %+v", l, got.Latency)
	}
	if l.Min <= 0 || l.Min > l.P50 || l.P50 > l.P99 || l.P99 > l.P9999 || l.P9999 > l.Max || l.Errors != 0 {
		t.Errorf("latency %+v", l)
	}
	var asked, answered, bins int64
	for i := range sent.Streams {
		asked, answered = asked+sent.Streams[i].Requests, answered+got.Streams[i].Requests
	}
	for _, b := range sent.Bins {
		bins += b.Requests
	}
	if asked == 0 {
		return errors.New("no request was sent in the measured time")
	}
	if asked != bins || answered == 0 {
		t.Errorf("%d requests, %d in the bins, %d at the answering end", asked, bins, answered)
	}
	near := 4 + asked/10 // the reading and the flag are not simultaneous
	if l.Count < asked-near || l.Count > asked+near {
		return fmt.Errorf("%d requests, %d latencies", asked, l.Count)
	}
	// Requests due in the ramp may be late.
	if most := 2 * rate * float64(sent.RampNs+sent.MeasuredNs) / 1e9; rate > 0 && float64(asked) > most+4 {
		return fmt.Errorf("%d requests at a rate that allows %.0f", asked, most)
	}
	return nil
}
