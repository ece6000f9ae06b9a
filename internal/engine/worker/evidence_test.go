package worker

import (
	"sync/atomic"
	"testing"
	"time"

	"thru/internal/engine"
)

func reading(why byte, at time.Duration, bytes ...int64) sample {
	s := sample{Why: why, At: at}
	for _, b := range bytes {
		s.Streams = append(s.Streams, streamSample{Bytes: b, Calls: b / 10, WallNs: int64(at), RunNs: int64(at) / 4, Wait: int64(at) / 4})
	}
	return s
}

// Bytes in the ramp and after the end are in the total, not in the measured bytes.
func TestEvidenceLeavesRampOut(t *testing.T) {
	v := newEvidence(engine.End{Name: "x"}, true)
	for _, s := range []sample{
		reading(atInterval|atMark, 0, 100, 10),
		reading(atInterval|atBin, time.Second, 300, 20),
		reading(atInterval|atBin|atFinish, 2*time.Second, 700, 40),
		reading(atClose, 3*time.Second, 1000, 50),
	} {
		v.add(s)
	}
	e := v.document()
	if e.Bytes != 630 || e.TotalBytes != 1050 || e.MeasuredNs != int64(2*time.Second) {
		t.Errorf("bytes %d, total %d, measured %d", e.Bytes, e.TotalBytes, e.MeasuredNs)
	}
	if len(e.Bins) != 2 || e.Bins[0].Bytes != 210 || e.Bins[1].Bytes != 420 || e.Bins[1].Streams[0] != 400 {
		t.Errorf("bins %+v", e.Bins)
	}
	if s := e.Streams[0]; s.Bytes != 600 || s.TotalBytes != 1000 || s.Calls != 60 {
		t.Errorf("stream %+v", s)
	}
	if s := e.Streams[0]; *s.BlockedNs != int64(time.Second) || *s.RunNs != int64(time.Second)/2 {
		t.Errorf("of 2 s: blocked %d, on a CPU %d", *s.BlockedNs, *s.RunNs)
	}
}

// An end that stops early keeps the seconds until then.
func TestEvidenceStopsEarly(t *testing.T) {
	v := newEvidence(engine.End{Name: "x"}, true)
	v.add(reading(atInterval|atMark, 0, 0))
	v.add(reading(atInterval|atBin, time.Second, 500))
	ups := v.add(reading(atInterval|atBin|atFinish, 1500*time.Millisecond, 600))
	if e := v.document(); len(e.Bins) != 2 || e.Bytes != 600 || e.MeasuredNs != int64(1500*time.Millisecond) {
		t.Errorf("%+v", e)
	}
	if len(ups) != 3 || ups[0].Bytes != 100 || ups[0].Span != 500*time.Millisecond {
		t.Errorf("updates %+v", ups)
	}
}

func TestPacerHoldsItsRate(t *testing.T) {
	p := newPacer(8e6, new(atomic.Bool)) // a byte a microsecond
	begin := time.Now()
	for range 100 {
		p.after(1000) // 100 ms of bytes, minus the bucket
	}
	if took := time.Since(begin); took < 90*time.Millisecond {
		t.Errorf("100 ms of bytes passed in %v", took)
	}
}
