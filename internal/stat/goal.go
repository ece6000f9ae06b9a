package stat

import (
	"fmt"
	"math"
	"slices"

	"thru/internal/measure"
	"thru/internal/unit"
)

// Goal is a requirement of a plan (plan.Target).
type Goal struct {
	Of     string         // OfTotal, OfPair or OfHost
	Where  []measure.Axis // only for groups with these values; none: all
	Rung   string         // only for this rung; empty: all
	Figure string         // FigureGoodput and so on
	Wanted float64
	AtMost bool // else at least
}

// What a Goal applies to.
const (
	OfTotal = "total" // the aggregate of a group
	OfPair  = "pair"  // each pair
	OfHost  = "host"  // each host's sent or received rate, whichever is lower
)

// Figures of a Goal.
const (
	FigureGoodput  = "goodput_bps"
	FigureShare    = "share_pct"     // goodput in percent of the ceiling
	FigureRTT      = "rtt_loaded_ns" // of TCP the kernel's, else the median of concurrent requests
	FigureLoss     = "loss_pct"      // of datagrams; of TCP the retransmitted bytes
	FigureFairness = "jain_fairness" // of a group over its pairs, of a pair over its streams
)

// Goals fills d.Targets, one for each goal and group that it applies to, and sets d.Verdict by them; without goals
// both stay as they are. Call it after Groups.
//
// The worst pair or host decides; a total's round-trip time and loss are those of its worst pair. An unmeasured figure
// counts as not met.
//
//	share of a pair  = what its flows carried together, of the ceiling of its path
//	share of a host  = the same, of the highest ceiling of its flows
//	share of a total = the lowest utilisation of the fullest link of any flow (LinkShare)
func Goals(d *measure.Document, goals []Goal) {
	if len(goals) == 0 {
		return
	}
	d.Targets = nil
	var wanted []string           // of each target, with what it got
	busy, conclusive := "", false // a host that could not have met a target, and whether one is missed elsewhere
	cells := byGroup(d)
	for _, g := range goals {
		found := false
		for i := range d.Groups {
			if x := &d.Groups[i]; g.fits(x, cells[x.Group]) {
				found = true
				t := g.judge(d, x, cells[x.Group])
				d.Targets, wanted = append(d.Targets, t), append(wanted, g.against(t))
				if host := BusyHost(cells[x.Group]); host != "" && !t.Pass {
					busy = host
				} else if !t.Pass {
					conclusive = true
				}
			}
		}
		if !found {
			conclusive = true
			t := measure.Target{What: g.scope(), Group: -1, Wanted: g.Wanted, Unit: g.unit(), AtMost: g.AtMost, Reason: "nothing was measured that it applies to"}
			d.Targets, wanted = append(d.Targets, t), append(wanted, g.against(t))
		}
	}
	if d.Verdict = goalsVerdict(d.Targets, wanted); busy != "" && !conclusive {
		*d.Verdict = busyVerdict(*d.Verdict, busy)
	}
}

// fits reports whether the goal applies to that group. A single flow has no fairness.
func (g Goal) fits(x *measure.Group, cells []*measure.Cell) bool {
	if g.Rung != "" && g.Rung != x.Rung {
		return false
	}
	if g.Figure == FigureFairness && g.Of == OfTotal && len(bulkOf(cells)) < 2 {
		return false
	}
	return !slices.ContainsFunc(g.Where, func(a measure.Axis) bool { return !slices.Contains(x.Axes, a) })
}

// scope words what a goal applies to if no group fits it.
func (g Goal) scope() string {
	text := g.noun()
	if g.Rung != "" {
		text += " of " + g.Rung
	}
	if len(g.Where) > 0 {
		text += ", " + AxesText(g.Where)
	}
	return text
}

// noun words what a goal is about.
func (g Goal) noun() string {
	figure := map[string]string{FigureRTT: "round trip under load", FigureLoss: "loss", FigureFairness: "fairness"}[g.Figure]
	of := map[string]string{OfPair: "each pair", OfHost: "each host"}[g.Of]
	switch {
	case figure == "" && of == "":
		return "aggregate"
	case figure == "":
		return "goodput of " + of
	case of == "":
		return figure
	}
	return figure + " of " + of
}

