package interop

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"thru/internal/measure"
)

// Half is what one program says of one direction, in bit/s of payload and in
// datagrams. Nil is not said.
type Half struct {
	Sent     *float64
	Received *float64
	Lost     *int64
}

// Report is what one program says of a test.
type Report struct {
	Forward Half // from the client to the server
	Back    Half
}

// iperf3Sum is a sum of iperf3's JSON document.
type iperf3Sum struct {
	Bps  float64 `json:"bits_per_second"`
	Lost *int64  `json:"lost_packets"`
}

// iperf3Doc is what is read of it.
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

// ReadIPerf3 reads what `iperf3 -J` printed, of a server the first test. It
// prints zero of what it does not know, losses among it: that is not said.
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

// Columns of iperf2's CSV (-y C): time, source and its port, destination and
// its port, number, interval, bytes, bit/s; of UDP also jitter, lost, all, percent, out of order.
const (
	csvSource  = 1
	csvRate    = 8
	csvLost    = 10
	csvTotal   = 11
	csvOfTCP   = 9
	csvStamped = 14 // digits of the time
)

// ReadIPerf2 reads the CSV rows of iperf2 among all that it printed, at the
// client or at the server: the first ones of each direction, a row a stream.
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

// plus adds to what may not be known yet.
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

// ThruReport is what a document of the client or of the server says; figures
// beside the test do not count.
func ThruReport(d *measure.Document, atServer bool) (r Report) {
	for _, c := range d.Cells {
		if c.Beside || len(c.Runs) == 0 {
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
