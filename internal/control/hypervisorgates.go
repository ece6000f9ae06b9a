package control

import (
	"slices"

	"thru/internal/cause"
	"thru/internal/cause/gate"
	"thru/internal/cause/scene"
	"thru/internal/measure"
)

// mostListed is of how many pairs a document still lists the gates that pass.
const mostListed = 16

// judgeHypervisors adds the gates of what lies below the end points, which are placed
// after the others were judged: a hypervisor may take its time. None of them
// fails, so none was missed.
func (r *Runner) judgeHypervisors(doc *measure.Document) {
	s := scene.Subject{LinkBps: r.Link.RateBps}
	for _, e := range doc.EndPoints {
		s.Ends = append(s.Ends, scene.End{Name: e.Name, Facts: e.Facts, Placements: e.Placement.HostPlacement(doc.Inventories)})
	}
	gates := cause.JudgeHypervisors(s)
	if c := r.Gating; c != nil {
		chosen, err := cause.Filter(gates, c.Only, c.Skip)
		if err != nil { // an id that no rule has was refused before
			return
		}
		gates = chosen
	}
	if len(doc.EndPoints) > mostListed { // what is well is not listed then
		gates = slices.DeleteFunc(gates, func(g measure.Gate) bool { return g.Status == measure.GatePass })
	}
	if len(gates) == 0 {
		return
	}
	rest := slices.DeleteFunc(slices.Clone(doc.Gates), func(g measure.Gate) bool { return cause.IsHypervisorGate(g.ID) })
	doc.Gates = gate.Sort(append(rest, gates...))
}
