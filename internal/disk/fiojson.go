package disk

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"syscall"
	"time"

	"thru/internal/measure"
)

// fioState is fio's report of a step so far.
type fioState struct {
	bytes, ops int64
	elapsed    time.Duration
	latency    measure.Latency
}

// fioOutput is the part of fio's JSON that is read, as fio 3 prints it (its HOWTO, "JSON output"). Only one of the three directions has moved data.
type fioOutput struct {
	Jobs []struct {
		Error int     `json:"error"`
		Read  fioSide `json:"read"`
		Write fioSide `json:"write"`
	} `json:"jobs"`
}

type fioSide struct {
	Bytes   int64 `json:"io_bytes"`
	Runtime int64 `json:"runtime"` // ms
	Ops     int64 `json:"total_ios"`
	Latency struct {
		Min         float64            `json:"min"`
		Max         float64            `json:"max"`
		Mean        float64            `json:"mean"`
		Percentiles map[string]float64 `json:"percentile"`
	} `json:"lat_ns"`
}

// Limits for fio's output.
const (
	mostFioObject = 4 << 20
	mostFioStates = 100_000
)

// readFio reads the objects that fio prints one after the other, each of which ends on its own line. It skips the messages between them.
func readFio(r io.Reader, progress func(fioState)) ([]fioState, error) {
	var all []fioState
	var object bytes.Buffer
	s := bufio.NewScanner(r)
	s.Buffer(nil, mostFioObject)
	for s.Scan() {
		line := strings.TrimRight(s.Text(), "\r ")
		if object.Len() == 0 && line != "{" {
			continue
		}
		object.WriteString(line + "\n")
		if object.Len() > mostFioObject || len(all) >= mostFioStates {
			return all, errors.New("its output is too long")
		}
		if line != "}" {
			continue
		}
		state, err := parseFio(object.Bytes())
		if err != nil {
			return all, err
		}
		object.Reset()
		all = append(all, state)
		progress(state)
	}
	if err := s.Err(); err != nil {
		return all, err
	}
	if object.Len() > 0 {
		return all, errors.New("its output is truncated")
	}
	return all, nil
}

// parseFio reads one object.
func parseFio(b []byte) (fioState, error) {
	var o fioOutput
	if err := json.Unmarshal(b, &o); err != nil {
		return fioState{}, fmt.Errorf("reading its output: %w", err)
	}
	if len(o.Jobs) != 1 {
		return fioState{}, fmt.Errorf("it reports %d job groups instead of one", len(o.Jobs))
	}
	if n := o.Jobs[0].Error; n != 0 {
		return fioState{}, fmt.Errorf("its job failed: %w", syscall.Errno(max(n, 0)))
	}
	side := o.Jobs[0].Read
	if side.Ops == 0 {
		side = o.Jobs[0].Write
	}
	const most = math.MaxInt64 / int64(time.Millisecond)
	if side.Bytes < 0 || side.Ops < 0 || side.Runtime < 0 || side.Runtime > most {
		return fioState{}, errors.New("its figures are negative or implausible")
	}
	return fioState{side.Bytes, side.Ops, time.Duration(side.Runtime) * time.Millisecond, side.times()}, nil
}

// times returns fio's percentiles, from its own histogram: fio provides no other form that could be summed.
func (s fioSide) times() measure.Latency {
	ns := func(x float64) int64 { return int64(min(max(x, 0), float64(time.Hour))) }
	p := s.Latency.Percentiles
	return measure.Latency{
		Count: s.Ops, Min: ns(s.Latency.Min), Mean: ns(s.Latency.Mean), Max: ns(s.Latency.Max),
		P50: ns(p["50.000000"]), P90: ns(p["90.000000"]), P99: ns(p["99.000000"]), P999: ns(p["99.900000"]), P9999: ns(p["99.990000"]),
	}
}

// outcomeOf returns the figures of the last state; the states before it are the bins.
func outcomeOf(states []fioState) (outcome, error) {
	if len(states) == 0 {
		return outcome{}, errors.New("fio did not report the amount of data")
	}
	last := states[len(states)-1]
	if last.elapsed <= 0 || last.ops == 0 {
		return outcome{}, errors.New("fio reports that it moved no data")
	}
	o := outcome{bytes: last.bytes, ops: last.ops, elapsed: last.elapsed, latency: &last.latency}
	before := fioState{}
	for _, s := range states {
		if span := s.elapsed - before.elapsed; span >= 500*time.Millisecond && s.bytes >= before.bytes && s.ops >= before.ops {
			o.bins = append(o.bins, bin{s.bytes - before.bytes, s.ops - before.ops, span})
			before = s
		}
	}
	return o, nil
}
