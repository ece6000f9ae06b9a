package compared

import (
	"slices"
	"strings"

	"thru/internal/doc"
	"thru/internal/measure"
	"thru/internal/report/result"
	"thru/internal/unit"
)

// flowsGrid returns a row for each flow. If all have the same traffic, or the same direction, the caption
// names it.
func flowsGrid(x *measure.Compared) doc.Table {
	g := doc.Table{Tone: outcomeTone, Columns: []doc.Column{{Name: "flow", Least: 14}, {Name: "traffic", Least: 10}, {Name: "outcome"},
		{Name: "before", Right: true}, {Name: "after", Right: true}, {Name: "change", Right: true}, {Name: "interval", Right: true}}}
	alike := len(x.Cells) > 0 && !slices.ContainsFunc(x.Cells, func(c measure.ComparedCell) bool { return c.What != x.Cells[0].What || c.Baseline })
	direction := commonDirection(x.Cells)
	if g.Caption = doc.Clean(direction); alike {
		g.Caption = doc.Clean(x.Cells[0].What)
	}
	for i := range x.Cells {
		c := &x.Cells[i]
		what := whatCompared(c)
		if alike {
			what = ""
		}
		g.Rows = append(g.Rows, []string{doc.Clean(comparedDirection(c)), doc.OrDash(doc.Clean(what)), doc.Clean(c.Outcome), sampleText(c, c.Before), sampleText(c, c.After), changeText(c.ChangePct), doc.OrDash(unit.ChangeRange(c.LowPct, c.HighPct))})
	}
	if direction != "" && !alike {
		g.Columns = g.Columns[1:]
		for i := range g.Rows {
			g.Rows[i] = g.Rows[i][1:]
		}
	}
	return g.First(maxFlowRows).WithoutEmpty()
}

// flowReasons returns why flows have their outcome, each reason once.
func flowReasons(x *measure.Compared) (all []doc.Row) {
	at := map[string]int{}
	for i := range x.Cells {
		c := &x.Cells[i]
		if c.Reason == "" || len(all) == result.MaxLines {
			continue
		}
		text := doc.Clean(c.Outcome + ": " + c.Reason)
		name := doc.Clean(comparedName(x.Cells, c))
		if k, known := at[text]; known {
			if !slices.Contains(strings.Split(all[k].Name, "; "), name) && len(all[k].Name) < doc.MostText {
				all[k].Name += "; " + name
			}
			continue
		}
		at[text] = len(all)
		all = append(all, doc.Row{Name: name, Value: text})
	}
	return all
}

func changeText(pct *float64) string { return doc.OrDash(doc.Known("%s", pct, unit.Change)) }

// factsGrid returns the facts that changed: main and minor ones.
func factsGrid(all []measure.FactChange) (main, minor doc.Table) {
	columns := []doc.Column{{Name: "at", Least: 8}, {Name: "fact", Least: 14}, {Name: "before", Least: 12}, {Name: "after", Least: 12}}
	main = doc.Table{Caption: "Changed facts, by their effect on the rate", Columns: columns}
	minor = doc.Table{Caption: "Changed facts that hardly affect the rate", Columns: columns}
	for _, f := range all {
		to := &main
		if f.Minor {
			to = &minor
		}
		to.Rows = append(to.Rows, []string{doc.Clean(f.Of), doc.Clean(f.Name), doc.OrDash(doc.Clean(f.Before)), doc.OrDash(doc.Clean(f.After))})
	}
	return main.First(maxFacts), minor.First(maxFacts)
}

// guardrailsGrid returns the guardrails that changed, the worse first, and the names of those that did not.
func guardrailsGrid(cells []measure.ComparedCell) (g doc.Table, asBefore string) {
	g = doc.Table{Caption: "Guardrails; higher is worse", Tone: outcomeTone,
		Columns: []doc.Column{{Name: "figure", Least: 12}, {Name: "outcome"}, {Name: "before", Right: true}, {Name: "after", Right: true}, {Name: "change", Right: true}, {Name: "flow", Least: 14}}}
	var better [][]string
	var same []string
	for i := range cells {
		for _, r := range cells[i].Guards {
			line := []string{doc.Clean(r.Name), "worse", railText(r.Unit, r.Before), railText(r.Unit, r.After), changeText(r.ChangePct), doc.Clean(comparedName(cells, &cells[i]))}
			switch {
			case r.Worse:
				g.Rows = append(g.Rows, line)
			case r.Better:
				line[1] = "better"
				better = append(better, line)
			case !slices.Contains(same, doc.Clean(r.Name)):
				same = append(same, doc.Clean(r.Name))
			}
		}
	}
	g.Rows = append(g.Rows, better...)
	if len(same) > 0 && len(g.Rows) > 0 {
		asBefore = "unchanged: " + strings.Join(same, "; ")
	} else if len(same) > 0 {
		asBefore = "unchanged: " + strings.Join(same, "; ")
	}
	if g = g.First(maxFlowRows); len(g.Rows) > 0 && g.More == "" {
		g.More, asBefore = asBefore, ""
	}
	return g, asBefore
}

// settingsGrid returns the settings that differ, each once.
func settingsGrid(cells []measure.ComparedCell) doc.Table {
	g := doc.Table{Caption: "Different settings of the measurement",
		Columns: []doc.Column{{Name: "setting", Least: 12}, {Name: "before", Least: 10}, {Name: "after", Least: 10}, {Name: "flow", Least: 14}}}
	for i := range cells {
		for _, s := range cells[i].Settings {
			r := []string{doc.Clean(s.Name), doc.OrDash(doc.Clean(s.Before)), doc.OrDash(doc.Clean(s.After)), doc.Clean(comparedName(cells, &cells[i]))}
			k := slices.IndexFunc(g.Rows, func(x []string) bool { return slices.Equal(x[:3], r[:3]) })
			switch {
			case k < 0:
				g.Rows = append(g.Rows, r)
			case len(g.Rows[k][3]) < doc.MostText && !strings.Contains(g.Rows[k][3], r[3]):
				g.Rows[k][3] += "; " + r[3]
			}
		}
	}
	return g.First(result.MaxLines)
}

func gatesGrid(all []measure.GateChange) doc.Table {
	g := doc.Table{Caption: "Changed gates", Tone: gateTone,
		Columns: []doc.Column{{Name: "gate"}, {Name: "of", Least: 8}, {Name: "before"}, {Name: "after"}, {Name: "found", Least: 20}}}
	for _, x := range all {
		g.Rows = append(g.Rows, []string{doc.Clean(x.ID), doc.OrDash(doc.Clean(x.Of)), doc.Clean(x.Before), doc.Clean(x.After), doc.OrDash(doc.Clean(x.Fact))})
	}
	return g.First(maxFacts)
}

func gateTone(status string) doc.Tone {
	return map[string]doc.Tone{measure.GatePass: doc.ToneGood, measure.GateWarn: doc.ToneWarn, measure.GateFail: doc.ToneBad}[status]
}