func (g Goal) unit() string {
	switch g.Figure {
	case FigureShare, FigureLoss:
		return "pct"
	case FigureRTT:
		return "ns"
	case FigureFairness:
		return "fairness"
	}
	return "bps"
}

// print formats a value of the goal's figure.
func (g Goal) print(x float64) string {
	switch g.Figure {
	case FigureShare:
		return fmt.Sprintf("%.2f%%", x)
	case FigureLoss:
		return unit.Percent(x)
	case FigureRTT:
		return unit.Duration(int64(x))
	case FigureFairness:
		return fmt.Sprintf("%.3f", x)
	}
	return unit.Rate(x)
}

// meets reports whether a value meets the goal.
func (g Goal) meets(x float64) bool {
	if g.AtMost {
		return x <= g.Wanted
	}
	return x >= g.Wanted
}

// reading is one figure that is compared with a goal, or why there is none.
type reading struct {
	name  string // of the pair or host; empty for a total
	from  string // of a pair
	to    string
	value float64
	why   string // why it is not known
	note  string // a note on the value, or why it is wrong
	wrong bool   // the value is impossible: it proves nothing
}

// judge compares a group with the goal, by its worst reading.
func (g Goal) judge(d *measure.Document, x *measure.Group, cells []*measure.Cell) measure.Target {
	t := measure.Target{What: g.what(x), Group: x.Group, Wanted: g.Wanted, Unit: g.unit(), AtMost: g.AtMost}
	all := g.readings(d, x, cells)
	var worst *reading
	missed := 0
	for i := range all {
		r := &all[i]
		if !g.isMet(*r) {
			missed++
		}
		if worst == nil || g.isWorse(*r, *worst) {
			worst = r
		}
	}
	if worst == nil {
		t.Reason = "nothing was measured"
		return t
	}
	if t.Pass = missed == 0; worst.why == "" {
		t.Got = Known(worst.value)
	}
	t.Reason, t.From, t.To = g.reason(*worst, len(all), missed), worst.from, worst.to
	return t
}

// what words the subject of a target: "aggregate, 4 streams", "loss of each pair, 8 pairs".
func (g Goal) what(x *measure.Group) string {
	text := g.noun()
	if x.Label != "" {
		text += ", " + x.Label
	}
	if x.Rung != "" {
		text += ", " + x.Rung
	}
	return text
}

func (g Goal) isMet(r reading) bool { return r.why == "" && !r.wrong && g.meets(r.value) }

// isWorse orders readings: unmeasured ones first, then impossible ones, then by value.
func (g Goal) isWorse(a, b reading) bool {
	if (a.why != "") != (b.why != "") {
		return a.why != ""
	}
	if a.wrong != b.wrong {
		return a.wrong
	}
	if g.AtMost {
		return a.value > b.value
	}
	return a.value < b.value
}

// against words what was wanted, and what was reached.
func (g Goal) against(t measure.Target) string {
	bar, got := "at least", t.Reason
	if g.AtMost {
		bar = "at most"
	}
	if got == "" && t.Got != nil {
		got = g.print(*t.Got)
	}
	return fmt.Sprintf("%s, wanted %s %s: %s", t.What, bar, g.print(g.Wanted), got)
}

// reason words the outcome by the worst reading: the report shows the value and the goal too, so for a total there
// may be nothing to add.
func (g Goal) reason(r reading, of, missed int) string {
	text := ""
	switch {
	case r.why != "":
		text = "not measured: " + r.why
	case r.note != "":
		text = fmt.Sprintf("%s (%s)", g.print(r.value), r.note)
	case r.name != "" || r.wrong:
		text = g.print(r.value)
	}
	if r.name != "" {
		text = r.name + ": " + text
	}
	if r.wrong {
		return text + ", " + wrongAssumption
	}
	if missed > 0 && of > 1 {
		text += fmt.Sprintf("; %d of %d miss it", missed, of)
	}
	return text
}

