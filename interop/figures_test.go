package interop

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"thru/internal/measure"
)

// Half is what one program reports of one direction, in bit/s of payload and in datagrams. Nil: not reported.
type Half struct {
	Sent     *float64
	Received *float64
	Lost     *int64
}

// Report is what one program reports of a test.
type Report struct {
	Forward Half // from the client to the server
	Back    Half
}

// iperf3Sum is a sum of iperf3's JSON document.
type iperf3Sum struct {
	Bps  float64 `json:"bits_per_second"`
	Lost *int64  `json:"lost_packets"`
}

// iperf3Doc is the part of it that is read.
type iperf3Doc struct {
	Start struct {
		Test struct {
			Reverse int `json:"reverse"`
		} `json:"test_start"`
	} `json:"start"`
	End struct {
		Sum          *iperf3Sum `json:"sum"` // of UDP
		Sent         *iperf3Sum `json:"sum_sent"`
		Received     *iperf3Sum `json:"sum_received"`
		BackSum      *iperf3Sum `json:"sum_bidir_reverse"`
		BackSent     *iperf3Sum `json:"sum_sent_bidir_reverse"`
		BackReceived *iperf3Sum `json:"sum_received_bidir_reverse"`
	} `json:"end"`
	Error string `json:"error"`
}

// ReadIPerf3 reads the output of `iperf3 -J`, for a server the first test. iperf3 prints zero for unknown
// values, including losses: they are not reported.
func ReadIPerf3(out []byte) (Report, error) {
	var d iperf3Doc
	if err := json.NewDecoder(bytes.NewReader(out)).Decode(&d); err != nil {
		return Report{}, fmt.Errorf("interop: reading the document of iperf3: %w", err)
	}
	if d.Error != "" {
		return Report{}, fmt.Errorf("interop: iperf3 says: %s", d.Error)
	}
	e := d.End
	r := Report{Forward: iperf3Half(e.Sum, e.Sent, e.Received), Back: iperf3Half(e.BackSum, e.BackSent, e.BackReceived)}
	if d.Start.Test.Reverse == 1 {
		r.Forward, r.Back = r.Back, r.Forward
	}
	return r, nil
}

func iperf3Half(sum, sent, received *iperf3Sum) (h Half) {
	if sent != nil && sent.Bps > 0 {
		h.Sent = &sent.Bps
	}
	if received != nil && received.Bps > 0 {
		h.Received = &received.Bps
		if sum != nil {
			h.Lost = sum.Lost
		}
	}
	return h
}

// Columns of iperf2's CSV (-y C): time, source and its port, destination and its port, number, interval,
// bytes, bit/s; for UDP also jitter, lost, all, percent, out of order.
const (
	csvSource  = 1
	csvRate    = 8
	csvLost    = 10
	csvTotal   = 11
	csvOfTCP   = 9
	csvStamped = 14 // digits of the time
)

// ReadIPerf2 reads the CSV rows in iperf2's output, at the client or at the server: the first ones of each
// direction, one row for each stream.
func ReadIPerf2(out []byte, server string, atServer bool, streams int) (Report, error) {
	var r Report
	var rows [2]int
	for line := range strings.Lines(string(out)) {
		f := strings.Split(strings.TrimSpace(line), ",")
		if len(f) < csvOfTCP || len(f[0]) != csvStamped {
			continue
		}
		bps, err := strconv.ParseFloat(f[csvRate], 64)
		if err != nil {
			return r, fmt.Errorf("interop: reading %q: %w", line, err)
		}
		fromServer := f[csvSource] == server
		half, seen := &r.Forward, &rows[0]
		if fromServer {
			half, seen = &r.Back, &rows[1]
		}
		if *seen++; *seen > streams {
			continue
		}
		if fromServer == atServer {
			half.Sent = plus(half.Sent, bps)
			continue
		}
		half.Received = plus(half.Received, bps)
		if len(f) > csvTotal && f[csvTotal] != "-1" {
			lost, err := strconv.ParseInt(f[csvLost], 10, 64)
			if err != nil {
				return r, fmt.Errorf("interop: reading %q: %w", line, err)
			}
			half.Lost = plus(half.Lost, lost)
		}
	}
	if rows == [2]int{} {
		return r, fmt.Errorf("interop: iperf printed no figures:\n%s", out)
	}
	return r, nil
}

