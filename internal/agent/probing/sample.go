package probing

import (
	"strings"
	"time"

	"thru/internal/measure"
	"thru/internal/stamp"
	"thru/internal/watch/record"
)

// sampleOf returns what a summary says of a pair.
func sampleOf(x *sending, s stamp.Summary) record.Sample {
	r := record.Sample{
		Pair: x.pair(), Layer: record.Probe, Begin: s.Begin, Seconds: s.Span.Seconds(), ID: record.SampleID(x.pair(), record.Probe, s.Begin), Route: x.route,
		Values: map[record.Metric]float64{record.Sent: float64(s.Sent), record.TrafficBytes: float64(s.Bytes)},
	}
	r.State, r.Reason = stateOf(s)
	if s.Err != nil {
		r.Error = s.Err.Error()
	}
	if s.Sent == 0 {
		return r
	}
	r.Values[record.LossRatio] = float64(s.Lost) / float64(s.Sent)
	delays(r.Values, s)
	if s.MTU > 0 {
		r.Values[record.MTU] = float64(s.MTU)
	}
	if n, ok := stamp.Hops(s.TTLThere); ok {
		r.Values[record.Hops] = float64(n)
	}
	for _, run := range s.Runs {
		r.Gaps = append(r.Gaps, record.Gap{Begin: run.First, End: run.Next, Lost: run.Packets})
	}
	r.NotChecked = missing(x, s)
	return r
}

// stateOf says whether the path was up, or why nothing is known of it.
func stateOf(s stamp.Summary) (record.State, record.Reason) {
	switch {
	case s.Lost < s.Sent:
		return record.Up, ""
	case s.Sent > 0:
		return record.Down, record.NoAnswer
	case s.Jumped != 0 && s.Slept == 0:
		return record.NotMeasured, record.ClockJump
	case s.Slept+s.Stalled > 0:
		return record.NotMeasured, record.Slept
	}
	return record.NotMeasured, record.NoSample // the session ended before any packet had its verdict
}

// delays adds round trips and one-way delays.
func delays(values map[record.Metric]float64, s stamp.Summary) {
	set := func(m record.Metric, d time.Duration) { values[m] = float64(d.Nanoseconds()) }
	if s.RTT.N > 0 {
		set(record.RTTMin, s.RTT.Min)
		set(record.RTTMedian, s.RTT.Median)
		set(record.RTT99, s.RTT.P99)
	}
	if s.There.N > 0 && s.Bound < s.RTT.Median { // else the round trip says as much
		set(record.Delay, s.There.Median)
		set(record.DelayBound, s.Bound)
	}
}

// missing lists what a sample should have, and why it does not.
func missing(x *sending, s stamp.Summary) (all []measure.NotChecked) {
	add := func(metrics string, why string) {
		for m := range strings.FieldsSeq(metrics) {
			all = append(all, measure.NotChecked{Fact: m, Why: why})
		}
	}
	switch {
	case x.err != nil:
		add(string(record.MTU)+" "+string(record.Hops), x.err.Error())
	case s.MTU == 0 && s.Lost < s.Sent:
		add(string(record.MTU), "the search has not ended, or no full-size packet has passed")
	}
	return all
}
