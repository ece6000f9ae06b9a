//go:build unix

package iperf2

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"thru/internal/engine"
	"thru/internal/engine/enginetest"
	"thru/internal/fault"
	"thru/internal/measure"
)

// TestRatesOfUDP: a UDP client is within the limit, or gets no test.
func TestRatesOfUDP(t *testing.T) {
	const most = 10_000_000
	for _, tt := range []struct {
		name     string
		protocol string
		header   header
		limit    int64
		want     string
	}{
		{"within", measure.UDP, header{streams: 1, rate: most}, most, ""},
		{"streams within", measure.UDP, header{streams: 4, rate: most / 4}, most, ""},
		{"no number of streams", measure.UDP, header{rate: most}, most, ""},
		{"above", measure.UDP, header{streams: 1, rate: most + 1}, most, "10000001 bit/s"},
		{"streams above", measure.UDP, header{streams: 4, rate: most / 2}, most, "20000000 bit/s"},
		{"datagrams within", measure.UDP, header{streams: 1, rate: 800, upper: upperPackets}, most, ""},
		{"datagrams above", measure.UDP, header{streams: 1, rate: 9000, upper: upperPackets}, most, "exceed"},
		{"as much as can be said", measure.UDP, header{streams: 100, rate: 1<<56 - 1, upper: upperPackets}, most, "exceed"},
		{"none", measure.UDP, header{streams: 1}, most, "gives no rate"},
		{"none without a limit", measure.UDP, header{streams: 1}, 0, ""},
		{"above without a limit", measure.UDP, header{streams: 1, rate: 1e12}, 0, ""},
		{"tcp", measure.TCP, header{streams: 1, rate: 1e12}, most, ""}, // TCP, which this end can limit
	} {
		err := test{protocol: tt.protocol, header: tt.header, length: 1470}.refusal(Limits{RateBps: tt.limit})
		if (err == nil) != (tt.want == "") || err != nil && (!strings.Contains(err.Error(), tt.want) || fault.Hint(err) == "") {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// TestSendsMoreThanItSays: a UDP client that exceeds its rate is ended, and its further datagrams make no new call.
func TestSendsMoreThanItSays(t *testing.T) {
	t.Parallel()
	s := serve(t, ServerConfig{Limits: Limits{RateBps: 8_000_000}})
	c, err := net.Dial("udp", fmt.Sprintf("127.0.0.1:%d", s.port))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	h := header{flags: flagExtended | flagNumber64 | flagLength | headerSize<<1, streams: 1, amount: -6000, version: spoken, rate: 1_000_000}
	stop, over := make(chan bool), make(chan bool)
	go func() {
		defer close(over)
		for n := int64(1); ; {
			for range 50 {
				c.Write(append(h.append(appendNumber(nil, n, 0)), make([]byte, 1200)...))
				n++
			}
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	a := s.next(t)
	us := enginetest.Finish(t, a.session)
	if u := us[len(us)-1]; u.Kind != engine.Failed || !strings.Contains(u.Err.Error(), "exceeds the limit of 8000000") || fault.Hint(u.Err) == "" {
		t.Errorf("the last update is %+v", u)
	}
	a.session.Close()
	select {
	case <-s.answers:
		t.Error("the rest of it is a new call")
	case <-time.After(200 * time.Millisecond): // many datagrams would have called by then
	}
	close(stop)
	<-over
	s.empty(t)
}

// TestHoldsTCP: a limit of this end applies to both directions of TCP, whatever the client requests. The threshold is wide: it distinguishes only limited from
// unlimited.
func TestHoldsTCP(t *testing.T) {
	const most = 40_000_000
	s := serve(t, ServerConfig{Limits: Limits{RateBps: most}})
	for _, x := range []measure.Spec{spec(measure.TCP, 2), reversed(spec(measure.TCP, 2))} {
		x.Rate, x.Duration = 0, int64(500*time.Millisecond)
		c := dial(t, s.engine.Program, x, s.port, 0)
		a := s.next(t)
		finished(t, c)
		e := finished(t, a.session)
		if float64(e.Bytes)*8e9 > 2*most*float64(e.MeasuredNs) {
			t.Errorf("%s to %s: %d bytes in %v", x.From, x.To, e.Bytes, time.Duration(e.MeasuredNs))
		}
	}
}