// plus adds to a sum that may be unknown.
func plus[T int64 | float64](sum *T, x T) *T {
	if sum != nil {
		x += *sum
	}
	return &x
}

// ReadThru reads the document of `thru test --json`, the client being local.
func ReadThru(out []byte) (Report, error) {
	var d measure.Document
	if err := json.Unmarshal(out, &d); err != nil {
		return Report{}, fmt.Errorf("interop: reading the document of thru: %w\n%s", err, out)
	}
	if d.Error != nil {
		return Report{}, fmt.Errorf("interop: thru says: %s (%s)", d.Error.Message, d.Error.Hint)
	}
	return ThruReport(&d, false), nil
}

// ThruReport returns what a document of the client or of the server reports, without baselines.
func ThruReport(d *measure.Document, atServer bool) (r Report) {
	for _, c := range d.Cells {
		if c.Baseline || len(c.Runs) == 0 {
			continue
		}
		half := &r.Forward
		if (c.To == "local") != atServer {
			half = &r.Back
		}
		for _, f := range c.Runs[0].Flows {
			half.add(f)
		}
	}
	return r
}

func (h *Half) add(f measure.Flow) {
	if e := f.Sender; e != nil && e.MeasuredNs > 0 {
		h.Sent = plus(h.Sent, rateOf(e))
	}
	e := f.Receiver
	if e == nil || e.MeasuredNs == 0 {
		return
	}
	h.Received = plus(h.Received, rateOf(e))
	for _, s := range e.Streams {
		if s.DatagramsAll != nil {
			h.Lost = plus(h.Lost, s.DatagramsAll.Lost)
		} else if s.Datagrams != nil {
			h.Lost = plus(h.Lost, s.Datagrams.Lost)
		}
	}
}

func rateOf(e *measure.Evidence) float64 { return float64(e.Bytes) * 8e9 / float64(e.MeasuredNs) }

// figures returns the figures of a half, 0 if not reported.
func figures(h Half) (sent, received float64, lost int64) {
	lost = -1
	if h.Sent != nil {
		sent = *h.Sent
	}
	if h.Received != nil {
		received = *h.Received
	}
	if h.Lost != nil {
		lost = *h.Lost
	}
	return sent, received, lost
}

func checkHalf(t *testing.T, what string, h Half, sent, received float64, lost int64) {
	t.Helper()
	if s, r, l := figures(h); s != sent || r != received || l != lost {
		t.Errorf("%s: sent %v received %v lost %d, want %v %v %d", what, s, r, l, sent, received, lost)
	}
}

// TestReadIPerf3: a server prints zero for unknown values; of several documents the first counts.
func TestReadIPerf3(t *testing.T) {
	server := `{"start":{"test_start":{"reverse":0}},"end":{"sum":{"bits_per_second":0,"lost_packets":7},"sum_sent":{"bits_per_second":0},"sum_received":{"bits_per_second":9e8}}}
{"end":{}}`
	r, err := ReadIPerf3([]byte(server))
	if err != nil {
		t.Fatal(err)
	}
	checkHalf(t, "server", r.Forward, 0, 9e8, 7)
	reverse := `{"start":{"test_start":{"reverse":1}},"end":{"sum":{"lost_packets":0},"sum_sent":{"bits_per_second":5e8},"sum_received":{"bits_per_second":0}}}`
	if r, err = ReadIPerf3([]byte(reverse)); err != nil {
		t.Fatal(err)
	}
	checkHalf(t, "sending server", r.Back, 5e8, 0, -1)
	checkHalf(t, "sending server, forward", r.Forward, 0, 0, -1)
	bidir := `{"end":{"sum_sent":{"bits_per_second":1},"sum_received":{"bits_per_second":2},"sum_sent_bidir_reverse":{"bits_per_second":3},"sum_received_bidir_reverse":{"bits_per_second":4}}}`
	if r, err = ReadIPerf3([]byte(bidir)); err != nil {
		t.Fatal(err)
	}
	checkHalf(t, "forward", r.Forward, 1, 2, -1)
	checkHalf(t, "back", r.Back, 3, 4, -1)
	for _, bad := range []string{"", "iperf3: error", `{"error":"busy"}`} {
		if _, err := ReadIPerf3([]byte(bad)); err == nil {
			t.Errorf("%q is taken for a document", bad)
		}
	}
}

