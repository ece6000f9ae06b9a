// Package compare compares results and reports what changed: the figures, with their uncertainty, and the hosts,
// their settings and the path. It is pure: documents in, a judgement out.
//
// Subjects (subject.go) are paired by what they measure (teams.go), refused if their settings make the figures
// incomparable, and judged by runs, or for a range by results (judge.go). The other changes come from the facts in
// the documents (facts.go, path.go, causes.go). Each family defines its subjects: flow.go, disk.go, transfer.go.
//
// Facts are compared as they are in the JSON of measure.Facts, so a new fact is compared without new code here.
// Its row of measure/vocabulary.go has its name for people, its relevance to a rate, and what is noise;
// factnames.go adds its owner.
package compare

import (
	"fmt"
	"slices"
	"strings"

	"thru/internal/measure"
	"thru/internal/unit"
)

// DefaultBar is the highest change, in percent, that counts as none (methods.md).
const DefaultBar = 2

// Options control how results are compared.
type Options struct {
	BarPct      float64  // DefaultBar if 0
	Anyway      bool     // compare although settings differ
	Guards      bool     // a guardrail that got worse is a regression too
	Before      string   // the users' names of the sides
	After       string   //
	BeforeNames []string // of the results, in the given order
	AfterNames  []string
}

// Of compares before with after. Each side is one result, or those of a range; they need not be in order of time.
func Of(before, after []*measure.Document, o Options) *measure.Compared {
	if !(o.BarPct > 0) {
		o.BarPct = DefaultBar
	}
	a, b := newSide(before, o.Before, o.BeforeNames), newSide(after, o.After, o.AfterNames)
	x := &measure.Compared{Schema: measure.ComparedSchema, Before: a.summary(), After: b.summary(), BarPct: o.BarPct, Anyway: o.Anyway, Cells: []measure.ComparedCell{}}
	pairs, restA, restB := match(a, b)
	x.Unmatched = append(unmatched("before", restA), unmatched("after", restB)...)
	all := make([]*contest, 0, len(pairs))
	for _, p := range pairs {
		all = append(all, newContest(p, o))
	}
	settle(all, o.BarPct, o.Guards)
	for _, c := range all {
		x.Cells = append(x.Cells, c.ComparedCell)
	}
	ends := endPoints(a, b, pairs)
	x.Facts = append(pathChanges(a, b, ends), factChanges(a, b, ends, pairs)...)
	x.Facts = append(x.Facts, diskChanges(pairs)...)
	sortFacts(x.Facts, pairs)
	dropRepeated(x)
	x.Causes = causeChanges(pairs)
	x.Gates = gateChanges(a, b, ends)
	x.Warnings = sideWarnings(a, b, pairs)
	for _, c := range all {
		x.Warnings = append(x.Warnings, c.warnings()...)
	}
	conclude(x, o, nounOf(a, b))
	return x
}

// side is one of the two, the oldest result first.
type side struct {
	name string
	docs []*measure.Document
	ids  []string
}

func newSide(docs []*measure.Document, name string, ids []string) *side {
	order := make([]int, len(docs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, k int) int { return docs[i].StartedAt.Compare(docs[k].StartedAt) })
	s := &side{name: name}
	for _, i := range order {
		s.docs = append(s.docs, docs[i])
		id := ""
		if i < len(ids) {
			id = ids[i]
		}
		s.ids = append(s.ids, id)
	}
	return s
}

// last returns the newest result; an empty one if there is none.
func (s *side) last() *measure.Document {
	if len(s.docs) == 0 {
		return &measure.Document{}
	}
	return s.docs[len(s.docs)-1]
}

func (s *side) summary() measure.ComparedSide {
	out := measure.ComparedSide{Name: s.name, Results: []measure.ComparedResult{}}
	for i, d := range s.docs {
		r := measure.ComparedResult{Name: s.ids[i], Command: d.Command, Thru: d.Thru, StartedAt: d.StartedAt, Hosts: hostsOf(d)}
		if d.Error != nil {
			r.Error = d.Error.Message
		}
		out.Results = append(out.Results, r)
	}
	return out
}

// hostsOf returns the machines of a result by their own names: "local is vm1".
func hostsOf(d *measure.Document) (all []string) {
	for _, e := range d.EndPoints {
		switch host := hostOf(d, e.Name); host {
		case "":
		case e.Name:
			all = append(all, host)
		default:
			all = append(all, e.Name+" is "+host)
		}
	}
	return all
}

