package worker

import (
	"bytes"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"thru/internal/measure"
)

func exampleSample() sample {
	return sample{Why: atMark | atInterval, At: -3 * time.Second, Streams: []streamSample{
		{Bytes: 1 << 40, Calls: 7, WallNs: 5, RunNs: notKnown, Wait: 9, Info: []byte{1, 2, 3}},
		{Bytes: 2, Info: []byte{}},
	}}
}

func TestSampleRoundTrip(t *testing.T) {
	want := exampleSample()
	got, err := parseSample(want.append(nil))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestSampleCutAnywhere(t *testing.T) {
	s := exampleSample()
	b := s.append(nil)
	for n := range b {
		if _, err := parseSample(b[:n]); err == nil {
			t.Errorf("%d of %d bytes were taken for a sample", n, len(b))
		}
	}
	if _, err := parseSample(append(b, 0)); err == nil {
		t.Error("a byte too many was not noticed")
	}
}

func TestFrameBounds(t *testing.T) {
	var b bytes.Buffer
	w := frameWriter{w: &b}
	if err := w.json(frameStart, startCommand{RampNs: 5}); err != nil {
		t.Fatal(err)
	}
	kind, payload, err := readFrame(bytes.NewReader(b.Bytes()))
	if err != nil || kind != frameStart || string(payload) != `{"ramp_ns":5}` {
		t.Errorf("%c %s %v", kind, payload, err)
	}
	if _, _, err := readFrame(bytes.NewReader(b.Bytes()[:7])); err == nil || err == io.EOF {
		t.Errorf("a cut frame gives %v", err)
	}
	if _, _, err := readFrame(bytes.NewReader([]byte{0xff, 0, 0, 0, 'T'})); err == nil {
		t.Error("a frame of 4 GB was accepted")
	}
	if _, _, err := readFrame(bytes.NewReader(nil)); err != io.EOF {
		t.Errorf("a closed pipe gives %v", err)
	}
}

// A sample of the maximum number of streams fits into a frame, and the worker allocates nothing for it.
func TestSampleOfManyStreams(t *testing.T) {
	s := sample{Streams: make([]streamSample, measure.MaxStreams)}
	for i := range s.Streams {
		s.Streams[i].Info = make([]byte, 320)
	}
	b := s.append(nil)
	if len(b) > maxFrame {
		t.Errorf("%d bytes", len(b))
	}
	if n := testing.AllocsPerRun(10, func() { b = s.append(b[:0]) }); n != 0 {
		t.Errorf("%v allocations for one sample", n)
	}
}

func FuzzReadFrame(f *testing.F) {
	s := exampleSample()
	f.Add(append([]byte{0, 0, 0, 2, 'T'}, s.append(nil)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, payload, err := readFrame(bytes.NewReader(b))
		if err == nil && len(payload) > len(b) {
			t.Error("more payload than input")
		}
		parseSample(b)
	})
}

func FuzzSample(f *testing.F) {
	s := exampleSample()
	f.Add(s.append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := parseSample(b)
		if err != nil {
			return
		}
		if !bytes.Equal(s.append(nil), b) {
			t.Error("a sample does not encode as it was read")
		}
	})
}