// goalsVerdict fails if a target is not met, and words the first one.
func goalsVerdict(targets []measure.Target, wanted []string) *measure.Verdict {
	missed, first := 0, -1
	for i := range targets {
		if !targets[i].Pass {
			if missed++; first < 0 {
				first = i
			}
		}
	}
	n := len(targets)
	if first < 0 {
		v := &measure.Verdict{Pass: true, Reason: fmt.Sprintf("all %d targets are met", n)}
		if n == 1 {
			v.Reason = "the target is met"
		}
		return v
	}
	t := &targets[first]
	text := fmt.Sprintf("%d of %d targets are not met; the first is ", missed, n)
	switch {
	case n == 1:
		text = "the target is not met: "
	case missed == 1:
		text = fmt.Sprintf("1 of %d targets is not met: ", n)
	}
	v := &measure.Verdict{Reason: text + wanted[first]}
	if t.Unit == "pct" && !t.AtMost {
		v.Required, v.Share = t.Wanted, measure.Value(t.Got)
	}
	return v
}

// readings returns the figures of a group that are compared with the goal.
func (g Goal) readings(d *measure.Document, x *measure.Group, cells []*measure.Cell) []reading {
	switch g.Of {
	case OfPair:
		return g.ofPairs(x, cells)
	case OfHost:
		return g.ofHosts(x, cells)
	}
	switch g.Figure {
	case FigureRTT, FigureLoss:
		worst := g.ofPairs(x, cells)
		slices.SortStableFunc(worst, func(a, b reading) int { return unit.Bit(g.isWorse(b, a)) - unit.Bit(g.isWorse(a, b)) })
		return worst[:min(1, len(worst))]
	case FigureFairness:
		return []reading{readingOf("", x.Fairness, "fairness needs two measured pairs")}
	}
	if x.Aggregate == nil {
		return []reading{{why: whyMissing(x.Missing, "aggregate_bps")}}
	}
	if g.Figure != FigureShare {
		return []reading{{value: x.Aggregate.Value}}
	}
	pct, least := groupShare(d, cells)
	if least == nil {
		return []reading{{why: noLinkRate}}
	}
	return []reading{{value: pct, wrong: pct > AboveCeilingPct, note: "the links of " + pairName(least) + ", with a ceiling of " + unit.Rate(least.Ceiling.Bps)}}
}

// noLinkRate is why there is no share.
const noLinkRate = "the link rate is not known (set link_rate), or the flows were not meant to fill it"

// byGroup returns the main cells of each group, in the order of the document.
func byGroup(d *measure.Document) map[int][]*measure.Cell {
	all := map[int][]*measure.Cell{}
	for i := range d.Cells {
		if c := &d.Cells[i]; !c.Baseline {
			all[c.Group] = append(all[c.Group], c)
		}
	}
	return all
}

func readingOf(name string, x *float64, otherwise string) reading {
	if x == nil {
		return reading{name: name, why: otherwise}
	}
	return reading{name: name, value: *x}
}

// whyMissing returns the recorded reason for an absent fact.
func whyMissing(all []measure.NotChecked, fact string) string {
	for _, m := range all {
		if m.Fact == fact {
			return m.Why
		}
	}
	return "nothing was measured"
}

// rated returns a goodput, or its share of a ceiling.
func (g Goal) rated(name string, bps, ceiling float64) reading {
	switch {
	case g.Figure != FigureShare:
		return reading{name: name, value: bps}
	case !(ceiling > 0):
		return reading{name: name, why: noLinkRate}
	}
	share := 100 * bps / ceiling
	return reading{name: name, value: share, wrong: share > AboveCeilingPct, note: unit.Rate(bps) + " of " + unit.Rate(ceiling)}
}

// ofPairs returns the figures of each pair, over all its flows.
func (g Goal) ofPairs(x *measure.Group, cells []*measure.Cell) []reading {
	var all []reading
	for _, name := range unit.Unique(unit.Mapped(bulkOf(cells), pairName)) {
		flows := unit.Filtered(bulkOf(cells), func(c *measure.Cell) bool { return pairName(c) == name })
		r := g.ofPair(name, x, flows)
		r.from, r.to = flows[0].From, flows[0].To
		all = append(all, r)
	}
	return all
}

