package vsphere

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"thru/internal/measure"
)

// Limits of a long watch. A sample takes some 60 bytes of a result, and a
// result is limited to 64 MiB; a day of two guests and a host with many
// adapters has half a million samples without single CPUs.
const (
	mostKept    = 350_000 // samples, after which single CPUs are left out; after as many more, all
	busiestCPUs = 32      // of a host, whose samples are kept
)

// kept limits the samples of a watch.
type kept struct {
	most    int       // samples of the first stage; 0: mostKept
	samples int       // present number
	fewer   time.Time // since when single CPUs are left out
	full    time.Time // since when all samples are left out
}

// room reports whether there is room for a sample.
func (k *kept) room(singleCPU bool, now time.Time) bool {
	most := cmp.Or(k.most, mostKept)
	switch {
	case k.samples < most:
		return true
	case k.samples >= 2*most:
		k.full = first(k.full, now)
		return false
	case singleCPU:
		k.fewer = first(k.fewer, now)
		return false
	}
	return true
}

func first(t, now time.Time) time.Time {
	if t.IsZero() {
		return now
	}
	return t
}

// words reports since when samples are left out.
func (k *kept) words(source string) []measure.NotChecked {
	var out []measure.NotChecked
	for _, part := range []struct {
		since time.Time
		what  string
	}{{k.fewer, "samples of single CPUs are omitted"}, {k.full, "further samples are omitted"}} {
		if !part.since.IsZero() {
			out = append(out, measure.NotChecked{Fact: measure.CountersOf(source + " since " + part.since.Format(time.DateTime)),
				Why: fmt.Sprintf("%s: the limit of samples in a result is reached (%d)", part.what, k.samples)})
		}
	}
	return out
}

// add keeps a sample, unless it is known or was left out before.
func (p *perf) add(e *entity, row counter, instance string, s sample) {
	single := row.parts == ofCPUs && instance != ""
	if single && e.ref.Type == hostKind && !s.ended.After(e.pruned) {
		return
	}
	col := column{e.ref.Value, instance, row.ours, row.native}
	all := p.samples[col]
	i, _ := slices.BinarySearchFunc(all, s, func(a, b sample) int { return a.ended.Compare(b.ended) })
	for j := i; j < len(all) && all[j].ended.Equal(s.ended); j++ {
		if all[j].on == s.on { // the same sample is received repeatedly
			return
		}
	}
	if p.kept.room(single, p.now()) {
		p.samples[col], p.kept.samples = slices.Insert(all, i, s), p.kept.samples+1
	}
}

// prune leaves out the new samples of the least busy CPUs of hosts with many,
// by each CPU's maximum.
func (p *perf) prune() {
	for _, e := range p.entities {
		if e.ref.Type != hostKind {
			continue
		}
		var cpus []column
		for col := range p.samples {
			if col.of == e.ref.Value && col.counter == measure.CounterUsage && col.instance != "" {
				cpus = append(cpus, col)
			}
		}
		e.single = max(e.single, len(cpus))
		peak, newest := map[column]float64{}, e.pruned
		for _, col := range cpus {
			for _, s := range p.samples[col] {
				if !s.ended.After(e.pruned) {
					continue
				}
				peak[col] = max(peak[col], s.value)
				newest = later(newest, s.ended)
			}
		}
		slices.SortFunc(cpus, func(a, b column) int {
			return cmp.Or(cmp.Compare(peak[b], peak[a]), cmp.Compare(len(a.instance), len(b.instance)), strings.Compare(a.instance, b.instance))
		})
		for _, col := range cpus[min(len(cpus), busiestCPUs):] {
			p.drop(col, e.pruned)
		}
		e.pruned = newest
	}
}

// drop removes the samples of a column after a time.
func (p *perf) drop(col column, after time.Time) {
	n := len(p.samples[col])
	p.samples[col] = slices.DeleteFunc(p.samples[col], func(s sample) bool { return s.ended.After(after) })
	p.kept.samples -= n - len(p.samples[col])
	if len(p.samples[col]) == 0 {
		delete(p.samples, col)
	}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// pruned reports the hosts whose single CPUs were left out.
func pruned(all []*entity) []measure.NotChecked {
	var out []measure.NotChecked
	for _, e := range all {
		if e.single > busiestCPUs {
			out = append(out, measure.NotChecked{Fact: measure.CounterUsage + " of " + e.name,
				Why: fmt.Sprintf("of its %d CPUs, the %d busiest ones are listed", e.single, busiestCPUs)})
		}
	}
	return out
}
