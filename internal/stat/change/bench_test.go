package change

import (
	"math/rand/v2"
	"testing"
	"time"
)

// BenchmarkAdd adds samples to a detector whose memory is full.
func BenchmarkAdd(b *testing.B) {
	d, r := New(Options{}), rand.New(rand.NewPCG(1, 2))
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	next := func() {
		at = at.Add(time.Hour)
		d.Add(at, 1+0.03*r.NormFloat64())
	}
	for range 1200 {
		next()
	}
	for b.Loop() {
		next()
	}
}
