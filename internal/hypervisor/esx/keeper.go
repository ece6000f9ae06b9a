package esx

import (
	"maps"
	"slices"
	"strings"
	"time"

	"thru/internal/measure"
)

// Limits of a watch, in samples: in a long watch two neighbouring samples
// become one. The host's single CPUs, which may be hundreds and whose total
// is known, have their own limit, so that they do not make other series
// coarser.
const (
	mostSamples = 150_000
	mostOfCPUs  = 30_000
)

// keeper keeps the series of a watch.
type keeper struct {
	series map[[3]string]*kept
	count  map[bool]int // samples: of the host's CPUs (true), and of all else
}

func newKeeper() keeper { return keeper{map[[3]string]*kept{}, map[bool]int{}} }

// kept is one series.
type kept struct {
	measure.Series
	ofCPU bool
	step  int     // readings per sample
	sum   float64 // of the readings of the incomplete sample
	n     int     // number of those
	span  time.Duration
	total int // readings, of which span is the mean
}

// rises reports whether a counter's values are counts per interval, and not a
// rate or a level.
func (k *kept) rises() bool { return strings.HasSuffix(k.Counter, "_packets") }

// add adds a value of a series.
func (k *keeper) add(of measure.Series, span time.Duration, x measure.Reading) {
	key := [3]string{of.Of, of.Instance, of.Counter}
	s := k.series[key]
	if s == nil {
		s = &kept{Series: of, step: 1, ofCPU: of.Of == hostID && of.Counter == measure.CounterUsage && of.Instance != ""}
		for _, other := range k.series {
			if other.ofCPU == s.ofCPU {
				s.step = other.step
				break
			}
		}
		k.series[key] = s
	}
	k.count[s.ofCPU] += s.take(span, x)
	most := mostSamples
	if s.ofCPU {
		most = mostOfCPUs
	}
	if k.count[s.ofCPU] > most {
		k.halve(s.ofCPU)
	}
}

// take adds a reading, and returns how many samples it completes.
func (s *kept) take(span time.Duration, x measure.Reading) int {
	s.total++
	s.span += (span - s.span) / time.Duration(s.total)
	s.sum, s.n = s.sum+x.Value, s.n+1
	if s.n < s.step {
		return 0
	}
	if !s.rises() {
		s.sum /= float64(s.n)
	}
	s.Samples = append(s.Samples, measure.Reading{EndedAt: x.EndedAt, Value: s.sum})
	s.sum, s.n = 0, 0
	return 1
}

// halve merges each two samples into one. A single one left over begins the
// next.
func (k *keeper) halve(ofCPU bool) {
	k.count[ofCPU] = 0
	for _, s := range k.series {
		if s.ofCPU != ofCPU {
			continue
		}
		all := s.Samples
		s.Samples = s.Samples[:0]
		for ; len(all) > 1; all = all[2:] {
			v := all[0].Value + all[1].Value
			if !s.rises() {
				v /= 2
			}
			s.Samples = append(s.Samples, measure.Reading{EndedAt: all[1].EndedAt, Value: v})
		}
		if len(all) == 1 {
			v := all[0].Value
			if !s.rises() {
				v *= float64(s.step)
			}
			s.sum, s.n = s.sum+v, s.n+s.step
		}
		s.step *= 2
		k.count[ofCPU] += len(s.Samples)
	}
}

// all returns the series that have samples, in order.
func (k *keeper) all() (list []measure.Series) {
	for _, key := range slices.SortedFunc(maps.Keys(k.series), func(a, b [3]string) int { return slices.Compare(a[:], b[:]) }) {
		s := k.series[key]
		s.EveryNs = s.span.Round(time.Second/10).Nanoseconds() * int64(s.step) // rounded, so that a continued run has the same value
		if len(s.Samples) > 0 {
			list = append(list, s.Series)
		}
	}
	return list
}
