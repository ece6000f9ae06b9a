package report

import (
	"fmt"
	"slices"

	"thru/internal/doc"
	"thru/internal/report/capture"
	"thru/internal/report/ladder"
	"thru/internal/report/why"
	"thru/internal/unit"
)

// report returns the whole page in order; a terminal has its own order.
func (p *page) report() doc.Report {
	return doc.Report{
		Command: "thru " + p.Command, When: p.Started, Answer: p.Answer, More: doc.NonEmpty(p.Back), Foot: doc.Join("thru "+p.Thru, doc.Prefixed("started ", p.Started), "took "+p.Elapsed),
		Body: slices.Concat(p.brief(), p.Blocks, why.Blocks(slices.Concat(p.Why, p.Judged), false), capture.Blocks(p.Packets), stepBlocks(p.Steps, p.Ended),
			p.Fleet.Blocks(), ladder.Blocks(p.Ladders), p.Placement.blocks(), p.Hypervisors, p.gateBlocks(), p.pathBlocks(), p.figureBlocks(), p.openBlocks(), p.cellBlocks(), p.hostBlocks(), p.againBlocks()),
	}
}

// brief returns the summary at the top of a page.
func (p *page) brief() []doc.Block {
	b := doc.Brief{}
	if a := p.First.Accepted; a.Word != "" { // an inventory has none
		b.Verdict = &a
	}
	for _, r := range p.First.Rows {
		x := doc.BriefRow{Name: r.Name}
		for _, i := range r.Items {
			x.Items = append(x.Items, doc.BriefItem{Text: i.Text, Commands: i.Commands})
		}
		b.Rows = append(b.Rows, x)
	}
	all := []doc.Block{p.Picture.Block(), b}
	if p.Error != nil {
		all = append(all, doc.Notice{Title: "Error", Tone: doc.ToneBad, Lines: doc.NonEmpty(p.Error.Message, doc.Prefixed("hint: ", p.Error.Hint))})
	}
	if p.Fleet != nil {
		all = append(all, p.Fleet.Failures())
	}
	return all
}

// gateBlocks returns the gates, those that did not pass first.
func (p *page) gateBlocks() []doc.Block {
	unchecked, passed := p.Gates.Unchecked(), p.Gates.Passed()
	body := []doc.Block{p.Warned().Table(), doc.Details{Title: fmt.Sprintf("%d not checked", len(unchecked)), Body: []doc.Block{doc.GapTable(unchecked)}}}
	switch title := fmt.Sprintf("%d passed", len(passed)); {
	case len(passed) > 0 && len(p.Ladders) > 0:
		body = append(body, doc.Para{Text: fmt.Sprintf("%d passed: %s", len(passed), p.Gates.PassedNames())})
	case len(passed) > 0:
		body = append(body, doc.Details{Title: title, Brief: true, Paper: p.Gates.PassedNames(), Body: []doc.Block{passed.Short().Table()}})
	}
	return []doc.Block{doc.Titled("Gates", body...)}
}

// pathBlocks returns the results of the probes of each path.
func (p *page) pathBlocks() []doc.Block {
	paths := unit.Mapped(p.Paths, func(x doc.Pairs) doc.Block { return x })
	body := doc.Block(doc.SideBySide{Body: paths})
	if h := p.FacingPaths(); h != nil {
		body = h.Table()
	}
	if p.Fleet != nil {
		body = doc.Details{Title: fmt.Sprintf("%d paths", len(p.Paths)), Body: []doc.Block{body}}
	}
	if len(p.Paths) == 0 {
		return nil
	}
	return []doc.Block{doc.Titled("Path", body)}
}

