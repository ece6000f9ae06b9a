package stat

import (
	"maps"
	"slices"
	"strings"

	"thru/internal/measure"
)

// seen is one end of one flow in a repetition of a group.
type seen struct {
	run      int
	evidence *measure.Evidence
	double   bool // its worker handles the other direction, too
}

// hosts returns the shares of the hosts in a group, in the order of their names.
//
// The machine's CPU and memory are read once for each flow, at about the same time: a host's CPU is the mean of
// these readings within a repetition, and then over the repetitions. The use of its flows' workers is summed.
func (t *team) hosts() []measure.Share {
	var names []string
	for _, c := range t.cells {
		names = append(names, c.From, c.To)
	}
	slices.Sort(names)
	var all []measure.Share
	var unread []string
	for _, name := range slices.Compact(names) {
		s := measure.Share{Name: name}
		for _, c := range t.cells {
			if c.From == name || c.To == name {
				s.Flows++
			}
		}
		s.SentBps = t.rateWhere(func(c *measure.Cell) bool { return c.From == name })
		s.ReceivedBps = t.rateWhere(func(c *measure.Cell) bool { return c.To == name })
		ends := t.endsAt(name)
		var other float64
		s.CPU, other = cpuOfHost(ends)
		s.Memory = memoryOfHost(ends)
		if s.CPU == nil {
			unread = append(unread, name)
		} else if bps := moved(&s); cpuCostOf(s.CPU, other, bps) == "" {
			s.PerCoreBps = Known(ratio(bps, s.CPU.Cores))
		}
		all = append(all, s)
	}
	if len(unread) > 0 {
		t.missing("hosts.cpu", "the CPU counters were not read at "+strings.Join(unread, ", "))
	}
	return all
}

// rateWhere returns what some of the flows carried, the mean of the repetitions; nil if none of these flows was
// measured.
func (t *team) rateWhere(is func(*measure.Cell) bool) *float64 {
	var totals []float64
	for _, r := range t.repeats {
		total, n := 0.0, 0
		for _, m := range r.flows {
			if is(m.cell) {
				total, n = total+r.rateOf(m), n+1
			}
		}
		if n > 0 {
			totals = append(totals, total)
		}
	}
	return Known(Mean(totals))
}

// endsAt returns the evidence of a host in all repetitions that count.
func (t *team) endsAt(name string) []seen {
	var all []seen
	for _, r := range t.repeats {
		for _, m := range r.members {
			for _, e := range m.pair.ends() {
				if e.EndPoint == name {
					// Both directions of a bidirectional flow use one worker, which the sending end has reported.
					all = append(all, seen{r.index, e, m.cell.Spec.Duplex && !e.Sends})
				}
			}
		}
	}
	return all
}

// moved returns what a host or a label sent and received.
func moved(s *measure.Share) float64 { return measure.Value(s.SentBps) + measure.Value(s.ReceivedBps) }

// PerCore returns what hosts sent and received together per core that they used, in bit/s; nil if one of
// them has no such figure.
func PerCore(hosts []measure.Share) *float64 {
	bps, cores := 0.0, 0.0
	for i := range hosts {
		h := &hosts[i]
		if h.CPU == nil || h.PerCoreBps == nil {
			return nil
		}
		bps, cores = bps+moved(h), cores+h.CPU.Cores
	}
	if cores <= 0 || bps <= 0 {
		return nil
	}
	return new(bps / cores)
}

// cpuOfHost returns the CPU cost of a group's flows at a host, and how many cores it used without them; nil if its
// counters were not read.
func cpuOfHost(ends []seen) (f *measure.CPUFigure, other float64) {
	var machine, cores, others, workers []float64
	perCore := map[int][]float64{}
	for _, of := range byRun(ends) {
		busy, idle, worker := readings(of)
		if len(busy) == 0 {
			continue
		}
		var all []float64
		for core, pct := range busy {
			all = append(all, pct)
			perCore[core] = append(perCore[core], pct)
		}
		slices.Sort(all) // floating-point sums depend on the order
		machine = append(machine, Mean(all))
		cores = append(cores, CoresUsed(all, slices.Sorted(maps.Values(idle))))
		others = append(others, Sum(slices.Sorted(maps.Values(idle)))/100)
		workers = append(workers, worker)
	}
	if len(machine) == 0 {
		return nil, 0
	}
	f = &measure.CPUFigure{Pct: Mean(machine), Cores: Mean(cores)}
	if w := Mean(workers); w > 0 {
		f.WorkerCores = Known(w)
	}
	busiestOf(f, perCore)
	return f, Mean(others)
}

// byRun groups the ends by repetition, in order.
func byRun(ends []seen) [][]seen {
	return slices.Collect(func(yield func([]seen) bool) {
		for len(ends) > 0 {
			n := 1
			for n < len(ends) && ends[n].run == ends[0].run {
				n++
			}
			if !yield(ends[:n]) {
				return
			}
			ends = ends[n:]
		}
	})
}

