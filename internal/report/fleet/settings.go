package fleet

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"thru/internal/doc"
	"thru/internal/measure"
	"thru/internal/published"
	"thru/internal/report/ladder"
	"thru/internal/report/result"
	"thru/internal/stat"
	"thru/internal/unit"
)

// Limits of the tables of a fleet.
const (
	maxSetRows   = 200 // on the page
	fewSets      = 2   // up to this number a terminal shows all in detail
	textSetRows  = 40
	textHostRows = 24
)

// setTable returns a row for each set of a plan: the varied settings, and the results.
func setTable(sets []*Set) doc.Table {
	names, in, most := axisNames(sets), scaleOf(sets, (*Set).amount), Best(sets)
	table, err := published.Load() // without the published table only the context is missing
	var columns []setColumn
	add := func(name string, least int, cell func(*Set) string) {
		columns = append(columns, setColumn{doc.Column{Name: name, Right: least == 0, Least: least}, cell})
	}
	detail := func(name string, least int, cell func(*Set) string) {
		add(name, least, cell)
		columns[len(columns)-1].Detail = true
	}
	if slices.ContainsFunc(sets, func(s *Set) bool { return s.Rung != "" }) {
		add("rung", 8, func(s *Set) string { return doc.OrDash(s.Rung) })
	}
	if len(names) == 0 {
		add("what", 12, func(s *Set) string { return doc.OrDash(s.Name) })
	}
	for _, n := range names {
		add(axisTitle(n), 6, func(s *Set) string { return doc.OrDash(axisValue(s.Axes, n)) })
	}
	if slices.ContainsFunc(sets, func(s *Set) bool { return len(s.Pairs) > 1 }) {
		add("pairs", 0, (*Set).pairsText)
	}
	if slices.ContainsFunc(sets, func(s *Set) bool { return s.AtOnce() }) {
		add(in.Name+" total", 0, func(s *Set) string { return s.togetherText(in, most, figuresOf(sets)) })
		add("range", 0, func(s *Set) string { return s.rangeText(in) })
		add("each pair", 0, func(s *Set) string { return s.eachText(in) })
	} else {
		add(in.Name, 0, func(s *Set) string { return s.eachText(in) })
		add("range", 0, func(s *Set) string { return s.runsText(in) })
	}
	add("lost", 0, (*Set).lostText)
	detail("p50", 0, func(s *Set) string { return s.latencyText(func(l *measure.Latency) int64 { return l.P50 }) })
	add("p99", 0, func(s *Set) string { return s.latencyText(func(l *measure.Latency) int64 { return l.P99 }) })
	detail("fairness", 0, (*Set).fairnessText)
	detail("busiest host", 9, (*Set).busiestText)
	detail(in.Name+" per core", 0, func(s *Set) string { return s.perCoreText(in) })
	add("limited by", 8, (*Set).limitOf)
	if err == nil && slices.Contains(names, "cpus") {
		detail("published, Gb/s", 0, func(s *Set) string { return doc.OrDash(vcpuText(table, s)) })
	}
	return rowsOf(sets, columns).WithoutEmpty()
}

// setColumn is a column of the table, and its value for a set.
type setColumn struct {
	doc.Column
	cell func(*Set) string
}

func rowsOf(sets []*Set, columns []setColumn) doc.Table {
	var g doc.Table
	for _, c := range columns {
		g.Columns = append(g.Columns, c.Column)
	}
	for _, s := range sets {
		g.Rows = append(g.Rows, unit.Mapped(columns, func(c setColumn) string { return c.cell(s) }))
	}
	return g
}

// axisNames returns the axes of all sets, in order of appearance.
func axisNames(sets []*Set) []string {
	var names []string
	for _, s := range sets {
		for _, a := range s.Axes {
			if !slices.Contains(names, a.Name) {
				names = append(names, a.Name)
			}
		}
	}
	return names
}

// axisTitle returns the common name of an axis.
func axisTitle(name string) string {
	switch name {
	case "cpus":
		return "CPUs"
	case "end_points":
		return "end points per host"
	}
	return doc.Clean(strings.ReplaceAll(name, "_", " "))
}

func axisValue(axes []measure.Axis, name string) string {
	for _, a := range axes {
		if a.Name == name {
			return doc.Clean(a.Value)
		}
	}
	return ""
}

// pairsText returns "8", or "6 of 8" if two failed.
func (s *Set) pairsText() string {
	if n := s.failed(); n > 0 {
		return fmt.Sprintf("%d of %d", len(s.Pairs)-n, len(s.Pairs))
	}
	return fmt.Sprint(len(s.Pairs))
}

// togetherText marks the highest figure with a star, and those not significantly lower with "~".
func (s *Set) togetherText(in doc.Scale, most *Set, of []*measure.Figure) string {
	v, overlap, ok := s.together()
	switch {
	case !ok:
		return "-"
	case !overlap:
		return in.Number(v) + " sum"
	case s == most:
		return in.Number(v) + "*"
	case most != nil && !stat.Exceeds(most.figure(), s.figure(), of):
		return in.Number(v) + "~"
	}
	return in.Number(v) + " "
}

