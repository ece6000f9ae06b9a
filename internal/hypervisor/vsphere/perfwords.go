package vsphere

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/vmware/govmomi/vim25/types"

	"thru/internal/measure"
)

// namedTogether is how many names one sentence lists.
const namedTogether = 4

// left reports the gaps of a reading from begin to end.
func (p *perf) left(begin, end time.Time, read []measure.Series) []measure.NotChecked {
	out := p.clockWords()
	out = append(out, p.clockUnknown()...)
	for _, id := range p.unknown {
		out = append(out, measure.NotChecked{Fact: measure.CountersOf(id), Why: "no guest or host has this id, or the account may not see it"})
	}
	out = append(out, p.kept.words(p.c.Name())...)
	out = append(out, pruned(p.entities)...)
	out = append(out, p.moved()...)
	out = append(out, grouped(measure.CountersOf(""), p.entities, func(e *entity) string { return p.missing(e, end) })...)
	out = append(out, grouped(measure.CountersOf(""), p.entities, func(e *entity) string { return unbegun(e, begin, read) })...)
	return append(out, p.absent(read)...)
}

// longest returns the longest sampling interval.
func (p *perf) longest() time.Duration {
	return time.Duration(slices.Max(slices.Collect(maps.Values(p.every)))) * time.Second
}

// missing returns why an entity was not read until the end; "" where it was.
func (p *perf) missing(e *entity, end time.Time) string {
	age := p.now().Sub(e.upTo).Round(time.Second)
	switch {
	case e.off != "":
		return e.off
	case e.odd != nil:
		return "its answer cannot be read fully: " + e.odd.Error()
	case e.err != nil && !e.read:
		return "not read: " + p.why(e.err)
	case e.err != nil && e.upTo.Before(end):
		return fmt.Sprintf("not read in the last %s: %s", seconds(age), p.why(e.err))
	case len(e.asked) == 0:
		return "it offers no counter that thru knows"
	case !e.read:
		return "no sample arrived: " + p.slow()
	case e.upTo.Before(end):
		return fmt.Sprintf("the last sample is %s old: %s", seconds(age), p.slow())
	}
	return ""
}