// ofPair returns the figure of one pair.
func (g Goal) ofPair(name string, x *measure.Group, flows []*measure.Cell) reading {
	if i := slices.IndexFunc(x.Failed, func(f measure.Failure) bool { return f.From == flows[0].From && f.To == flows[0].To }); i >= 0 {
		return reading{name: name, why: x.Failed[i].Error}
	}
	switch g.Figure {
	case FigureRTT:
		return worstOf(name, flows, loadedRTT, "no round trip was measured under load")
	case FigureLoss:
		return worstOf(name, flows, lossPct, "neither end counts losses")
	case FigureFairness:
		return leastOf(name, flows, func(c *measure.Cell) *float64 { return c.Fairness }, "there is only one stream")
	}
	total, ceiling := 0.0, 0.0
	for _, c := range flows {
		if c.Goodput == nil {
			return reading{name: name, why: "nothing was measured"}
		}
		total += c.Goodput.Value
		if c.Ceiling != nil {
			ceiling = max(ceiling, c.Ceiling.Bps)
		}
	}
	return g.rated(name, total, ceiling)
}

// worstOf returns the maximum of a figure over flows, leastOf the minimum; unknown if one flow lacks it.
func worstOf(name string, flows []*measure.Cell, of func(*measure.Cell) *float64, otherwise string) reading {
	r := reading{name: name, value: math.Inf(-1)}
	for _, c := range flows {
		x := of(c)
		if x == nil {
			return reading{name: name, why: otherwise}
		}
		r.value = max(r.value, *x)
	}
	return r
}

func leastOf(name string, flows []*measure.Cell, of func(*measure.Cell) *float64, otherwise string) reading {
	r := worstOf(name, flows, func(c *measure.Cell) *float64 {
		if x := of(c); x != nil {
			return new(-*x)
		}
		return nil
	}, otherwise)
	r.value = -r.value
	return r
}

// loadedRTT returns the round-trip time under load, in ns.
func loadedRTT(c *measure.Cell) *float64 {
	switch {
	case c.RTTLoaded != nil:
		return new(float64(*c.RTTLoaded))
	case c.UnderLoad != nil && c.UnderLoad.Loaded != nil:
		return new(float64(c.UnderLoad.Loaded.P50))
	}
	return nil
}

// lossPct returns the lost datagrams, or the retransmitted TCP bytes, in percent.
func lossPct(c *measure.Cell) *float64 {
	switch {
	case c.Datagrams != nil:
		return new(c.Datagrams.LossPct)
	case c.RFC6349 != nil && c.RFC6349.EfficiencyPct != nil:
		return new(100 - *c.RFC6349.EfficiencyPct)
	}
	return nil
}

// ofHosts returns the figures of each host: the lower of its sent and received rates, for other figures the worst
// of its flows.
func (g Goal) ofHosts(x *measure.Group, cells []*measure.Cell) []reading {
	var all []reading
	for _, h := range x.Hosts {
		var flows []*measure.Cell
		ceiling := 0.0
		for _, c := range bulkOf(cells) {
			if c.From == h.Name || c.To == h.Name {
				flows = append(flows, c)
				if c.Ceiling != nil {
					ceiling = max(ceiling, c.Ceiling.Bps)
				}
			}
		}
		rate := lesser(h.SentBps, h.ReceivedBps)
		switch {
		case len(flows) == 0:
		case g.Figure != FigureGoodput && g.Figure != FigureShare:
			all = append(all, g.ofPair(h.Name, &measure.Group{}, flows))
		case rate == nil:
			all = append(all, reading{name: h.Name, why: "none of its flows was measured"})
		default:
			all = append(all, g.rated(h.Name, *rate, ceiling))
		}
	}
	return all
}

// lesser returns the lower of two figures, either of which may be absent.
func lesser(a, b *float64) *float64 {
	if a == nil || b != nil && *b < *a {
		return b
	}
	return a
}
