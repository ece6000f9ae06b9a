package iperf2

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"math"
	"strings"
	"testing"
	"time"

	"thru/internal/engine/worker"
	"thru/internal/measure"
)

// Bytes that iperf 2.1.8 sent.
const (
	realForward   = "40010078 00000002 00008e9e 00000000 00000000 0000a000 00000000 00000000 00000000 00020001 00080003 00000000 00000000 00000000 00000000"
	realReverse   = "44010078 00000001 00008e9e 000003e8 00000000 ffffff9c 00000000 00000000 04000000 00020001 00080003 00000020 00100000 00000000 00000000"
	realBoth      = "44010078 00000001 00008e9e 00000000 00000000 0000a000 00000000 00000000 08000000 00020001 00080003 00000000 00000000 00000000 00000000"
	realDual      = "c0010079 00000001 00008e9e 00000000 00000000 ffffff9c 00000000 00000000 00000000 00020001 00080003 00000000 00100000 00000000 00000000"
	realTripTimes = "400100a0 00000001 00008e9e 00000000 00000000 ffffff9c 00000000 00000000 00100000 00020001 00080003 00000000 00500000 00000000 00000000 00000000 6b01e18a 0002d380 00000000 00000000"
	realUDP       = "48010098 00000001 00008e9e 000003e8 00000000 00005000 00000000 00000000 00000000 00020001 00080003 00000000 00a00000 00000000 00000000"
	realAck       = "00000002 0000001c 00000000 00020001 00080003 00000000 00000000"
	realReport    = "00000000 00000000 00000000 00000000 88000000 00000000 000053e8 00000000 00003bba 00000001 00000003 00000016 00000000 00000002" +
		"00000000 00000002 00000000 0000002f 00000000 00000083 00000000 00000005 0000070a 000e90b1 00000000 ffffffff 00000016 0000059e 00000001" +
		"00000000 00000000 00000000"
	oldReport = "fffffff2 00000000 00000000 80000000 00000000 000053e8 00000000 00003bba 00000000 00000000 00000016 00000000 00000002"
)