// TestReadIPerf2: the sender distinguishes the rows; as many count as there are streams.
func TestReadIPerf2(t *testing.T) {
	const out = `------------------------------------------------------------
Client connecting to 10.0.0.2, TCP port 5001
20261121184606,10.0.0.1,34966,10.0.0.2,5001,1,0.0-3.0,100,1000
20261121184606,10.0.0.1,34967,10.0.0.2,5001,2,0.0-3.0,100,2000
20261121184606,10.0.0.2,5001,10.0.0.1,34966,2,0.0-3.0,100,500
20261121184609,10.0.0.1,34968,10.0.0.2,5001,3,0.0-3.0,100,9000
`
	r, err := ReadIPerf2([]byte(out), "10.0.0.2", true, 2)
	if err != nil {
		t.Fatal(err)
	}
	checkHalf(t, "server, forward", r.Forward, 0, 3000, -1)
	checkHalf(t, "server, back", r.Back, 500, 0, -1)
	if r, err = ReadIPerf2([]byte(out), "10.0.0.2", false, 2); err != nil {
		t.Fatal(err)
	}
	checkHalf(t, "client, forward", r.Forward, 3000, 0, -1)
	checkHalf(t, "client, back", r.Back, 0, 500, -1)
	const udp = "20261121184606,10.0.0.1,57230,10.0.0.2,5001,1,0.0-1.0,6253800,50018895,0.001,3,4467,0.000,0\n"
	if r, err = ReadIPerf2([]byte(udp), "10.0.0.2", true, 1); err != nil {
		t.Fatal(err)
	}
	checkHalf(t, "UDP", r.Forward, 0, 50018895, 3)
	for _, bad := range []string{"", "connect failed: Connection refused\n", "20261121184606,a,1,b,2,1,0-1,5,x\n"} {
		if _, err := ReadIPerf2([]byte(bad), "10.0.0.2", true, 1); err == nil {
			t.Errorf("%q is taken for figures", bad)
		}
	}
}

const thruDoc = `{"cells":[
 {"from":"local","to":"iperf3://x","runs":[{"flows":[{"from":"local","to":"iperf3://x",
   "sender":{"bytes":1000,"measured_ns":1000000000},"receiver":{"bytes":900,"measured_ns":1000000000,"streams":[{"datagrams":{"lost_packets":1},"datagrams_all":{"lost_packets":2}}]}}]}]},
 {"from":"local","to":"iperf3://x","beside":true,"runs":[{"flows":[{"sender":{"bytes":1,"measured_ns":1}}]}]}]}`

func TestReadThru(t *testing.T) {
	r, err := ReadThru([]byte(thruDoc))
	if err != nil {
		t.Fatal(err)
	}
	if s, v, _ := figures(r.Forward); s != 8000 || v != 7200 {
		t.Errorf("sent %v, received %v", s, v)
	}
	if _, err := ReadThru([]byte(`{"error":{"message":"it broke"}}`)); err == nil || !strings.Contains(err.Error(), "it broke") {
		t.Errorf("error %v", err)
	}
}

