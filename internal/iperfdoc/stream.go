package iperfdoc

import (
	"encoding/json"
	"fmt"
	"io"
)

// Stream prints a running test, one JSON object per line, like `iperf3 --json-stream`: {"event":"start","data":{...}}, then "interval", "end", and where there
// is one "server_output_text", "server_output_json" or "error". Each line is one Write. It is not for concurrent use.
type Stream struct {
	w        io.Writer
	protocol string
	server   bool
	begun    bool
	over     bool
}

// NewStream returns a printer to w.
func NewStream(w io.Writer) *Stream { return &Stream{w: w} }

// event is one line.
type event struct {
	Event string `json:"event"`
	Data  any    `json:"data"`
}

func (s *Stream) print(name string, data any) error {
	line, err := encode(event{name, data}, "")
	if err != nil {
		return err
	}
	if _, err := s.w.Write(line); err != nil {
		return fmt.Errorf("iperfdoc: writing an event: %w", err)
	}
	return nil
}

// Start prints the test; all connections are made.
func (s *Stream) Start(t Test) error {
	s.protocol, s.server, s.begun = t.Protocol, t.Server, true
	return s.print("start", t.json())
}

// Interval prints the figures since the last one.
func (s *Stream) Interval(i Interval) error { return s.print("interval", i.json(s.protocol)) }

// End prints the totals, after the far end's output. It must come last.
func (s *Stream) End(e End) error {
	s.over = true
	if e.ServerJSON != "" && json.Valid([]byte(e.ServerJSON)) {
		if err := s.print("server_output_json", json.RawMessage(e.ServerJSON)); err != nil {
			return err
		}
	}
	if e.ServerText != "" {
		if err := s.print("server_output_text", e.ServerText); err != nil {
			return err
		}
	}
	return s.print("end", e.json(s.protocol, s.server))
}

// Fail prints why a test ended early. An empty end follows where none was printed, because readers wait for it.
func (s *Stream) Fail(message string) error {
	if err := s.print("error", message); err != nil || s.over {
		return err
	}
	s.over = true
	return s.print("end", struct{}{})
}
