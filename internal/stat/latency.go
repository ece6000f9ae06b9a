package stat

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"thru/internal/measure"
)

// Limits of a histogram that is read, so that a foreign one takes no more memory than those that thru writes:
// HistogramDigits over all of 64 bits are 57 000 counts.
const (
	MaxHistogram     = 512 << 10          // bytes of its text
	HistogramDigits  = 3                  // significant decimal digits: 0.1%
	HistogramHighest = int64(time.Hour)   // ns; longer times count as this
	histogramHead    = 40                 // bytes before the counts (HdrHistogram V2)
	histogramCookie  = uint32(0x1c849304) // of the compressed V2 encoding, without its word size
	cookieMask       = ^uint32(0xf0)      // leaves the word size out
)

// NewHistogram returns an empty distribution of ns in the format of all thru ends.
func NewHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, HistogramHighest, HistogramDigits)
}

// DecodeHistogram reads Latency.Histogram. It refuses, before decoding, what is larger or finer than thru itself
// writes.
func DecodeHistogram(text string) (*hdrhistogram.Histogram, error) {
	if len(text) > MaxHistogram {
		return nil, fmt.Errorf("stat: reading a histogram: it has %d bytes; the limit is %d", len(text), MaxHistogram)
	}
	if err := checkHistogram(text); err != nil {
		return nil, fmt.Errorf("stat: reading a histogram: %w", err)
	}
	h, err := hdrhistogram.Decode([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("stat: reading a histogram: %w", err)
	}
	return h, nil
}

// checkHistogram checks the header of a histogram, which has its precision.
func checkHistogram(text string) error {
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return err
	}
	if len(raw) < 8 || binary.BigEndian.Uint32(raw)&cookieMask != histogramCookie {
		return errors.New("it is not in HdrHistogram's compressed V2 encoding")
	}
	z, err := zlib.NewReader(bytes.NewReader(raw[8:]))
	if err != nil {
		return err
	}
	var head [histogramHead]byte
	if _, err := io.ReadFull(z, head[:]); err != nil {
		return err
	}
	if digits := int32(binary.BigEndian.Uint32(head[12:])); digits < 0 || digits > HistogramDigits {
		return fmt.Errorf("it has %d significant digits; the limit is %d", digits, HistogramDigits)
	}
	return nil
}

// EncodeHistogram writes what DecodeHistogram reads.
func EncodeHistogram(h *hdrhistogram.Histogram) (string, error) {
	text, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		return "", fmt.Errorf("stat: writing a histogram: %w", err)
	}
	return string(text), nil
}

// LatencyOf returns the summary of a distribution of ns. Min, mean and max are as exact as the histogram; a caller
// with exact values sets them.
func LatencyOf(h *hdrhistogram.Histogram) measure.Latency {
	l := measure.Latency{Count: h.TotalCount(), Min: h.Min(), Max: h.Max(), Mean: int64(math.Round(h.Mean()))}
	for _, q := range []struct {
		pct float64
		to  *int64
	}{{50, &l.P50}, {90, &l.P90}, {99, &l.P99}, {99.9, &l.P999}, {99.99, &l.P9999}} {
		*q.to = h.ValueAtPercentile(q.pct)
	}
	return l
}

// MergeLatency merges the distributions of several ends or runs by adding their histograms; percentiles cannot be
// added. A single one stays as it is. why says what had to be left out; if merged is nil, why there is none.
func MergeLatency(all []*measure.Latency) (merged *measure.Latency, why string) {
	if len(all) == 1 {
		l := *all[0]
		if l.Histogram != "" {
			if _, err := DecodeHistogram(l.Histogram); err != nil {
				l.Histogram, why = "", err.Error()
			}
		}
		return &l, why
	}
	sum := NewHistogram()
	var used []*measure.Latency
	for _, l := range all {
		h, err := DecodeHistogram(l.Histogram)
		if err != nil {
			why = "a histogram could not be read and is excluded: " + err.Error()
			continue
		}
		if sum.Merge(h) > 0 {
			why = fmt.Sprintf("times over %v could not be merged", time.Duration(HistogramHighest))
		}
		used = append(used, l)
	}
	if len(used) == 0 {
		return nil, why
	}
	l := LatencyOf(sum)
	exactEnds(&l, used)
	if text, err := EncodeHistogram(sum); err == nil {
		l.Histogram = text
	}
	return &l, why
}

// exactEnds takes the values that the ends know more exactly than their histograms: the extremes, the mean, and
// the requests without a response.
func exactEnds(l *measure.Latency, used []*measure.Latency) {
	l.Min, l.Max = used[0].Min, used[0].Max
	total, n := 0.0, 0.0
	for _, u := range used {
		l.Min, l.Max = min(l.Min, u.Min), max(l.Max, u.Max)
		addTo(&l.Errors, u.Errors)
		total += float64(u.Mean) * float64(max(u.Count, 0))
		n += float64(max(u.Count, 0))
	}
	if m := whole(ratio(total, n)); m != nil {
		l.Mean = *m
	}
}

