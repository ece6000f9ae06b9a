package iperfdoc

import (
	"cmp"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
)

// columns replaces figures, to compare the lines of two tests of one kind: 1 and # stand for numbers, U for a unit.
func columns(line string) string {
	for _, r := range []struct{ from, to string }{
		{` {1,2}\d+\.\d\d-\d+\.\d\d +sec`, "  SPAN sec"},
		{`[ \d.]{3}\d [KMGT]?Bytes`, "#### UBytes"},
		{`[ \d.]{3}\d [KMGT]?bits/sec`, "#### Ubits/sec"},
		{` port \d+`, " port 1"},
		{`  +\d+( {3}#### UBytes| {12,13}(?:sender)?$)`, "  1$1"},
		{`[\d.]+ ms +\d+/\d+ \([\d.e+-]+%\)`, "1 ms  1/1 (1%)"},
		{`/sec( +)\d+  $`, "/sec${1}1  "},
		{`\[ *\d+\]`, "[  1]"},
		{`[\d.]+%`, "1%"}, {`Cookie: \w+`, "Cookie: 1"}, {`Time: .*`, "Time: 1"}, {`iperf 3.*`, "iperf 3"}, {`Linux .*`, "Linux"},
	} {
		line = regexp.MustCompile(r.from).ReplaceAllString(line, r.to)
	}
	return line
}

// printed returns the layout of a recorded test.
func printed(t *testing.T, document string, o LayoutOptions) string {
	t.Helper()
	var out strings.Builder
	r := FromDocument(one(t, recorded(t, document)[document]))
	r.Test.MSS = cmp.Or(r.Test.MSS, 1448) // a live view knows a receiver's MSS too
	l := NewLayout(&out, o)
	calls := []func() error{func() error { return l.Connecting(r.Test) }, func() error { return l.Start(r.Test) }}
	if r.Test.Server {
		calls = []func() error{func() error { return l.Listening(r.Test.Port, 1) }, func() error { return l.Start(r.Test) }}
	}
	for _, i := range r.Intervals {
		calls = append(calls, func() error { return l.Interval(i) })
	}
	for _, call := range append(calls, func() error { return l.End(r.End, true) }) {
		if err := call(); err != nil {
			t.Fatal(err)
		}
	}
	return out.String()
}