// conclude sets the overall outcome: a regression takes precedence over an open outcome, and that over an
// improvement. The noun is what was compared.
func conclude(x *measure.Compared, o Options, noun string) {
	count := map[string]int{}
	failed, main := 0, 0
	var guardrails []string
	for _, c := range x.Cells {
		if c.Baseline {
			continue
		}
		main++
		count[c.Outcome]++
		if c.Failed {
			failed++
		}
		for _, g := range c.Guards {
			if g.Worse && !slices.Contains(guardrails, g.Name) {
				guardrails = append(guardrails, g.Name)
			}
		}
	}
	x.Outcome = measure.NotCompared
	for _, outcome := range []string{measure.Worse, measure.Undecided, measure.Improved, measure.Equivalent} {
		if count[outcome] > 0 {
			x.Outcome = outcome
			break
		}
	}
	compared := main - count[measure.NotCompared]
	x.Regression = count[measure.Worse] > 0 || o.Guards && len(guardrails) > 0
	switch {
	case compared == 0 && len(x.Cells) == 0:
		x.Reason = "no " + noun + " was measured on both sides"
	case compared == 0:
		x.Reason = "no " + noun + " can be compared"
	default:
		x.Reason = noun + "s: " + tally(count)
	}
	if failed > 0 {
		x.Reason += fmt.Sprintf("; %d measured before, but failed after", failed)
	}
	if o.Guards && len(guardrails) > 0 {
		x.Reason += "; guardrails worse: " + strings.Join(guardrails, ", ")
	}
}

// tally words outcomes with the number of their flows: "1 worse, 2 equivalent".
func tally(count map[string]int) string {
	text := ""
	for _, outcome := range []string{measure.Worse, measure.Undecided, measure.Improved, measure.Equivalent, measure.NotCompared} {
		if n := count[outcome]; n > 0 {
			if text != "" {
				text += ", "
			}
			text += fmt.Sprintf("%d %s", n, outcome)
		}
	}
	return text
}

// sideWarnings returns what the reader should know of both sides.
func sideWarnings(a, b *side, pairs []matched) (all []string) {
	if len(a.docs) > 0 && len(b.docs) > 0 && a.last().StartedAt.After(b.last().StartedAt) && !b.last().StartedAt.IsZero() {
		all = append(all, "before is newer than after: in time order, gains are losses and losses are gains")
	}
	switch n := onBothSides(a, b); {
	case n == 1 && len(a.docs) == 1 && len(b.docs) == 1:
		all = append(all, "before and after are the same result")
	case n > 0:
		all = append(all, fmt.Sprintf("%d of the results of after are also among those of before", n))
	}
	all = append(all, append(machinesWarning("before", a), machinesWarning("after", b)...)...)
	for _, p := range pairs {
		for _, w := range p.renamed() {
			if !slices.Contains(all, w) {
				all = append(all, w)
			}
		}
	}
	return all
}

// machinesWarning warns of a range in which one name stands for several machines, such as "local" of imported
// results.
func machinesWarning(name string, s *side) (all []string) {
	hosts := map[string][]string{}
	var order []string
	for _, d := range s.docs {
		for _, e := range d.EndPoints {
			host := hostOf(d, e.Name)
			if host == "" || slices.Contains(hosts[e.Name], host) {
				continue
			}
			if hosts[e.Name] == nil {
				order = append(order, e.Name)
			}
			hosts[e.Name] = append(hosts[e.Name], host)
		}
	}
	for _, end := range order {
		if h := hosts[end]; len(h) > 1 {
			all = append(all, fmt.Sprintf("%s: %s is the name of several machines (%s): choose one with --host", name, end, valuesText(h)))
		}
	}
	return all
}

// onBothSides returns how many results of b are also in a.
func onBothSides(a, b *side) int {
	return unit.CountFunc(b.docs, func(y *measure.Document) bool {
		return slices.ContainsFunc(a.docs, func(x *measure.Document) bool { return sameResult(x, y) })
	})
}

// sameResult reports whether both are the same document.
func sameResult(x, y *measure.Document) bool {
	return x == y || !x.StartedAt.IsZero() && x.StartedAt.Equal(y.StartedAt) && x.ElapsedNs == y.ElapsedNs && slices.Equal(x.Arguments, y.Arguments)
}
