package control

import (
	"slices"

	"thru/internal/cause"
	"thru/internal/cause/gate"
	"thru/internal/cause/scene"
	"thru/internal/measure"
)

// mostListed is the largest number of pairs for which a document lists passed gates.
const mostListed = 16

// judgeHypervisors adds the gates of the hypervisors below the end points. It runs
// after the other gates, since a hypervisor may take its time. None of these
// gates fails, so the late check misses no failure.
// With brief it omits gates that pass.
func (r *Runner) judgeHypervisors(doc *measure.Document, brief bool) {
	s := scene.Subject{LinkBps: r.Link.RateBps}
	for _, e := range doc.EndPoints {
		s.Ends = append(s.Ends, scene.End{Name: e.Name, Facts: e.Facts, Placements: e.Placement.HostPlacement(doc.Inventories)})
	}
	gates := cause.JudgeHypervisors(s)
	if c := r.Gating; c != nil {
		chosen, err := cause.Filter(gates, c.Only, c.Skip)
		if err != nil { // an unknown gate id was refused before
			return
		}
		gates = chosen
	}
	if brief {
		gates = slices.DeleteFunc(gates, func(g measure.Gate) bool { return g.Status == measure.GatePass })
	}
	if len(gates) == 0 {
		return
	}
	rest := slices.DeleteFunc(slices.Clone(doc.Gates), func(g measure.Gate) bool { return cause.IsHypervisorGate(g.ID) })
	doc.Gates = gate.Sort(append(rest, gates...))
}