func TestJudge(t *testing.T) {
	half := func(sent, received float64) Half { return Half{Sent: &sent, Received: &received} }
	for _, c := range []struct {
		client, server float64
		miss           bool
	}{{1e9, 0.975e9, false}, {1e9, 0.96e9, true}, {0.96e9, 1e9, true}} {
		client, server := Report{Forward: half(c.client, 0)}, Report{Forward: half(0, c.server)}
		rows := Judge("a -> b", Shape{Direction: Forward, Streams: 1}, client, server)
		if len(rows) != 1 || (rows[0].Miss != "") != c.miss {
			t.Errorf("%v and %v: %v", c.client, c.server, rows)
		}
	}
	rows := Judge("a -> b", Shape{Direction: Bidir, Streams: 1}, Report{Forward: half(1, 1)}, Report{Forward: half(1, 1)})
	if len(rows) != 2 || rows[0].Miss != "" || rows[1].Miss == "" {
		t.Errorf("an end that says nothing of the way back: %v", rows)
	}
}

func TestJudgeLoss(t *testing.T) {
	lost := func(n int64) Report { return Report{Forward: Half{Lost: &n}} }
	s := Shape{UDP: true, Direction: Forward, Streams: 1}
	for _, c := range []struct {
		client, server Report
		dropped        int64
		unplaced       int64
		miss           bool
	}{
		{lost(102), lost(102), 101, 0, false},
		{lost(100), Report{}, 101, 0, false},
		{lost(100), lost(100), 130, 0, true},
		{lost(100), lost(100), 90, 0, true},
		{lost(100), lost(100), 90, 10, false},
		{lost(100), lost(101), 100, 0, true},
		{Report{}, Report{}, 100, 0, true},
		{lost(0), lost(0), 0, 0, true},
	} {
		if r := JudgeLoss("a -> b", s, c.client, c.server, c.dropped, c.unplaced); (r.Miss != "") != c.miss {
			t.Errorf("%+v: %v", c, r)
		}
	}
}

// TestCommandLines: every shape has a command line in each program, and a unique name.
func TestCommandLines(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range Shapes() {
		if seen[s.String()] {
			t.Errorf("%s is there twice", s)
		}
		seen[s.String()] = true
	}
	for _, c := range []struct{ got, want string }{
		{strings.Join(ClientArgs(IPerf3, "h", 1, Shape{Direction: Bidir, Streams: 4}), " "), "-c h -p 1 -t 2 -P 4 --bidir -J"},
		{strings.Join(ClientArgs(IPerf2, "h", 1, Shape{Direction: Reverse, Streams: 1, UDP: true, Rate: 5, Seconds: 1}), " "), "-c h -p 1 -t 1 -P 1 -u -l 1400 -b 5 -R -y C"},
		{strings.Join(ServerArgs(IPerf2, 1, Shape{UDP: true}), " "), "-s -p 1 -u -l 1400 -y C"},
		{strings.Join(ThruArgs(IPerf2, "h", 1, Shape{Direction: Bidir, Streams: 1, NoRamp: true}), " "), "test --json -t 2 -P 1 -O 0 --bidir --one-connection iperf2://h:1"},
		{strings.Join(ThruArgs(IPerf3, "h", 1, Shape{Direction: Forward, Streams: 1}), " "), "test --json -t 2 -P 1 --one-way iperf3://h:1"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
	if LeftOut(IPerf2, Thru, Shape{UDP: true, Direction: Reverse}) == "" || LeftOut(Thru, IPerf2, Shape{UDP: true, Direction: Reverse}) != "" {
		t.Error("the wrong directions are left out")
	}
	if LeftOut(IPerf2, Thru, Shape{UDP: true, Direction: Bidir}) == "" || LeftOut(IPerf3, Thru, Shape{UDP: true, Direction: Bidir}) != "" {
		t.Error("the wrong shapes are left out")
	}
}