func (s *Set) rangeText(in doc.Scale) string {
	if !s.AtOnce() || s.Groups[0].Aggregate == nil || !result.HasRange(s.Groups[0].Aggregate) {
		return "-"
	}
	return in.Span(s.Groups[0].Aggregate.Low, s.Groups[0].Aggregate.High)
}

// runsText returns the range of the runs of a set's only flow.
func (s *Set) runsText(in doc.Scale) string {
	if len(s.Cells) == 1 {
		if f := stat.MainFigure(s.Cells[0]); f != nil && result.HasRange(f) && !s.Asks {
			return in.Span(f.Low, f.High)
		}
	}
	return "-"
}

// eachText returns the lowest and the highest figure of a pair.
func (s *Set) eachText(in doc.Scale) string {
	values := s.values()
	switch {
	case len(values) == 0:
		return "-"
	case s.number(in, values[0]) == s.number(in, values[len(values)-1]):
		return s.number(in, values[0])
	case s.Asks:
		return s.number(in, values[0]) + "-" + s.number(in, values[len(values)-1])
	}
	return in.Span(values[0], values[len(values)-1])
}

// lostText returns the highest packet loss of the set's datagrams.
func (s *Set) lostText() string {
	most, known := 0.0, false
	for _, c := range s.Cells {
		if c.Datagrams != nil {
			most, known = max(most, c.Datagrams.LossPct), true
		}
	}
	if !known {
		return "-"
	}
	return unit.Percent(most)
}

// latencyText returns the longest of a percentile: of the requests, or under load of the latency probes.
func (s *Set) latencyText(of func(*measure.Latency) int64) string {
	most := int64(-1)
	for _, c := range s.Cells {
		switch {
		case c.UnderLoad != nil && c.UnderLoad.Loaded != nil:
			most = max(most, of(c.UnderLoad.Loaded))
		case c.Latency != nil:
			most = max(most, of(c.Latency))
		}
	}
	if most < 0 {
		return "-"
	}
	return doc.ShortTime(most)
}

// limitOf returns the cause that limits most of the set's flows: "paced", "paced 6 of 12".
func (s *Set) limitOf() string {
	causes := map[string]int{}
	for _, c := range s.Cells {
		if result.IsLimited(c) {
			causes[c.Findings[0].Cause]++
		}
	}
	most := ""
	for _, cause := range slices.Sorted(maps.Keys(causes)) {
		if most == "" || causes[cause] > causes[most] {
			most = cause
		}
	}
	if most == "" || causes[most] == len(s.Cells) {
		return doc.OrDash(doc.CleanUpTo(most, result.LongestCause))
	}
	return fmt.Sprintf("%s %d of %d", doc.CleanUpTo(most, result.LongestCause), causes[most], len(s.Cells))
}

func (s *Set) fairnessText() string {
	if len(s.Groups) != 1 || s.Groups[0].Fairness == nil {
		return "-"
	}
	return fmt.Sprintf("%.3f", *s.Groups[0].Fairness)
}

// busiestText returns the host with the highest CPU load: "b 87%".
func (s *Set) busiestText() string {
	h := s.busiest()
	if h == nil {
		return "-"
	}
	return doc.Clean(h.Name) + " " + result.MachinePct(h.CPU)
}

func (s *Set) perCoreText(in doc.Scale) string {
	if v := s.perCore(); v != nil && !s.Asks {
		return in.Number(*v)
	}
	return "-"
}

// vcpuText returns the published figure for a machine with as many CPUs (B-16).
func vcpuText(t published.Table, s *Set) string {
	if len(s.Cells) == 0 {
		return ""
	}
	row, ok := t.Find("vm-"+axisValue(s.Axes, "cpus")+"-vcpu", s.Cells[0].Streams, published.DefaultWindow)
	if !ok {
		return ""
	}
	return ladder.ReferenceText(row)
}

// shareTable returns the share of each host, or of all hosts of a label, in a set that ran at once.
func shareTable(shares []measure.Share, what string, most int) doc.Table {
	in := doc.ScaleFor(greatestShare(shares))
	g := doc.Table{Most: textHostRows, Rest: elsewhere, Columns: []doc.Column{{Name: what, Least: 8}, {Name: "flows", Right: true}, {Name: "sent, " + in.Name, Right: true}, {Name: "received", Right: true},
		{Name: "CPU", Right: true}, {Name: "cores", Right: true}, {Name: "busiest core", Right: true}, {Name: "memory", Right: true}, {Name: in.Name + " a core", Right: true}}}
	shown := shares
	if len(shares) > most {
		shown = slices.Clone(shares)
		slices.SortStableFunc(shown, func(a, b measure.Share) int { return moreCPU(b, a) })
		shown = shown[:most]
		g.More = fmt.Sprintf("of %d, those with the highest CPU use", len(shares))
	}
	for _, h := range shown {
		g.Rows = append(g.Rows, append([]string{doc.Clean(h.Name), fmt.Sprint(h.Flows), numberOr(in, h.SentBps), numberOr(in, h.ReceivedBps)}, shareCPU(in, h)...))
	}
	return g
}

