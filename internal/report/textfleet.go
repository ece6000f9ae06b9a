package report

import (
	"fmt"

	"thru/internal/doc"
)

// failures prints what went wrong right below the answer.
func (p *printer) failures(f *fleet) {
	for _, s := range f.Failed {
		p.Broken(yellow, 0, s)
	}
}

// fleet prints the tables of a plan. In a terminal the set that carried most
// stands for all, where there are more than a few.
func (p *printer) fleet(v *view) {
	f := v.Fleet
	if f.Waterfall != nil {
		doc.Print(p, f.Waterfall.Blocks())
	}
	for _, c := range f.Compared {
		p.comparison(c, len(f.Compared) == 1)
	}
	for _, h := range f.Hands {
		p.Wrap("", 3, "  -", h.Name+": "+h.Value)
	}
	if len(f.Targets.Rows) > 0 {
		if g := brief(f.Targets); len(g.Rows) > 0 {
			p.Table(g)
		} else {
			p.WriteByte('\n')
			p.Broken("", 0, fmt.Sprintf("%d targets: all are met", len(f.Targets.Rows)))
		}
	}
	if len(f.Sets.Rows) > 0 {
		p.Table(f.Sets.First(textSetRows))
	}
	if len(v.Ladders) > 0 {
		p.ladders(v.Ladders)
	}
	few := f.Few && len(f.Sets.Rows) == 0
	if few {
		p.cells(v)
	}
	for i, s := range f.Details {
		if i > 0 && len(f.Details) > fewSets {
			p.WriteString("\nthe other settings in detail: see the HTML report\n")
			break
		}
		p.set(s, few)
	}
}

// comparison prints an A/B test: what the answer has said already stands for its sentence.
func (p *printer) comparison(c comparison, said bool) {
	p.WriteByte('\n')
	if !said {
		p.Broken("", 0, c.Text)
	}
	if c.Reason != "" {
		p.Wrap("", 3, "  -", c.Reason)
	}
	if len(c.Guards) > 0 {
		p.Wrap("", 3, "  -", c.GuardLine())
	}
}

// set prints one set: when its pairs ran, the matrix of pairs or a list, and
// what the hosts had of it. Few pairs have their own tables above.
func (p *printer) set(s setView, few bool) {
	p.WriteByte('\n')
	if s.Name != "" {
		p.Broken(bold, 0, s.Name)
	}
	if s.Overlap != "" {
		p.Wrap("", 1, " ", s.Overlap)
	}
	if m := s.Matrix; m != nil && max(len(m.Rows), len(m.Cols)) <= maxTextMatrix {
		p.Matrix(*m)
		s.Pairs = nil // the matrix has them all
		if len(s.Slow.Rows) > 0 {
			s.Pairs = []grid{s.Slow}
		}
	}
	if !few {
		for _, g := range s.Pairs {
			p.Table(g)
		}
		if len(s.Held.Rows) > 0 {
			p.Table(s.Held)
		}
	}
	if len(s.Hosts.Rows) > 0 {
		p.Table(s.Hosts.First(textHostRows).WithoutEmpty())
	}
	if len(s.Labels.Rows) > 0 {
		p.Table(s.Labels.First(textHostRows).WithoutEmpty())
	}
}