// TestLayoutColumns compares the lines of each kind of test with those that iperf3 3.21 printed in another run of the same kind.
func TestLayoutColumns(t *testing.T) {
	a, err := txtar.ParseFile(filepath.Join("testdata", "layout-3.21.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for _, f := range a.Files {
		want[f.Name] = string(f.Data)
	}
	for _, tt := range []struct {
		document, text string
		o              LayoutOptions
	}{
		{document: "3.21-tcp.json", text: "3.21-tcp-client"},
		{document: "3.21-reverse.json", text: "3.21-reverse-client"},
		{document: "3.21-bidir.json", text: "3.21-bidir-client"},
		{document: "3.21-bidir-p2.json", text: "3.21-bidir-p2-client"},
		{document: "3.21-udp.json", text: "3.21-udp-client"},
		{document: "3.21-udp-loss.json", text: "3.21-udp-p2-client"},
		{document: "3.21-udp-reverse.json", text: "3.21-udp-reverse-client"},
		{document: "3.21-udp-bidir.json", text: "3.21-udp-bidir-client"},
		{document: "3.21-tcp.json", text: "3.21-verbose-client", o: LayoutOptions{Verbose: true}},
		{document: "3.21-reverse.json", text: "3.21-verbose-reverse-client", o: LayoutOptions{Verbose: true}},
		{document: "3.21-bidir.json", text: "3.21-verbose-bidir-client", o: LayoutOptions{Verbose: true}},
	} {
		t.Run(tt.text, func(t *testing.T) {
			compareColumns(t, printed(t, tt.document, tt.o), want[tt.text])
		})
	}
}

func compareColumns(t *testing.T, got, want string) {
	t.Helper()
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range max(len(g), len(w)) {
		a, b := "", ""
		if i < len(g) {
			a = columns(g[i])
		}
		if i < len(w) {
			b = columns(w[i])
		}
		if a != b {
			t.Errorf("line %d\n got %q\nwant %q", i+1, a, b)
		}
	}
}

// TestLayoutLines compares single lines with recorded ones, byte by byte.
func TestLayoutLines(t *testing.T) {
	second := time.Second
	tcp := Test{Protocol: protocolTCP, Streams: 1, Host: "192.0.2.2", Port: 5201}
	with := func(change func(*Test)) Test { x := tcp; change(&x); return x }
	udp := with(func(x *Test) { x.Protocol = protocolUDP })
	full := Part{Socket: 5, Bytes: 25_080_000, Retransmits: new(int64(449)), Cwnd: new(int64(133_120))}
	for _, tt := range []struct {
		name      string
		test      Test
		o         LayoutOptions
		direction Direction
		omit      bool
		header    string
		line      string
	}{
		{"sender", tcp, LayoutOptions{}, Direction{true, full, []Part{full}}, false,
			"[ ID] Interval           Transfer     Bitrate         Retr  Cwnd", "[  5]   0.00-1.00   sec  23.9 MBytes   201 Mbits/sec  449    130 KBytes       "},
		{"omitted", tcp, LayoutOptions{}, Direction{true, full, []Part{full}}, true,
			"[ ID] Interval           Transfer     Bitrate         Retr  Cwnd", "[  5]   0.00-1.00   sec  23.9 MBytes   201 Mbits/sec  449    130 KBytes       (omitted)"},
		{"receiver", with(func(x *Test) { x.Reverse = true }), LayoutOptions{}, Direction{false, full, []Part{{Socket: 5, Bytes: 23_900_000}}}, false,
			"[ ID] Interval           Transfer     Bitrate", "[  5]   0.00-1.00   sec  22.8 MBytes   191 Mbits/sec                  "},
		{"nothing", with(func(x *Test) { x.Reverse = true }), LayoutOptions{}, Direction{false, full, []Part{{Socket: 5}}}, false,
			"[ ID] Interval           Transfer     Bitrate", "[  5]   0.00-1.00   sec  0.00 Bytes  0.00 bits/sec                  "},
		{"kilobits", tcp, LayoutOptions{Format: 'k'}, Direction{true, full, []Part{{Socket: 4, Bytes: 25_894_000, Retransmits: new(int64(1561)), Cwnd: new(int64(124_928))}}}, false,
			"[ ID] Interval           Transfer     Bitrate         Retr  Cwnd", "[  4]   0.00-1.00   sec  24.7 MBytes  207152 Kbits/sec  1561    122 KBytes       "},
		{"megabytes", tcp, LayoutOptions{Format: 'M'}, Direction{true, full, []Part{{Socket: 5, Bytes: 10_485_760, Retransmits: new(int64(719)), Cwnd: new(int64(185_344))}}}, false,
			"[ ID] Interval           Transfer     Bitrate         Retr  Cwnd", "[  5]   0.00-1.00   sec  10.0 MBytes  10.0 MBytes/sec  719    181 KBytes       "},
		{"udp sender", udp, LayoutOptions{}, Direction{true, full, []Part{{Socket: 5, Bytes: 2_500_696, Packets: 1727}}}, false,
			"[ ID] Interval           Transfer     Bitrate         Total Datagrams", "[  5]   0.00-1.00   sec  2.38 MBytes  20.0 Mbits/sec  1727  "},
		{"udp receiver", with(func(x *Test) { x.Protocol, x.Reverse = protocolUDP, true }), LayoutOptions{},
			Direction{false, full, []Part{{Socket: 5, Bytes: 11_728_800, Packets: 8100, Lost: new(int64(2175)), JitterNs: new(int64(37_400))}}}, false,
			"[ ID] Interval           Transfer     Bitrate         Jitter    Lost/Total Datagrams",
			"[  5]   0.00-1.00   sec  11.2 MBytes  93.8 Mbits/sec  0.037 ms  2175/10275 (21%)  "},
		{"both ways, udp sender", with(func(x *Test) { x.Protocol, x.Bidir = protocolUDP, true }), LayoutOptions{}, Direction{true, full, []Part{{Socket: 5, Bytes: 2_500_696, Packets: 1725}}}, false,
			"[ ID][Role] Interval           Transfer     Bitrate         Jitter    Lost/Total Datagrams",
			"[  5][TX-C]   0.00-1.00   sec  2.38 MBytes  20.0 Mbits/sec            1725  "},
		{"both ways, server", with(func(x *Test) { x.Bidir, x.Server = true, true }), LayoutOptions{}, Direction{false, full, []Part{{Socket: 13, Bytes: 23_900_000}}}, false,
			"[ ID][Role] Interval           Transfer     Bitrate         Retr  Cwnd", "[ 13][RX-S]   0.00-1.00   sec  22.8 MBytes   191 Mbits/sec                  "},
		{"time stamps and title", with(func(x *Test) { x.Title = "lab" }), LayoutOptions{Stamp: func() string { return "Sat Nov 21 18:23:26 2026 " }}, Direction{true, full, []Part{full}}, false,
			"Sat Nov 21 18:23:26 2026 lab:  [ ID] Interval           Transfer     Bitrate         Retr  Cwnd",
			"Sat Nov 21 18:23:26 2026 lab:  [  5]   0.00-1.00   sec  23.9 MBytes   201 Mbits/sec  449    130 KBytes       "},
		{"title of the client, at the server", with(func(x *Test) { x.Title, x.Server = "lab", true }), LayoutOptions{}, Direction{false, full, []Part{{Socket: 5, Bytes: 23_900_000}}}, false,
			"[ ID] Interval           Transfer     Bitrate", "[  5]   0.00-1.00   sec  22.8 MBytes   191 Mbits/sec                  "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out strings.Builder
			l := NewLayout(&out, tt.o)
			l.Start(tt.test)
			out.Reset()
			if err := l.Interval(Interval{End: second, Omitted: tt.omit, Directions: []Direction{tt.direction}}); err != nil {
				t.Fatal(err)
			}
			if want := tt.header + "\n" + tt.line + "\n"; out.String() != want {
				t.Errorf("got\n%s\nwant\n%s", out.String(), want)
			}
		})
	}
}

