package iperf3

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// results are the figures that each end reports about itself after the test.
type results struct {
	CPUTotal    float64 // percent of one CPU over the test
	CPUUser     float64
	CPUSystem   float64
	Retransmits bool   // this end sends, and counts retransmissions
	Congestion  string // congestion control that was used
	Output      string // output of the server, where requested
	Cut         int    // bytes of the whole output, where its end is cut; else 0
	Version     string // of the server, where its output names it
	Streams     []streamResult
}

// streamResult is one end of one stream. Bytes and times cover the time that counts; errors and packets cover the whole life of the stream.
type streamResult struct {
	ID          int
	Bytes       int64
	Retransmits int64   // -1: not known
	Jitter      float64 // seconds, at a receiver of UDP
	Errors      int64   // datagrams lost, at a receiver
	Packets     int64   // datagrams sent, or the highest number received
	// In the time that does not count; nil for old versions.
	OmittedErrors, OmittedPackets *int64
	Start, End                    float64 // seconds
}

// resultsJSON is the JSON that both roles write. Old versions require every key of it.
type resultsJSON struct {
	CPUTotal   float64      `json:"cpu_util_total"`
	CPUUser    float64      `json:"cpu_util_user"`
	CPUSystem  float64      `json:"cpu_util_system"`
	Has        int          `json:"sender_has_retransmits"`
	Congestion string       `json:"congestion_used,omitempty"`
	Output     string       `json:"server_output_text,omitempty"`
	Streams    []streamJSON `json:"streams"`
}

type streamJSON struct {
	ID             int     `json:"id"`
	Bytes          int64   `json:"bytes"`
	Retransmits    int64   `json:"retransmits"`
	Jitter         float64 `json:"jitter"`
	Errors         int64   `json:"errors"`
	OmittedErrors  int64   `json:"omitted_errors"`
	Packets        int64   `json:"packets"`
	OmittedPackets int64   `json:"omitted_packets"`
	Start          float64 `json:"start_time"`
	End            float64 `json:"end_time"`
}

// json returns the results as they are sent.
func (r results) json() resultsJSON {
	j := resultsJSON{
		CPUTotal: r.CPUTotal, CPUUser: r.CPUUser, CPUSystem: r.CPUSystem, Has: -1,
		Congestion: r.Congestion, Output: r.Output, Streams: []streamJSON{},
	}
	if r.Retransmits {
		j.Has = 1
	}
	for _, s := range r.Streams {
		x := streamJSON{ID: s.ID, Bytes: s.Bytes, Retransmits: s.Retransmits, Jitter: s.Jitter, Errors: s.Errors, Packets: s.Packets, Start: s.Start, End: s.End}
		if s.OmittedErrors != nil && s.OmittedPackets != nil {
			x.OmittedErrors, x.OmittedPackets = *s.OmittedErrors, *s.OmittedPackets
		}
		j.Streams = append(j.Streams, x)
	}
	return j
}

// readResults reads the far end's results; known are the streams of the test, each of which must occur once. It keeps at most output bytes of the far end's
// output, and only valid names: they go into the evidence.
func readResults(b []byte, known []int, output int) (results, error) {
	var j struct {
		CPUTotal   *loose          `json:"cpu_util_total"`
		CPUUser    *loose          `json:"cpu_util_user"`
		CPUSystem  *loose          `json:"cpu_util_system"`
		Has        *loose          `json:"sender_has_retransmits"`
		Congestion text            `json:"congestion_used"`
		Output     text            `json:"server_output_text"`
		OutputJSON json.RawMessage `json:"server_output_json"`
		Streams    json.RawMessage `json:"streams"`
	}
	if err := json.Unmarshal(b, &j); err != nil {
		return results{}, refuse(codeResults, "reading results: %w", err)
	}
	r := results{
		CPUTotal: j.CPUTotal.float(), CPUUser: j.CPUUser.float(), CPUSystem: j.CPUSystem.float(), Retransmits: j.Has.whole() > 0,
	}
	if name := string(j.Congestion); isName(name) {
		r.Congestion = strings.Clone(name)
	}
	r.keep(string(j.Output), output)
	if len(j.OutputJSON) > 0 && string(j.OutputJSON) != "null" {
		r.keep(string(j.OutputJSON), output)
		r.Version = versionIn(j.OutputJSON)
	}
	var err error
	if r.Streams, err = readStreams(j.Streams, known); err != nil {
		return results{}, refuse(codeResults, "reading results: %w", err)
	}
	return r, nil
}

// keep stores an output of at most most bytes: the beginning of a longer text, nothing of a longer JSON, because a part of it is invalid. With most 0 it
// stores nothing, and counts nothing as cut.
func (r *results) keep(output string, most int) {
	r.Output, r.Cut = output, 0
	if len(output) <= most {
		return
	}
	if r.Cut = len(output); most == 0 {
		r.Cut = 0
	}
	if strings.HasPrefix(strings.TrimSpace(output), "{") {
		most = 0
	}
	r.Output = strings.Clone(strings.ToValidUTF8(output[:most], ""))
}