// unbegun reports how much of the beginning is missing: the guest had moved,
// or was started later.
func unbegun(e *entity, begin time.Time, read []measure.Series) string {
	var first time.Time
	for _, s := range read {
		if at := s.Samples[0].EndedAt.Add(-time.Duration(s.EveryNs)); s.Of == e.ref.Value && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	if gap := first.Sub(begin); !first.IsZero() && gap > clockNoted {
		return "no sample of the first " + seconds(gap)
	}
	return ""
}

// slow names the source of late samples.
func (p *perf) slow() string {
	if p.c.vim.IsVC() {
		return "vCenter is slower than the test"
	}
	return "the host is slower than the test"
}

// moved reports the guests that have changed hosts.
func (p *perf) moved() []measure.NotChecked {
	name := func(id string) string {
		if h := p.hosts[id]; h != nil {
			return h.name
		}
		return id
	}
	return grouped("host of ", p.entities, func(e *entity) string {
		if e.first == e.on || e.on == "" || e.first == "" {
			return ""
		}
		return fmt.Sprintf("it moved from %s to %s during the test: earlier samples may be missing, and thru reads the counters of %s only if that host is part of the test", name(e.first), name(e.on), name(e.on))
	})
}

// absent names the counters that entities with samples do not have.
func (p *perf) absent(read []measure.Series) []measure.NotChecked {
	have, any := map[[2]string]bool{}, map[string]bool{}
	for _, s := range read {
		have[[2]string{s.Of, s.Counter}], any[s.Of] = true, true
	}
	return grouped(measure.CountersOf(""), p.entities, func(e *entity) string {
		if !e.read {
			return ""
		}
		if !any[e.ref.Value] {
			return "no sample is within the test"
		}
		var offered, silent []string
		for _, row := range firsts(e.ref.Type) {
			if have[[2]string{e.ref.Value, row.ours}] {
				continue
			}
			if slices.ContainsFunc(e.asked, func(m types.PerfMetricId) bool { return p.byID[m.CounterId].ours == row.ours }) {
				silent = append(silent, row.native)
			} else {
				offered = append(offered, row.native)
			}
		}
		var why []string
		if len(offered) > 0 {
			why = append(why, "not offered: "+strings.Join(offered, ", "))
		}
		if len(silent) > 0 {
			why = append(why, "without a value in this time: "+strings.Join(silent, ", "))
		}
		return strings.Join(why, "; ")
	})
}

// clockWords reports the clocks that differ from ours, or were set meanwhile.
func (p *perf) clockWords() []measure.NotChecked {
	var out []measure.NotChecked
	add := func(n measure.NotChecked, ok bool) {
		if ok {
			out = append(out, n)
		}
	}
	if p.source.known {
		add(p.source.ended.words(p.source.name, "thru corrected its times"))
	}
	for _, h := range p.stampers() {
		own := h.known && p.ownClock(h)
		switch {
		case own:
			add(h.ended.words(h.name, "thru corrected the times of its samples"))
			add(h.ended.stepped(h.begun, h.name))
		case h.known && h.age(h.ended) < 0:
			add(measure.NotChecked{Fact: "clock of " + h.name, Why: "by this clock, samples were taken after they were read: thru uses the clock of " + p.source.name}, true)
		case h.known:
			add(measure.NotChecked{Fact: "clock of " + h.name, Why: fmt.Sprintf("by this clock, the newest sample was %s old when it was read, by that of %s %s: thru uses the latter",
				seconds(h.age(h.ended)), p.source.name, seconds(max(0, h.age(p.source.ended))))}, true)
		}
		if !own && h.sampled && h.age(p.source.ended) < -(clockNoted+p.source.ended.bound) {
			add(measure.NotChecked{Fact: "times of the samples of " + h.name, Why: fmt.Sprintf("by the clock of %s, samples were taken after they were read: thru uses the earliest possible times, up to %s late",
				p.source.name, seconds(p.longest()))}, true)
		}
	}
	return out
}

// clockUnknown reports the clocks that could not be read.
func (p *perf) clockUnknown() []measure.NotChecked {
	var out []measure.NotChecked
	if !p.source.known && p.source.why != "" {
		out = append(out, measure.NotChecked{Fact: "clock of " + p.source.name, Why: p.source.why})
	}
	whys := map[string][]string{}
	for _, h := range p.stampers() {
		if !h.known && h.off == "" {
			whys[h.why] = append(whys[h.why], h.name)
		}
	}
	for _, why := range slices.Sorted(maps.Keys(whys)) {
		out = append(out, measure.NotChecked{Fact: "clock of " + few(whys[why]), Why: why + ": thru uses the clock of " + p.source.name})
	}
	return out
}

// stampers returns the hosts whose clocks stamp the samples, by name.
func (p *perf) stampers() []*stamper {
	var out []*stamper
	for _, e := range p.entities {
		if h := p.hosts[e.on]; h != nil && e.off == "" && !slices.Contains(out, h) {
			out = append(out, h)
		}
	}
	slices.SortFunc(out, func(a, b *stamper) int { return strings.Compare(a.name, b.name) })
	return out
}

// grouped reports the same reason of several entities once.
func grouped(fact string, all []*entity, why func(*entity) string) []measure.NotChecked {
	var order []string
	names := map[string][]string{}
	for _, e := range all {
		if w := why(e); w != "" {
			if names[w] == nil {
				order = append(order, w)
			}
			names[w] = append(names[w], e.name)
		}
	}
	var out []measure.NotChecked
	for _, w := range order {
		out = append(out, measure.NotChecked{Fact: fact + few(names[w]), Why: w})
	}
	return out
}

// few lists names, shortened to the first ones.
func few(names []string) string {
	if len(names) <= namedTogether {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:namedTogether], ", "), len(names)-namedTogether)
}