// CurvePoint is a point of a distribution: this share of the requests took at most this long.
type CurvePoint struct {
	Nines float64 // -log10 of the share that took longer: 1 is 90%, 2 is 99%
	Ns    float64
}

// curveSteps is how many points a nine has.
const curveSteps = 12

// LatencyCurve returns a distribution over its percentiles, as far as its count allows. Without a readable
// histogram it has only the percentiles.
func LatencyCurve(l *measure.Latency) []CurvePoint {
	h, err := DecodeHistogram(l.Histogram)
	if err != nil || h.TotalCount() == 0 {
		return []CurvePoint{{0, float64(l.Min)}, {math.Log10(2), float64(l.P50)}, {1, float64(l.P90)}, {2, float64(l.P99)}, {3, float64(l.P999)}, {4, float64(l.P9999)}}
	}
	var curve []CurvePoint
	most := min(math.Log10(float64(h.TotalCount())), 6)
	for i := 0; float64(i)/curveSteps <= most; i++ {
		nines := float64(i) / curveSteps
		curve = append(curve, CurvePoint{nines, float64(h.ValueAtPercentile(100 * (1 - math.Pow(10, -nines))))})
	}
	return curve
}

// latency fills the distribution over all streams and the runs that count. If none of several has a histogram, it
// is that of the last run.
func (s *summary) latency() {
	var all []*measure.Latency
	for _, p := range s.runs {
		if p.sender != nil && p.sender.Latency != nil && p.sender.Latency.Count > 0 {
			all = append(all, p.sender.Latency)
		}
	}
	if len(all) == 0 {
		s.missing("latency", s.why(senderSide, "latency", "the client measured no times"))
		return
	}
	l, why := MergeLatency(all)
	if l == nil {
		l = new(*all[len(all)-1])
		l.Histogram = ""
		why = "it covers only the last run: " + why
	}
	if why != "" {
		s.missing("latency.histogram", why)
	}
	s.cell.Latency = l
}

// LatencyUnderLoad fills UnderLoad of every bulk cell with concurrent requests. It is called once, over all cells:
// loaded are the requests of the same group between the same two end points, idle those that ran alone between
// them, or without concurrent traffic.
//
// Responsiveness is in round trips per minute, as in draft-ietf-ippm-responsiveness, with these differences: the
// requests use connections of their own that stay open, not those that carry the load, and neither the handshakes
// of TCP and TLS nor HTTP are part of them; so it shows only the delay of queues and hosts. The mean is over all
// requests and not trimmed.
func LatencyUnderLoad(cells []measure.Cell) {
	for i := range cells {
		c := &cells[i]
		c.UnderLoad = nil
		if asks(c) || c.Goodput == nil {
			continue
		}
		loaded, held := askers(cells, c, func(x *measure.Cell) bool { return x.Group == c.Group })
		if loaded == nil {
			continue
		}
		if !held {
			c.Missing = append(c.Missing, measure.NotChecked{Fact: "latency_under_load",
				Why: "the requests during the traffic could not be sent on time: their times are mostly the wait for each other"})
			continue
		}
		idle, _ := askers(cells, c, func(x *measure.Cell) bool { return x.AtOnce == 1 || x.Baseline })
		c.UnderLoad = underLoad(idle, loaded)
	}
}

// askers finds the latency of requests between the end points of a cell, and whether they met their scheduled
// rate.
func askers(cells []measure.Cell, c *measure.Cell, fits func(*measure.Cell) bool) (found *measure.Latency, held bool) {
	for i := range cells {
		x := &cells[i]
		same := x.From == c.From && x.To == c.To || x.From == c.To && x.To == c.From
		if asks(x) && same && x.Latency != nil && x.Latency.Count > 0 && fits(x) {
			l := *x.Latency
			l.Histogram = "" // it is in the cell of the requests
			return &l, x.Transactions == nil || x.Transactions.Value >= askedRate(x)*leastMetPct/100
		}
	}
	return nil, false
}

// askedRate returns the requests per second that all streams of a cell were to send; 0 is back to back.
func askedRate(c *measure.Cell) float64 { return c.Spec.PerSecond * float64(max(c.Spec.Streams, 1)) }

// gradeOf grades the delay that traffic adds, like the bufferbloat test of Waveform (A+ below 5 ms, A 30, B 60, C
// 200, D 400): thresholds for games and calls, not for a data center.
func gradeOf(addedNs int64) string {
	grades := []string{"A+", "A", "B", "C", "D"}
	for i, most := range []int64{5e6, 30e6, 60e6, 200e6, 400e6} {
		if addedNs < most {
			return grades[i]
		}
	}
	return "F"
}

func underLoad(idle, loaded *measure.Latency) *measure.UnderLoad {
	u := measure.UnderLoad{Idle: idle, Loaded: loaded}
	if idle != nil {
		u.AddedNs = whole(float64(loaded.P50) - float64(idle.P50))
		u.Grade = gradeOf(*u.AddedNs)
	}
	if loaded.Mean > 0 {
		u.Responsiveness = Known(60e9 / float64(loaded.Mean))
	}
	return &u
}
