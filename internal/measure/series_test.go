package measure

import (
	"strings"
	"testing"
	"time"
)

func TestFewSamples(t *testing.T) {
	const every = 20 * time.Second
	for _, c := range []struct {
		span  time.Duration
		every time.Duration
		want  string
	}{
		{10 * time.Second, every, "the test took 10 s, a sample covers 20 s: fewer than two"},
		{39*time.Second + 970*time.Millisecond, every, "took 40 s, a sample covers 20 s: fewer than two are within the test (a test of 60 s always has"},
		{40 * time.Second, every, ""},
		{3 * time.Second, time.Second, ""},
		{time.Second, 0, ""}, // nothing is known of the samples
	} {
		n, ok := FewSamples("vsphere://vc", c.span, c.every)
		if ok != (c.want != "") || !strings.Contains(n.Why, c.want) {
			t.Errorf("%v of %v: %v %q, want %q", c.span, c.every, ok, n.Why, c.want)
		}
	}
}

// TestWithin checks that Within leaves out a sample that extends beyond the span by more than a quarter of its interval.
func TestWithin(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(1_700_000_000, 0).Add(time.Duration(s) * time.Second) }
	s := Series{EveryNs: int64(20 * time.Second)}
	for i := 0; i <= 100; i += 20 {
		s.Samples = append(s.Samples, Reading{EndedAt: at(i), Value: float64(i)})
	}
	for _, c := range []struct{ begin, end, first, n int }{
		{20, 80, 40, 3}, {24, 76, 40, 3}, {26, 74, 60, 1}, {0, 19, 20, 1}, {0, 10, 0, 0},
	} {
		got := s.Within(at(c.begin), at(c.end))
		if len(got) != c.n || c.n > 0 && got[0].EndedAt != at(c.first) {
			t.Errorf("%d to %d: %v, want %d from %d", c.begin, c.end, got, c.n, c.first)
		}
	}
}