// readStreams reads a list of streams one by one. It ignores streams after the known ones, and invalid ones among them.
func readStreams(b []byte, known []int) (all []streamResult, err error) {
	open := map[int]bool{}
	for _, id := range known {
		open[id] = true
	}
	list := json.NewDecoder(bytes.NewReader(b))
	if first, err := list.Token(); err != nil || first != json.Delim('[') {
		return nil, fmt.Errorf("the streams are not a list")
	}
	for list.More() {
		var x looseStream
		if err := list.Decode(&x); err != nil {
			return nil, err
		}
		s, err := x.read()
		if err != nil {
			return nil, err
		}
		if !open[s.ID] {
			return nil, fmt.Errorf("stream %d is not of this test, or is repeated", s.ID)
		}
		delete(open, s.ID)
		all = append(all, s)
	}
	if len(open) > 0 {
		return nil, fmt.Errorf("%d of %d streams are missing", len(open), len(known))
	}
	return all, nil
}

// versionIn returns the version that a server's own output names; empty where it names none.
func versionIn(output []byte) string {
	var o struct {
		Start struct {
			Version text `json:"version"`
		} `json:"start"`
	}
	if json.Unmarshal(output, &o) != nil {
		return ""
	}
	version, _ := strings.CutPrefix(string(o.Start.Version), "iperf ")
	if !isVersion(version) {
		return ""
	}
	return version
}

// looseStream is a stream as any version writes it.
type looseStream struct {
	ID             *loose `json:"id"`
	Bytes          *loose `json:"bytes"`
	Retransmits    *loose `json:"retransmits"`
	Jitter         *loose `json:"jitter"`
	Errors         *loose `json:"errors"`
	OmittedErrors  *loose `json:"omitted_errors"`
	Packets        *loose `json:"packets"`
	OmittedPackets *loose `json:"omitted_packets"`
	Start          *loose `json:"start_time"`
	End            *loose `json:"end_time"`
}

func (x looseStream) read() (streamResult, error) {
	if x.ID == nil || x.Bytes == nil {
		return streamResult{}, fmt.Errorf("a stream has no id, or no bytes")
	}
	s := streamResult{
		ID: int(x.ID.whole()), Bytes: x.Bytes.whole(), Retransmits: -1, Jitter: x.Jitter.float(),
		Errors: max(x.Errors.whole(), 0), Packets: max(x.Packets.whole(), 0), Start: x.Start.float(), End: x.End.float(),
	}
	if x.Retransmits != nil {
		s.Retransmits = max(x.Retransmits.whole(), -1)
	}
	if x.OmittedErrors != nil && x.OmittedPackets != nil && x.OmittedErrors.whole() >= 0 {
		s.OmittedErrors, s.OmittedPackets = new(x.OmittedErrors.whole()), new(max(x.OmittedPackets.whole(), 0))
	}
	switch {
	case s.Bytes < 0:
		return s, fmt.Errorf("stream %d reports %d bytes", s.ID, s.Bytes)
	case s.Jitter < 0 || s.Jitter > mostTime:
		s.Jitter = 0
	}
	return s, nil
}

// loose is a number in any form that a version writes: some write -1 as 18446744073709551615. Anything that is no number is 0.
type loose struct {
	n int64
	f float64
}

// UnmarshalJSON reads numbers, and numbers in quotes.
func (l *loose) UnmarshalJSON(b []byte) error {
	s := strings.Trim(string(b), `"`)
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		*l = loose{n, float64(n)}
		return nil
	}
	if n, err := strconv.ParseUint(s, 10, 64); err == nil {
		*l = loose{int64(n), float64(int64(n))}
		return nil
	}
	f, err := strconv.ParseFloat(s, 64)
	switch {
	case err != nil && string(b) != "null":
		return fmt.Errorf("%.40s is not a number", b)
	case err != nil, math.IsNaN(f), math.IsInf(f, 0):
		f = 0
	}
	*l = loose{int64(min(max(f, -1<<62), 1<<62)), f}
	return nil
}

// float returns the number; 0 without one.
func (l *loose) float() float64 {
	if l == nil {
		return 0
	}
	return l.f
}

// whole returns the number without its fraction.
func (l *loose) whole() int64 {
	if l == nil {
		return 0
	}
	return l.n
}

// text is a string; any other JSON value is empty.
type text string

// UnmarshalJSON never fails.
func (t *text) UnmarshalJSON(b []byte) error {
	var s string
	if json.Unmarshal(b, &s) == nil {
		*t = text(s)
	}
	return nil
}
