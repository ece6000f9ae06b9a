package fleet

import (
	"cmp"
	"slices"

	"thru/internal/doc"
	"thru/internal/measure"
)

// Limits of the short form of a plan.
const (
	briefRows  = 5 // pairs or settings
	briefLines = 3 // failures, comparisons, targets
)

// Brief returns the short form of a plan: what failed, the targets that are not met, the comparisons that the
// answer leaves out, and the slowest settings, or pairs of the only setting.
func (f *View) Brief(d *measure.Document) []doc.Block {
	var compared []string
	for i, c := range f.Compared {
		if i > 0 { // the answer has the first
			compared = append(compared, c.Text)
		}
	}
	if len(f.Compared) == 1 {
		compared = append(doc.NonEmpty(f.Compared[0].Reason), f.Compared[0].Guards...)
	}
	missed := f.Targets.Brief()
	missed.Rows = missed.Rows[:f.missed]
	return []doc.Block{
		f.BriefFailures(),
		doc.Titled("Targets", missed.Cut(briefLines, " not met")),
		doc.Titled("Comparisons", doc.List{Lines: doc.FirstOf(compared, briefLines)}),
		slowest(slices.DeleteFunc(Sets(d), func(s *Set) bool { return inLadders(d, s) })),
	}
}

// BriefFailures returns the first failures.
func (f *View) BriefFailures() doc.Block {
	return doc.Titled("Failures", doc.List{Lines: doc.FirstOf(f.Failed, briefLines)})
}

// slowest returns the slowest settings of several, else the slowest pairs.
func slowest(sets []*Set) doc.Table {
	var t doc.Table
	switch len(sets) {
	case 0:
		return t
	case 1:
		t = pairTable(sets[0], sets[0].slowest()).Cut(briefRows, "")
		t.Caption = "Each pair"
	default:
		slices.SortStableFunc(sets, func(a, b *Set) int { return cmp.Compare(a.amount(), b.amount()) })
		t = setTable(sets).Cut(briefRows, "")
		t.Caption = "Each setting"
	}
	if t.More != "" {
		t.Caption += ", slowest first"
	}
	return t.Brief()
}