func raw(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestParseHeader(t *testing.T) {
	for name, tt := range map[string]struct {
		wire                 string
		want                 header
		ack, reverse, duplex bool
	}{
		"forward":    {realForward, header{flags: 0x40010078, streams: 2, port: 36510, amount: 40960, version: spoken}, true, false, false},
		"reverse":    {realReverse, header{flags: 0x44010078, streams: 1, port: 36510, length: 1000, amount: -100, upper: upperReverse, version: spoken, tos: 32, rate: 1 << 20}, false, true, false},
		"both":       {realBoth, header{flags: 0x44010078, streams: 1, port: 36510, amount: 40960, upper: upperFullDuplex, version: spoken}, false, false, true},
		"dual":       {realDual, header{flags: 0xc0010079, streams: 1, port: 36510, amount: -100, version: spoken, rate: 1 << 20}, true, false, false},
		"trip times": {realTripTimes, header{flags: 0x400100a0, streams: 1, port: 36510, amount: -100, upper: upperTripTimes, version: spoken, rate: 5 << 20, sent: seconds(0x6b01e18a, 0x2d380)}, true, false, false},
		"udp":        {realUDP, header{flags: 0x48010098, streams: 1, port: 36510, length: 1000, amount: 20480, version: spoken, rate: 10 << 20}, true, false, false},
		"1.7, dual":  {"80000001 00000003 00001389 00000000 00000000 ffffff9c", header{flags: 0x80000001, streams: 3, port: 5001, amount: -100}, false, false, false},
	} {
		b := raw(t, tt.wire)
		h, err := parseHeader(b)
		if err != nil || h != tt.want || h.wantsAck() != tt.ack || h.reverse() != tt.reverse || h.fullDuplex() != tt.duplex {
			t.Errorf("%s: %+v, %v, %v, %v: %v", name, h, h.wantsAck(), h.reverse(), h.fullDuplex(), err)
		}
		if len(b) == headerSize && !bytes.Equal(h.append(nil), b) {
			t.Errorf("%s: written as %x", name, h.append(nil))
		}
		if _, err := parseHeader(b[:len(b)-1]); len(b) <= headerSize && err == nil {
			t.Errorf("%s: one byte less is a header too", name)
		}
	}
}

func TestHeaderLen(t *testing.T) {
	for flags, want := range map[uint32]int{
		0: 0, 0x30313233: 0, 0x40010078: 60, 0x400100a0: 80, 0x80000000: 24, 0x40000000: 60, 0x84000000: 60, 0x04000000: 36,
		0x47455420: 0, // "GET "
		0x40010010: 0, // a length of 8
	} {
		n, ok := headerLen(flags)
		if ok != (want > 0) || ok && n != want {
			t.Errorf("%08x: %d, %v, want %d", flags, n, ok, want)
		}
	}
}

func TestAck(t *testing.T) {
	a, err := parseAck(raw(t, realAck))
	if err != nil || a.version != spoken || a.version.String() != "2.1.8" || !bytes.Equal(a.append(nil), raw(t, realAck)) {
		t.Errorf("%+v, %v", a, err)
	}
	a.times, a.sent, a.came, a.leaves = true, time.Second, 2*time.Second, 3*time.Second+5*time.Microsecond
	if b := a.append(nil); len(b) != 52 || binary.BigEndian.Uint32(b[4:]) != 52 || binary.BigEndian.Uint32(b[48:]) != 5 {
		t.Errorf("with times %x", b)
	}
	if _, err := parseAck([]byte("SSH-2.0-OpenSSH_9.2p1 Debian")); err == nil {
		t.Error("a greeting of SSH is an ack")
	}
}

func TestReport(t *testing.T) {
	want := report{bytes: 21480, duration: 15290 * time.Microsecond, lost: 1, reordered: 3, datagrams: 22, jitter: 2 * time.Microsecond}
	if r, err := parseReport(raw(t, realReport)); err != nil || r != want {
		t.Errorf("%+v, %v", r, err)
	}
	want.lost, want.reordered = 0, 0
	if r, err := parseReport(raw(t, oldReport)); err != nil || r != want {
		t.Errorf("old: %+v, %v", r, err)
	}
	want.lost, want.datagrams, want.bytes = 5<<33+1, 7<<33+2, 1<<40
	if r, err := parseReport(want.append(nil, false)); err != nil || r != want {
		t.Errorf("large: %+v, %v", r, err)
	}
	for name, b := range map[string][]byte{
		"nothing": nil, "a datagram": make([]byte, 1470), "cut": raw(t, realReport)[:50],
		"more lost than sent": report{lost: 2, datagrams: 1}.append(nil, false),
		"negative":            report{bytes: math.MinInt64}.append(nil, false),
	} {
		if r, err := parseReport(b); err == nil {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

func TestParseNumber(t *testing.T) {
	for name, tt := range map[string]struct {
		wire string
		want int64
		ok   bool
	}{
		"first":           {"00000001 00000000 00000000 00000000 48010098", 1, true},
		"high word":       {"00000001 00000000 00000000 00000002 48010098", 2<<32 + 1, true},
		"last":            {"ffffffea 00000000 00000000 ffffffff 48010098", -22, true},
		"32 bits":         {"00000001 00000000 00000000 30313233 34353637", 1, true},
		"last of 32 bits": {"fffffff2 00000000 00000000", -14, true},
		"too short":       {"00000001 00000000", 0, false},
	} {
		if n, ok := parseNumber(raw(t, tt.wire)); n != tt.want || ok != tt.ok {
			t.Errorf("%s: %d, %v", name, n, ok)
		}
	}
	if b := appendNumber(nil, -22, time.Second); hex.EncodeToString(b) != "ffffffea0000000100000000ffffffff" {
		t.Errorf("%x", b)
	}
}

// TestHeaderOf: a server reads what a Spec requests.
func TestHeaderOf(t *testing.T) {
	plain := measure.Spec{Protocol: measure.TCP, Streams: 4, Duration: int64(10 * time.Second), Rate: 400e6, DSCP: 8}
	udp, amount, duplex := plain, plain, plain
	udp.Protocol = measure.UDP
	amount.Amount = 1001
	duplex.Duplex = true
	for name, tt := range map[string]struct {
		spec   measure.Spec
		sends  bool
		amount int32
		upper  uint16
		flags  uint32
		length uint32
	}{
		"forward":        {plain, true, -1010, 0, 0x40010078, 0},
		"reverse":        {plain, false, -1012, upperReverse, 0x46010078, 0},
		"full duplex":    {duplex, true, -1012, upperFullDuplex, 0x46010078, 0},
		"amount":         {amount, true, 251, 0, 0x40010078, 0},
		"amount reverse": {amount, false, 251, upperReverse, 0x46010078, 0},
		"udp":            {udp, true, -1010, 0, 0x48010098, defaultDatagram},
		"udp reverse":    {udp, false, -1012, upperReverse, 0x6c010098, defaultDatagram},
	} {
		h, err := headerOf(tt.spec, tt.sends, 100*time.Millisecond)
		want := header{flags: tt.flags, streams: 4, port: port, length: tt.length, amount: tt.amount, upper: tt.upper, version: spoken, tos: 32, rate: 100e6}
		if err != nil || h != want {
			t.Errorf("%s: %+v, %v, want %+v", name, h, err, want)
		}
	}
	amount.Amount = math.MaxInt64
	if h, err := headerOf(amount, true, 0); err != nil || h.amount != math.MaxInt32 {
		t.Errorf("a large amount: %d, %v", h.amount, err)
	}
	if _, err := headerOf(amount, false, 0); err == nil {
		t.Error("a large amount is asked of a server, which cannot be told of it")
	}
}

func FuzzHeader(f *testing.F) {
	for _, s := range []string{realForward, realReverse, realBoth, realDual, realTripTimes, realUDP} {
		f.Add(raw(f, s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := parseHeader(b)
		if err != nil {
			return
		}
		n, ok := headerLen(h.flags)
		if !ok || n < baseSize && n != extensionSize || n > 255 {
			t.Errorf("a header of %d bytes, %v", n, ok)
		}
		for _, protocol := range []string{measure.TCP, measure.UDP} {
			x := test{protocol: protocol, header: h, streams: 3, length: 100}
			specs, err := x.specs("iperf2://10.0.0.1", Limits{Streams: 8, Duration: time.Minute})
			for _, s := range specs {
				if err != nil || worker.Check(s) != nil || s.Duration > int64(time.Minute) {
					t.Errorf("%+v: %v, %v", s, err, worker.Check(s))
				}
			}
			if b := x.callback("iperf2://10.0.0.1", Limits{Streams: 8, Duration: time.Minute}); err == nil && b != nil && (worker.Check(b.Spec) != nil || b.Port < 1 || b.Port > 65535) {
				t.Errorf("called back: %+v: %v", b, worker.Check(b.Spec))
			}
			if err == nil && len(specs) == 0 {
				t.Error("neither a test nor an error")
			}
		}
	})
}

func FuzzReport(f *testing.F) {
	f.Add(raw(f, realReport))
	f.Add(raw(f, oldReport))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := parseReport(b)
		if err == nil && (r.bytes < 0 || r.lost < 0 || r.reordered < 0 || r.datagrams < r.lost || r.duration < 0 || r.jitter < 0) {
			t.Errorf("%+v", r)
		}
		if again, err2 := parseReport(r.append(nil, false)); err == nil && (err2 != nil || again.datagrams != r.datagrams) {
			t.Errorf("%+v is read as %+v, %v", r, again, err2)
		}
	})
}

func FuzzNumberAndAck(f *testing.F) {
	f.Add(raw(f, realAck))
	f.Add(appendNumber(nil, -22, time.Second))
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, ok := parseNumber(b); ok != (len(b) >= oldDatagram) {
			t.Errorf("a number in %d bytes: %v", len(b), ok)
		}
		a, err := parseAck(b)
		if again, err2 := parseAck(a.append(nil)); err == nil && (err2 != nil || again != a) {
			t.Errorf("%+v is read as %+v", a, again)
		}
	})
}
