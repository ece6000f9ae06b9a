package report

import (
	"slices"
	"strings"

	"thru/internal/measure"
	"thru/internal/report/facts"
	"thru/internal/report/why"
)

// Warned returns the gates that need action. It omits the risk of a command that a finding above has with the
// same commands.
func (v *view) Warned() gateList {
	rows := v.Gates.With(measure.GateFail, measure.GateWarn).Short()
	for i := range rows {
		for _, d := range slices.Concat(v.Why, v.Judged) {
			if len(rows[i].Fix) > 0 && slices.ContainsFunc(d.Findings, func(f why.Finding) bool { return f.Risk != "" && slices.Equal(f.Commands, rows[i].Fix) }) {
				rows[i].Risk = ""
			}
		}
	}
	return rows
}

// MoreFacts returns the facts of the hosts that are not in the checklists above.
func (v *view) MoreFacts() facts.Hosts {
	h := v.Hosts
	h.Rows = slices.DeleteFunc(slices.Clone(h.Rows), func(r facts.Row) bool {
		return !strings.Contains(r.Name, ".") && slices.ContainsFunc(v.Inventory.Parts, func(part facts.Hosts) bool {
			return slices.ContainsFunc(part.Rows, func(x facts.Row) bool { return slices.Equal(x.Values, r.Values) })
		})
	})
	return h
}

// FacingPaths returns the paths of a ladder side by side, so that equal facts appear once; nil for other
// results.
func (v *view) FacingPaths() *facts.Hosts {
	if len(v.Ladders) == 0 || len(v.Paths) < 2 || len(v.Paths) > facts.MostEndPoints {
		return nil
	}
	h := &facts.Hosts{Caption: "Paths of the rungs"}
	for n, p := range v.Paths {
		h.Names = append(h.Names, strings.TrimPrefix(p.Name, "Path "))
		for _, r := range p.Rows {
			at := slices.IndexFunc(h.Rows, func(x facts.Row) bool { return x.Name == r.Name })
			if at < 0 {
				at = len(h.Rows)
				h.Rows = append(h.Rows, facts.Row{Name: r.Name, Values: slices.Repeat([]string{"-"}, len(v.Paths))})
			}
			h.Rows[at].Values[n] = r.Value
		}
	}
	return h
}
