// Package gate judges whether two hosts and the path between them are fit to be measured (C-33): from their facts
// it makes gates, each with what was found, why it matters and what to do.
//
// It is pure: the same facts give the same gates, in the same order. It never guesses: if a fact is missing, the
// gate is "not checked" and names it. A gate fails only if a measurement would be void or the host cannot meet the
// stated need; a condition that merely costs some of the rate is a warning.
//
// `thru test` refuses a host that fails a gate, so a false alarm would cost more than a miss.
package gate

import (
	"cmp"
	"slices"

	"thru/internal/cause/scene"
	"thru/internal/measure"
)

// IsHypervisorGateBy is cause.IsHypervisorGate with these rules.
func IsHypervisorGateBy(by []Rule, id string) bool {
	for i := range by { // by index, since a rule is large and each gate is looked up
		if by[i].Hypervisor && by[i].ID == id {
			return true
		}
	}
	return false
}

// Judge applies the rules to the subject: the worst gates first, then in the order of the rules.
func Judge(s scene.Subject, by []Rule) []measure.Gate {
	sc := scene.NewScene(s)
	gates := []measure.Gate{}
	for _, r := range by {
		gates = append(gates, r.judge(sc)...)
	}
	return Sort(gates)
}

// Sort puts the worst gates first and keeps the order of those in the same state.
func Sort(gates []measure.Gate) []measure.Gate {
	slices.SortStableFunc(gates, func(a, b measure.Gate) int {
		return cmp.Compare(Rank(a.Status), Rank(b.Status))
	})
	return gates
}

// Rank orders the states of a gate for display: the worst first, and unknown before good.
func Rank(status string) int {
	return slices.Index([]string{measure.GateFail, measure.GateWarn, measure.GateNotChecked, measure.GatePass}, status)
}

// EndGates returns the rules that check whether there is anything to judge.
func EndGates() []Rule {
	return []Rule{{
		ID: "host-facts", Title: "Facts of the host",
		About:  "whether an agent reports the facts of its host, including the interface of the route",
		Why:    "without these facts, a limit of that host looks like a limit of the path",
		Source: "C-07, C-08",
		Fix:    "run `thru serve` there", Checklist: []string{"C-07", "C-08"},
		Host: hostFacts,
	}}
}

func hostFacts(h *scene.Host) *Finding {
	switch r := h.End.Route; {
	case !h.Known:
		return NotChecked("facts of this host", "no thru agent runs there")
	case r != nil && h.Interface(r.Interface) == nil:
		return NotChecked("interface "+r.Interface+" of the route", scene.Reason(h.NotChecked, "interfaces."+r.Interface, "interfaces"))
	case len(h.Faces) == 0:
		return NotChecked("interfaces", "none that could carry a test is up")
	}
	return nil
}
