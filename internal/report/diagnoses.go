package report

import (
	"reflect"
	"slices"

	"thru/internal/measure"
	"thru/internal/report/fleet"
	"thru/internal/report/result"
	"thru/internal/report/why"
)

// silentDiagnoses returns the diagnoses of connections without any figure, if there is a cause to name: the
// answer already contains that nothing was measured.
func silentDiagnoses(d *measure.Document) (all []why.Diagnosis) {
	for i := range d.Cells {
		c := &d.Cells[i]
		if slices.ContainsFunc(c.Findings, func(f measure.Finding) bool { return f.Cause != "none" }) {
			all = append(all, why.New(c.Diagnosis, result.CapturedFlow(c)))
		}
	}
	return all[:min(len(all), 2)]
}

// newDiagnoses returns the diagnosis of the first direction and of the reverse one, or a single one if both
// are the same.
func newDiagnoses(d *measure.Document) (all []why.Diagnosis) {
	if result.IsCheck(d) || d.Command == "ladder" {
		return nil
	}
	if result.IsSilent(d) {
		return silentDiagnoses(d)
	}
	if fleet.Is(d) || result.IsTransfer(d) {
		if found := why.OfWhole(d); len(found) > 0 {
			all = append(all, why.New(measure.Diagnosis{Findings: found}, nil))
		}
		return all
	}
	first, back, _ := result.MainCells(d)
	if first == nil || len(first.Findings) == 0 && (back == nil || len(back.Findings) == 0) {
		if len(d.Findings) > 0 {
			all = append(all, why.New(measure.Diagnosis{Findings: d.Findings}, nil))
		}
		return all
	}
	first, back = result.WorseFirst(first, back)
	for _, c := range []*measure.Cell{first, back} {
		if c != nil && len(c.Findings) > 0 && (c == first || !sameFindings(c.Findings, first.Findings)) {
			x := why.New(c.Diagnosis, result.CapturedFlow(c))
			x.Direction = result.PathName(c)
			all = append(all, x)
		}
	}
	switch {
	case len(all) == 1 && back != nil && len(back.Findings) > 0:
		all[0].Direction += " and back"
	case len(all) == 1:
		all[0].Direction = ""
	}
	return all
}

// sameFindings reports whether the same cause at the same place, with the same fix, limits two directions.
func sameFindings(a, b []measure.Finding) bool {
	return slices.EqualFunc(a, b, func(x, y measure.Finding) bool {
		x.Where.From, x.Where.To, y.Where.From, y.Where.To = "", "", "", ""
		return x.Cause == y.Cause && x.Confidence == y.Confidence &&
			(x.Healthy && y.Healthy || reflect.DeepEqual(x.Where, y.Where) && reflect.DeepEqual(x.Fix, y.Fix))
	})
}

// judgedDiagnosis returns what limits the judged flow, with its evidence.
func judgedDiagnosis(d *measure.Document) []why.Diagnosis {
	c, name := fleet.Judged(d)
	if c == nil || len(c.Findings) == 0 {
		return nil
	}
	x := why.New(c.Diagnosis, result.CapturedFlow(c))
	x.Direction, x.OfMany = name, true
	return []why.Diagnosis{x}
}