// figureBlocks returns the figures of each flow, and its seconds as charts.
func (p *page) figureBlocks() []doc.Block {
	figures := unit.Mapped(p.Main, func(c cellPage) doc.Block { return doc.Pairs{Name: doc.Join(c.Name, c.What), Rows: c.Rows} })
	title := "Figures"
	if p.Slowest() {
		title = "Slowest pairs"
	}
	drawn := doc.OnScreen(doc.Titled("Over time", doc.List{Lines: p.Drawn, Notes: true}, doc.Charts{Charts: p.Charts}))
	all := []doc.Block{drawn, doc.Titled(title, doc.SideBySide{Body: figures})}
	if len(p.Main) == 1 {
		all = []doc.Block{doc.SideBySide{Body: all}}
	}
	if len(p.Heat) > 0 {
		all = append(all, doc.OnScreen(doc.Titled("Cores and queues", doc.Charts{Charts: p.Heat}, doc.List{Lines: p.Unseen, Notes: true})))
	}
	if p.Latency != nil {
		all = append(all, doc.Titled("Latency", doc.SideBySide{Body: []doc.Block{doc.Charts{Charts: []doc.Chart{p.Latency.Chart}}, p.Latency.Table}}))
	}
	return all
}

// openBlocks returns advice, warnings, and missing facts.
func (p *page) openBlocks() []doc.Block {
	return []doc.Block{doc.Titled("Advice", doc.List{Lines: p.Unsaid()}), doc.Notice{Title: "Warnings", Tone: doc.ToneWarn, Lines: p.Warnings},
		doc.Titled("Not checked", doc.GapTable(p.Missing), doc.Details{Title: "Facts of the hosts", Brief: true, Paper: "on screen, and in the JSON document", Body: []doc.Block{doc.GapTable(p.FactGaps)}})}
}

// cellBlocks returns the streams and seconds of each flow.
func (p *page) cellBlocks() []doc.Block {
	var cells []doc.Block
	for _, c := range p.Details {
		what := c.What
		if c.Baseline {
			what += " (baseline)"
		}
		d := doc.Details{Title: doc.Join(c.Name, what+doc.Spaced(doc.Bracket(doc.Prefixed("experiment ", c.Experiment()))))}
		if !c.Shown {
			d.Body = append(d.Body, doc.Pairs{Rows: c.Rows})
		}
		d.Body = append(d.Body, c.Streams, c.Seconds)
		cells = append(cells, d)
	}
	if p.ManyDetails() {
		cells = []doc.Block{doc.Details{Title: fmt.Sprintf("%d cells", len(p.Details)), Brief: true, Paper: "the figures of each are in the page on screen, as CSV and in the JSON document", Body: cells}}
	}
	if p.Hidden > 0 {
		cells = append(cells, doc.Para{Text: fmt.Sprintf("%d more cells are in the JSON document.", p.Hidden)})
	}
	return []doc.Block{doc.Titled("Each cell", cells...)}
}

// hostBlocks returns the end points with their facts.
func (p *page) hostBlocks() (all []doc.Block) {
	if p.Fleet != nil {
		all = append(all, doc.Titled("End points", p.Fleet.Points))
	}
	if len(p.Inventory.Names) == 0 {
		return all
	}
	var body, interfaces []doc.Block
	for _, part := range p.Inventory.Parts {
		body = append(body, part.Table())
	}
	for _, i := range p.Interfaces {
		interfaces = append(interfaces, i)
	}
	more := p.MoreFacts()
	body = append(body, doc.Details{Title: "All facts of the hosts", Brief: true, Paper: "on screen, and in the JSON document", Body: []doc.Block{more.Table()}}, doc.Para{Text: p.Hosts.More},
		doc.Details{Title: "Interfaces", Body: []doc.Block{doc.SideBySide{Body: interfaces}}})
	return append(all, doc.Titled("Hosts and guests", body...))
}

// againBlocks explains how it was measured, and how to repeat it.
func (p *page) againBlocks() []doc.Block {
	var steps []doc.Block
	for _, s := range p.Again.Steps {
		steps = append(steps, doc.Para{Text: "At " + s.At + doc.Spaced(doc.Bracket(s.Conclusion)) + ":"}, doc.Code{Lines: []string{s.Command}})
	}
	if len(steps) > 0 {
		steps = append(steps, doc.Pairs{Name: "The plan", Rows: p.Again.Plan})
	}
	return []doc.Block{doc.Titled("How this was measured", doc.List{Lines: p.Method}), doc.Titled("Reproduce", steps...)}
}
