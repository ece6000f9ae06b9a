package stat

import (
	"strings"
	"testing"

	"thru/internal/measure"
)

// A link that is full while datagrams are lost delivers less than was sent.
func TestVerdictCountsLoss(t *testing.T) {
	for lossPct, pass := range map[float64]bool{0: true, 0.5: true, 34.1: false, 99: false} {
		c := measure.Cell{
			From: "a", To: "b", Protocol: measure.UDP, Goodput: &measure.Figure{Value: 972e6},
			Ceiling: &measure.Ceiling{Bps: 972e6, SharePct: 100}, Datagrams: &measure.DatagramFigures{LossPct: lossPct},
		}
		v := Verdict([]measure.Cell{c})
		if v == nil || v.Pass != pass || strings.Contains(v.Reason, "lost") == pass {
			t.Errorf("%g%% lost: %+v", lossPct, v)
		}
	}
}

// Datagrams with a wrong checksum count as a drop of the socket, but are the path's loss.
func TestDamageIsNotTheSockets(t *testing.T) {
	e := &measure.Evidence{
		Streams: []measure.Stream{{Datagrams: &measure.Datagrams{SocketDrops: new(int64(25))}}},
		Host:    &measure.HostSpan{Proto: map[string]uint64{"Udp.InCsumErrors": 25}},
	}
	if d := receiverSocket(e, 1); d.n != 0 {
		t.Errorf("%d of 25 damaged datagrams are laid to the socket", d.n)
	}
	e.Host.Proto["Udp.InCsumErrors"] = 5
	if d := receiverSocket(e, 1); d.n != 20 || !d.exact {
		t.Errorf("%d of 20 are laid to the socket", d.n)
	}
}

// At a few messages per second an empty second is no silence.
func TestSparseTrafficIsNotSilent(t *testing.T) {
	bins := []measure.StreamBin{{Span: 1e9, Bytes: 2896}, {At: 1e9, Span: 1e9}, {At: 2e9, Span: 1e9, Bytes: 2896}}
	for rate, warned := range map[int64]bool{100_000: false, 50_000_000: true} {
		c := measure.Cell{Protocol: measure.TCP, Spec: measure.Spec{Protocol: measure.TCP, Rate: rate}}
		s := &summary{cell: &c, runs: []pair{{run: &measure.Run{}, receiver: &measure.Evidence{Bins: bins}}}}
		s.warnSilence()
		if (len(c.Warnings) > 0) != warned {
			t.Errorf("at %d bit/s: %v", rate, c.Warnings)
		}
	}
}

// A loss of some datagrams at every rate is reported as such.
func TestSearchSaysThatLossIsAtAnyRate(t *testing.T) {
	s := NewLosslessSearch(200e6)
	for {
		rate, done := s.Next()
		if done {
			break
		}
		s.Report(measure.Trial{AskedBps: rate, ReceivedBps: rate, Sent: 10_000, Lost: 2, Seconds: 2})
	}
	var found measure.Search
	if s.Outcome(&found); !strings.Contains(found.Why, "does not depend on the rate") || found.LosslessBps != nil {
		t.Errorf("%+v", found)
	}
}
