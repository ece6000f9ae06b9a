package iperf2

import (
	"testing"
	"time"

	"thru/internal/measure"
)

// With -d or -r a client requests a test of the same kind back to its own port.
func TestCallback(t *testing.T) {
	h, err := parseHeader(raw(t, realDual))
	if err != nil {
		t.Fatal(err)
	}
	dual := test{protocol: measure.TCP, header: h, streams: 1}
	b := dual.callback("iperf2://10.0.0.2", Limits{Duration: time.Hour})
	if b == nil || b.Port != 36510 || !b.AtOnce {
		t.Fatalf("called back: %+v", b)
	}
	s := b.Spec
	if s.From != "local" || s.To != "iperf2://10.0.0.2" || !s.DialFrom || time.Duration(s.Duration) != time.Second || s.Streams != 1 || s.Rate != 1<<20 {
		t.Errorf("the test back is %+v", s)
	}
	tradeoff := dual
	tradeoff.header.flags &^= flagRunNow
	tradeoff.header.amount, tradeoff.header.streams = 5000, 4
	if b := tradeoff.callback("x", Limits{Streams: 2}); b.AtOnce || b.Spec.Streams != 2 || b.Spec.Amount != 10000 || b.Spec.Rate != 2<<20 {
		t.Errorf("afterwards: %+v", b)
	}
	for _, port := range []uint32{0, 65536} {
		none := dual
		none.header.port = port
		if none.refusal(Limits{}) == nil {
			t.Errorf("port %d is taken", port)
		}
	}
	plain := dual
	plain.header.flags &^= flagVersion1
	if plain.callback("x", Limits{}) != nil {
		t.Error("called back without having asked")
	}
}
