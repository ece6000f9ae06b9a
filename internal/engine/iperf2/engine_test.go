//go:build unix

package iperf2

import (
	"strings"
	"testing"
	"time"

	"thru/internal/engine"
	"thru/internal/measure"
)

// TestBothRoles: thru as a server counts what thru sends as a client.
func TestBothRoles(t *testing.T) {
	s := serve(t, ServerConfig{})
	amount := func(x measure.Spec) measure.Spec {
		x.Amount, x.Duration = 3_000_001, int64(20*time.Second)
		return x
	}
	for _, c := range []struct {
		name string
		spec measure.Spec
		ramp time.Duration
	}{
		{"tcp", spec(measure.TCP, 1), 0},
		{"tcp ramp", spec(measure.TCP, 1), 300 * time.Millisecond},
		{"tcp streams", spec(measure.TCP, 4), 0},
		{"tcp amount", amount(spec(measure.TCP, 2)), 0},
		{"tcp reverse", reversed(spec(measure.TCP, 1)), 0},
		{"tcp reverse streams", reversed(spec(measure.TCP, 4)), 0},
		{"tcp reverse amount", amount(reversed(spec(measure.TCP, 3))), 0},
		{"udp", spec(measure.UDP, 1), 0},
		{"udp streams", spec(measure.UDP, 4), 0},
		{"udp ramp", spec(measure.UDP, 1), 300 * time.Millisecond},
		{"udp amount", amount(spec(measure.UDP, 2)), 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			ours := dial(t, s.engine.Program, c.spec, s.port, c.ramp)
			a := s.next(t)
			theirs := a.session
			sender, receiver := ours, theirs
			if c.spec.From != "local" {
				sender, receiver = theirs, ours
			}
			x, y := finished(t, sender), finished(t, receiver)
			missed := missing(t, x, y)
			if x.TotalBytes != y.TotalBytes+missed || x.TotalBytes == 0 {
				t.Errorf("sent %d bytes, received %d, missed %d", x.TotalBytes, y.TotalBytes, missed)
			}
			if want := c.spec.Amount; want > 0 && c.spec.DialFrom && c.spec.Protocol == measure.TCP && y.TotalBytes != want {
				t.Errorf("received %d bytes of an amount of %d", y.TotalBytes, want)
			}
			if want := c.spec.Amount; y.TotalBytes+missed < want {
				t.Errorf("received %d bytes of an amount of %d", y.TotalBytes, want)
			}
			if a.call.Program != "iperf2 2.1.8" || a.call.Name != "iperf2://127.0.0.1" || len(y.Streams) != c.spec.Streams {
				t.Errorf("the call is %+v with %d streams", a.call, len(y.Streams))
			}
			checkFar(t, c.spec, ours, x, y)
		})
	}
}

// missing returns how many bytes of datagrams the receiver missed: the socket of a receiver that waits for a CPU overflows. On the busiest machine it reads
// half of them.
func missing(t *testing.T, sent, received measure.Evidence) (bytes int64) {
	t.Helper()
	var missed, total int64
	for i, s := range received.Streams {
		if s.DatagramsAll == nil || i >= len(sent.Streams) || sent.Streams[i].DatagramsAll == nil {
			continue
		}
		lost, all := s.DatagramsAll.Lost, sent.Streams[i].DatagramsAll.Packets
		missed, total = missed+lost, total+all
		if all > 0 {
			bytes += lost * (sent.Streams[i].TotalBytes / all)
		}
	}
	if 2*missed > total {
		t.Errorf("%d of %d datagrams were lost", missed, total)
	}
	return bytes
}

// checkFar: the evidence of the other end agrees with that end's own counts.
func checkFar(t *testing.T, x measure.Spec, ours engine.Session, sent, received measure.Evidence) {
	t.Helper()
	far, back := ours.Far()
	if far == nil || back != nil || far.EndPoint != "iperf2://127.0.0.1" || far.Sends == x.DialFrom || far.Dialled || len(far.Missing) == 0 {
		t.Fatalf("far: %+v, back: %+v", far, back)
	}
	switch {
	case !x.DialFrom:
	case x.Protocol == measure.TCP:
		if far.TotalBytes != received.TotalBytes || far.Bytes == 0 {
			t.Errorf("%d of %d bytes were acknowledged, of %d received", far.Bytes, far.TotalBytes, received.TotalBytes)
		}
	default:
		if far.TotalBytes != received.TotalBytes || far.MeasuredNs == 0 {
			t.Errorf("%d bytes were reported, of %d received, in %d ns", far.TotalBytes, received.TotalBytes, far.MeasuredNs)
		}
		for i, s := range far.Streams {
			if own := sent.Streams[i].DatagramsAll; s.DatagramsAll.Packets+s.DatagramsAll.Lost != own.Packets {
				t.Errorf("stream %d: %+v of %+v", i, s.DatagramsAll, own)
			}
		}
	}
	if !strings.HasPrefix(far.Reported, "iperf2") {
		t.Errorf("it is %q", far.Reported)
	}
}

// TestFullDuplex: both directions on one connection.
func TestFullDuplex(t *testing.T) {
	s := serve(t, ServerConfig{})
	x := spec(measure.TCP, 2)
	x.Duplex = true
	ours := dial(t, s.engine.Program, x, s.port, 0)
	a := s.next(t)
	if len(a.call.Specs) != 2 || !a.call.Specs[1].Duplex || a.call.Specs[0].From != a.call.Name || a.call.Specs[1].To != a.call.Name {
		t.Errorf("the call is %+v", a.call)
	}
	sent, got := finished(t, ours), finished(t, a.session)
	backGot, _ := ours.Back()
	backSent, _ := a.session.Back()
	if sent.TotalBytes != got.TotalBytes || backSent.TotalBytes != backGot.TotalBytes || got.TotalBytes == 0 || backGot.TotalBytes == 0 {
		t.Errorf("sent %d and %d bytes, received %d and %d", sent.TotalBytes, backSent.TotalBytes, got.TotalBytes, backGot.TotalBytes)
	}
	far, back := ours.Far()
	if far == nil || back == nil || far.Sends || !back.Sends || far.TotalBytes != got.TotalBytes {
		t.Errorf("far: %+v, back: %+v", far, back)
	}
}