func greatestShare(shares []measure.Share) float64 {
	most := 0.0
	for _, h := range shares {
		most = max(most, measure.Value(h.SentBps), measure.Value(h.ReceivedBps))
	}
	return most
}

func numberOr(in doc.Scale, v *float64) string {
	if v == nil {
		return "-"
	}
	return in.Number(*v)
}

func shareCPU(in doc.Scale, h measure.Share) []string {
	cpu, cores, busiest, memory := "-", "-", "-", "-"
	if h.CPU != nil {
		cpu, cores = result.MachinePct(h.CPU), fmt.Sprintf("%.2f", h.CPU.Cores)
		if h.CPU.MaxCorePct > 0 {
			busiest = fmt.Sprintf("%.0f%%", h.CPU.MaxCorePct)
		}
	}
	if h.Memory != nil && h.Memory.Used != nil {
		memory = unit.Size(*h.Memory.Used)
	}
	return []string{cpu, cores, busiest, memory, numberOr(in, h.PerCoreBps)}
}

// overlapText words how simultaneous the pairs of a group were.
func overlapText(o *measure.Overlap) string {
	if o == nil {
		return ""
	}
	clocks := "clocks within ±" + unit.Duration(o.BoundNs)
	if o.BoundNs == 0 { // one host receives all
		clocks = "one clock"
	}
	return fmt.Sprintf("all ran at once for %s (%s of the longest run) and started within %s of each other (%s)",
		unit.Duration(o.Ns), unit.Percent(o.SharePct), unit.Duration(o.SkewNs), clocks)
}

// pairTable lists pairs with the figures that explain a low rate.
func pairTable(s *Set, pairs []pairFigure) doc.Table {
	in := scaleOf([]*Set{s}, func(s *Set) float64 { return greatestValue(s.values()) })
	g := doc.Table{Tone: failedTone, Columns: []doc.Column{{Name: "pair", Least: 10}, {Name: in.Name, Right: true}, {Name: "range", Right: true}, {Name: "of ceiling", Right: true},
		{Name: "lost", Right: true}, {Name: "retr", Right: true}, {Name: "RTT", Right: true, Detail: true}, {Name: "CPU snd/rcv", Right: true, Detail: true}, {Name: "limited by", Least: 14}}}
	for _, p := range pairs {
		name, value, spread := p.Name(), "-", "-"
		if p.Flows > 1 {
			name += fmt.Sprintf(" (%d flows)", p.Flows)
		}
		switch {
		case p.Value != nil:
			value = s.number(in, *p.Value)
		case p.Failed != "":
			value = "failed"
		}
		r := []string{name, value, spread, "-", "-", "-", "-", "-", p.why()}
		if len(p.Cells) == 1 {
			cellColumns(r, p.Cells[0], s, in)
		}
		g.Rows = append(g.Rows, r)
	}
	return g.WithoutEmpty()
}

// why returns why a pair failed, else the cause that limits it.
func (p pairFigure) why() string {
	if p.Failed != "" {
		return p.Failed
	}
	for _, c := range p.Cells {
		if result.IsLimited(c) {
			return doc.CleanUpTo(c.Findings[0].Cause, result.LongestCause)
		}
	}
	return "-"
}

// cellColumns fills the other figures of a pair with one flow.
func cellColumns(r []string, c *measure.Cell, s *Set, in doc.Scale) {
	if f := stat.MainFigure(c); f != nil && result.HasRange(f) {
		r[2] = s.number(in, f.Low) + "-" + s.number(in, f.High)
	}
	if c.Ceiling != nil {
		r[3] = unit.Percent(c.Ceiling.SharePct)
	}
	if c.Datagrams != nil {
		r[4] = unit.Percent(c.Datagrams.LossPct)
	}
	if c.Retransmits != nil {
		r[5] = unit.Count(*c.Retransmits)
	}
	if c.RTTLoaded != nil {
		r[6] = unit.Duration(*c.RTTLoaded)
	}
	if c.SenderCPU != nil || c.ReceiverCPU != nil {
		r[7] = result.MachinePct(c.SenderCPU) + "/" + result.MachinePct(c.ReceiverCPU)
	}
}

func greatestValue(sorted []float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[len(sorted)-1]
}

// failedTone marks failures.
func failedTone(cell string) doc.Tone {
	switch {
	case cell == "failed" || cell == "fail":
		return doc.ToneBad
	case cell == "pass":
		return doc.ToneGood
	}
	return doc.ToneNone
}

// elsewhere names where to find the rows that do not fit a terminal.
const elsewhere = "see the HTML report"