// readings returns the means of what the flows of one repetition read of their host: how busy each core was with
// and without the test, in percent, and the cores that all their workers used.
func readings(ends []seen) (busy, idle map[int]float64, workers float64) {
	var during, without []*measure.HostSpan
	for _, s := range ends {
		if e := s.evidence; e.Host != nil && len(e.Host.CPUs) > 0 {
			during = append(during, e.Host)
		}
		if e := s.evidence; e.Base != nil && len(e.Base.CPUs) > 0 {
			without = append(without, e.Base)
		}
		if e := s.evidence; e.Worker != nil && e.MeasuredNs > 0 && !s.double {
			workers += (float64(e.Worker.UserNs) + float64(e.Worker.SystemNs)) / float64(e.MeasuredNs)
		}
	}
	return meanCores(during), meanCores(without), workers
}

// meanCores returns the mean of several readings of how busy each core was.
func meanCores(spans []*measure.HostSpan) map[int]float64 {
	all := map[int][]float64{}
	for _, h := range spans {
		for _, c := range h.CPUs {
			all[c.Core] = append(all[c.Core], c.Busy())
		}
	}
	means := map[int]float64{}
	for core, pcts := range all {
		means[core] = Mean(pcts)
	}
	return means
}

// memoryOfHost returns the maximum that the machine had in use, and the sum of its flows' workers at their peaks.
func memoryOfHost(ends []seen) *measure.MemFigure {
	var used, total, worker int64
	for _, of := range byRun(ends) {
		var all int64
		for _, s := range of {
			e := s.evidence
			if e.Worker != nil && !s.double {
				addTo(&all, e.Worker.ResidentB)
			}
			if e.Host != nil && e.Host.Memory != nil {
				used, total = max(used, e.Host.Memory.Total-e.Host.Memory.Available), e.Host.Memory.Total
			}
		}
		worker = max(worker, all)
	}
	return memFigure(used, total, worker)
}

// ofLabels sums the hosts of each label, in the order of the labels. Their CPU is the mean of the machines' load,
// the sum of the cores used, and the busiest core of any of them. The cost of a Gb/s is known if it is known of
// each of its hosts.
func ofLabels(hosts []measure.Share, ends []measure.EndPoint, cells []*measure.Cell) []measure.Share {
	members := map[string][]string{}
	for _, e := range ends {
		for k, v := range e.Labels {
			if !slices.Contains(members[k+"="+v], e.Name) {
				members[k+"="+v] = append(members[k+"="+v], e.Name)
			}
		}
	}
	var all []measure.Share
	for _, label := range slices.Sorted(maps.Keys(members)) {
		s := measure.Share{Name: label}
		within := func(name string) bool { return slices.Contains(members[label], name) }
		for _, c := range cells {
			if within(c.From) || within(c.To) {
				s.Flows++
			}
		}
		if s.Flows == 0 {
			continue
		}
		for _, h := range hosts {
			if within(h.Name) {
				addShare(&s, h)
			}
		}
		if s.CPU != nil {
			s.CPU.Pct /= float64(len(hostsWithCPU(hosts, within)))
			if bps := moved(&s); !slices.ContainsFunc(hosts, func(h measure.Share) bool { return within(h.Name) && h.PerCoreBps == nil }) {
				s.CPU.PctPerGbps, s.PerCoreBps = Known(PctPerGbps(s.CPU.Cores, bps)), Known(ratio(bps, s.CPU.Cores))
			}
		}
		all = append(all, s)
	}
	return all
}

func hostsWithCPU(hosts []measure.Share, within func(string) bool) []measure.Share {
	return slices.DeleteFunc(slices.Clone(hosts), func(h measure.Share) bool { return !within(h.Name) || h.CPU == nil })
}

// addShare adds a host to a label; values that no host has stay absent.
func addShare(s *measure.Share, h measure.Share) {
	s.SentBps, s.ReceivedBps = plus(s.SentBps, h.SentBps), plus(s.ReceivedBps, h.ReceivedBps)
	if c := h.CPU; c != nil {
		if s.CPU == nil {
			s.CPU = &measure.CPUFigure{}
		}
		s.CPU.Pct += c.Pct
		s.CPU.Cores += c.Cores
		s.CPU.WorkerCores = plus(s.CPU.WorkerCores, c.WorkerCores)
		if c.MaxCorePct > s.CPU.MaxCorePct {
			s.CPU.MaxCore, s.CPU.MaxCorePct = c.MaxCore, c.MaxCorePct
		}
	}
	if m := h.Memory; m != nil {
		if s.Memory == nil {
			s.Memory = &measure.MemFigure{}
		}
		s.Memory.Used, s.Memory.Total, s.Memory.Worker = plus(s.Memory.Used, m.Used), plus(s.Memory.Total, m.Total), plus(s.Memory.Worker, m.Worker)
	}
}

// plus adds values that may be absent.
func plus[T int64 | float64](a, b *T) *T {
	switch {
	case a == nil && b == nil:
		return nil
	case a == nil:
		return new(*b)
	case b == nil:
		return new(*a)
	}
	return new(*a + *b)
}
