package knob

import (
	"slices"
	"strconv"
	"thru/internal/measure"
	"thru/internal/stat"
	"thru/internal/unit"
)

// InForce reports, for each setting and each test option of a change, whether it has the intended effect (S-03) on
// the connections, the path and the queues; reading back the value shows only that the host accepted it. Holds is
// absent if nothing shows it: a window that was not needed may still be in force.
func InForce(t Tried) []measure.Verification {
	var all []measure.Verification
	b, w := sightOf(t.Before), sightOf(t.With)
	for _, s := range t.Proposal.Settings {
		x := check{Tried: t, Setting: s, was: valueBefore(t.Proposal, s), before: b, with: w}
		v := measure.Verification{EndPoint: s.EndPoint, What: "by counters", Fact: "no counter of a test shows whether it is in force"}
		if k, ok := Find(s.Knob); ok && k.shows.of != nil {
			v.What = k.shows.what
			v.Holds, v.Fact = k.shows.of(x)
		}
		all = append(all, v)
	}
	return append(all, optionsInForce(t.Proposal.Test, w)...)
}

// valueBefore returns the value of a setting's knob before the change, "" if it is not known: Before omits unknown
// knobs, so positions differ.
func valueBefore(p *measure.Proposal, s measure.Setting) string {
	i := slices.IndexFunc(p.Before, func(b measure.Setting) bool {
		return b.EndPoint == s.EndPoint && b.Knob == s.Knob && b.Interface == s.Interface
	})
	if i < 0 {
		return ""
	}
	return p.Before[i].Value
}

// optionsInForce checks the options that a change sets on the test itself.
func optionsInForce(o *measure.TestOptions, with sight) (all []measure.Verification) {
	if o == nil {
		return nil
	}
	add := func(e *measure.Evidence, what string, asked bool, got func(*measure.Evidence) (*bool, string)) {
		if !asked {
			return
		}
		v := measure.Verification{What: what, Fact: "the evidence of that end is missing"}
		if e != nil {
			v.EndPoint = e.EndPoint
			v.Holds, v.Fact = got(e)
		}
		all = append(all, v)
	}
	add(with.receiver, "connections", o.Streams > 0, func(e *measure.Evidence) (*bool, string) {
		return new(len(e.Streams) == o.Streams), unit.Count(int64(len(e.Streams)))
	})
	add(with.sender, "congestion control", o.Congestion != "", func(e *measure.Evidence) (*bool, string) {
		used := stat.CongestionOf(e)
		if used == "" {
			return nil, "the sender does not report it"
		}
		return new(used == o.Congestion), used
	})
	add(with.sender, "data path", o.IO != "", func(e *measure.Evidence) (*bool, string) {
		sends := o.IO
		if sends == measure.IOLean {
			sends = measure.IOSendfile
		}
		return new(e.IO == o.IO || e.IO == sends), e.IO
	})
	for _, x := range []struct {
		e   *measure.Evidence
		cpu *int
	}{{with.sender, o.SenderCPU}, {with.receiver, o.ReceiverCPU}} {
		add(x.e, "CPU of its thread", x.cpu != nil, func(e *measure.Evidence) (*bool, string) {
			if len(e.Streams) == 0 || e.Streams[0].CPU == nil {
				return nil, "it is not reported"
			}
			return new(*e.Streams[0].CPU == *x.cpu), strconv.Itoa(*e.Streams[0].CPU)
		})
	}
	add(with.sender, "window", o.Window != nil, func(e *measure.Evidence) (*bool, string) {
		if w := stat.CutWindow(e); w != "" {
			return new(false), "the kernel reduced it to " + w
		}
		return nil, "autotuned by the kernel"
	})
	return all
}