// TestLayoutServer checks what only a server prints.
func TestLayoutServer(t *testing.T) {
	var out strings.Builder
	l := NewLayout(&out, LayoutOptions{})
	l.Listening(5201, 2)
	l.Start(Test{Server: true, Protocol: protocolTCP, Streams: 1, Host: "192.0.2.1", Port: 45594,
		Conns: []Conn{{Socket: 5, LocalHost: "192.0.2.2", LocalPort: 5201, RemoteHost: "192.0.2.1", RemotePort: 45600}}})
	l.Interval(Interval{End: time.Second, Directions: []Direction{{Streams: []Part{{Socket: 5, Bytes: 23_900_000}}}}})
	l.End(End{Directions: []EndDirection{{Received: time.Second, HasReceived: true, Streams: []EndStream{{Socket: 5, Received: Total{Bytes: 23_900_000}}}}}}, true)
	want := `-----------------------------------------------------------
Server listening on 5201 (test #2)
-----------------------------------------------------------
Accepted connection from 192.0.2.1, port 45594
[  5] local 192.0.2.2 port 5201 connected to 192.0.2.1 port 45600
[ ID] Interval           Transfer     Bitrate
[  5]   0.00-1.00   sec  22.8 MBytes   191 Mbits/sec                  
- - - - - - - - - - - - - - - - - - - - - - - - -
[ ID] Interval           Transfer     Bitrate
[  5]   0.00-1.00   sec  22.8 MBytes   191 Mbits/sec                  receiver
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

// TestUnits checks the limits at which iperf3 changes digits and units.
func TestUnits(t *testing.T) {
	for _, tt := range []struct {
		bytes float64
		want  string
	}{
		{0, "0.00 Bytes"}, {1, "1.00 Bytes"}, {1000, "1000 Bytes"}, {1023, "1023 Bytes"}, {1024, "1.00 KBytes"}, {128 << 10, " 128 KBytes"},
		{9.99 * 1024, "9.99 KBytes"}, {9.996 * 1024, "10.0 KBytes"}, {99.96 * (1 << 20), " 100 MBytes"}, {1 << 50, "1024 TBytes"},
	} {
		if got := amount(tt.bytes); got != tt.want {
			t.Errorf("amount(%g) = %q, want %q", tt.bytes, got, tt.want)
		}
	}
	for _, tt := range []struct {
		bps    float64
		format byte
		want   string
	}{
		{0, 'a', "0.00 bits/sec"}, {999e6, 'a', " 999 Mbits/sec"}, {1e9, 'a', "1.00 Gbits/sec"}, {2e12, 'a', "2.00 Tbits/sec"},
		{1e9, 'm', "1000 Mbits/sec"}, {1e9, 'g', "1.00 Gbits/sec"}, {1e9, 't', "0.00 Tbits/sec"}, {8 << 30, 'M', "1024 MBytes/sec"}, {8 << 30, 'G', "1.00 GBytes/sec"},
	} {
		if got := rateIn(tt.bps, tt.format); got != tt.want {
			t.Errorf("rateIn(%g, %c) = %q, want %q", tt.bps, tt.format, got, tt.want)
		}
	}
}
