package report

import (
	"fmt"
	"slices"
	"strings"

	"thru/internal/doc"
	"thru/internal/measure"
	"thru/internal/report/facts"
	"thru/internal/report/fleet"
	"thru/internal/report/inventory"
	"thru/internal/report/ladder"
	"thru/internal/report/result"
	"thru/internal/report/series"
	"thru/internal/report/transfer"
	"thru/internal/report/tuning"
	"thru/internal/report/why"
	"thru/internal/stat"
	"thru/internal/unit"
)

// summary is the top of a page: the verdict, the rate, what limits it, and what to do.
type summary struct {
	Accepted acceptance
	Rows     []summaryRow
}

// acceptance is the verdict in the words of an acceptance record.
type acceptance = doc.Verdict

// markOf returns a sign next to the word, for readers who do not see the colour.
func markOf(t doc.Tone) string {
	return map[doc.Tone]string{doc.ToneGood: "✓", doc.ToneBad: "✗", doc.ToneOpen: "?"}[t]
}

// summaryRow is an answer of a few lines.
type summaryRow struct {
	Name  string
	Items []summaryItem
}

// summaryItem is a line, and the commands for it.
type summaryItem struct {
	Text     string
	Advice   string   // that it contains
	Hosts    []string // where to run its commands
	Commands []string
}

// maxNames limits the hosts at the top of a page.
const maxNames = 8

// newSummary summarizes the view: of the whole document, and of the final state of a tuning.
func newSummary(whole, d *measure.Document, v *view) summary {
	b := summary{Accepted: acceptanceOf(whole, d)}
	if b.Accepted.Tone != doc.ToneNone && !result.IsCheck(d) {
		b.Accepted.But = doubts(d)
	}
	b.Accepted.Mark = markOf(b.Accepted.Tone)
	b.add("Between", betweenLines(d))
	b.add("Carries", carriedLines(d))
	b.add("Gives", transfer.DiskAnswers(d))
	if inventory.Is(d) {
		b.add("Labels", []string{facts.Labels(d.Labels, true)})
		return b
	}
	b.add("Limited by", limitLines(d, v))
	b.do(whole, d, v)
	b.add("Labels", []string{facts.Labels(d.Labels, true)})
	return b
}

func (b *summary) add(name string, lines []string) {
	r := summaryRow{Name: name}
	for _, s := range lines {
		r.addText(s)
	}
	b.take(r)
}

// addText adds a line that is not empty, once.
func (r *summaryRow) addText(text string, commands ...string) {
	r.add(summaryItem{Text: text, Commands: commands})
}

func (r *summaryRow) add(x summaryItem) {
	same := func(i summaryItem) bool { return i.Text == x.Text && slices.Equal(i.Commands, x.Commands) }
	if x.Text+strings.Join(x.Commands, "") != "" && !slices.ContainsFunc(r.Items, same) {
		x.Commands = x.Commands[:min(len(x.Commands), result.MaxCommands)]
		r.Items = append(r.Items, x)
	}
}

// take adds a row that is not empty, with a limited number of lines.
func (b *summary) take(r summaryRow) {
	if n := len(r.Items) - maxSummary; n > 0 {
		r.Items = append(r.Items[:maxSummary:maxSummary], summaryItem{Text: fmt.Sprintf("and %d more below", n)})
	}
	if len(r.Items) > 0 {
		b.Rows = append(b.Rows, r)
	}
}

// acceptanceOf returns whether a result is accepted: a tuning with a target if that is met.
func acceptanceOf(whole, d *measure.Document) acceptance {
	if result.IsTuning(whole) && tuning.TargetAnswer(whole) != "" {
		return targetAcceptance(whole)
	}
	return newAcceptance(d)
}

// newAcceptance returns whether the result is accepted. Without a rate or a target to compare with there is
// no verdict, but commands to get one.
func newAcceptance(d *measure.Document) acceptance {
	switch v := d.Verdict; {
	case result.IsCheck(d):
		return checkAcceptance(d)
	case v != nil && v.Inconclusive:
		return acceptance{Word: "inconclusive", Tone: doc.ToneOpen, Why: doc.Join(judgedText(v), doc.Clean(v.Reason)), Do: doc.Clean(v.Do)}
	case v != nil && !v.Pass:
		return acceptance{Word: "not accepted", Tone: doc.ToneBad, Why: doc.Clean(v.Reason)}
	case fleet.FailedTargets(d) > 0:
		return acceptance{Word: "not accepted", Tone: doc.ToneBad, Why: fleet.TargetsLine(d)}
	case v != nil && d.BrokeOff():
		return acceptance{Word: "no verdict", Why: "the measurement ended early; what was measured would pass"}
	case v != nil && len(d.Targets) > 0:
		return acceptance{Word: "accepted", Tone: doc.ToneGood, Why: doc.Join(fleet.TargetsLine(d), forcedText(d))}
	case v != nil:
		return acceptance{Word: "accepted", Tone: doc.ToneGood, Why: doc.Join(judgedText(v), doc.Clean(v.Reason), forcedText(d))}
	case result.IsDisk(d) && !result.IsTransfer(d):
		return acceptance{Word: "no verdict", Why: "a disk test has no target"}
	case transfer.Moved(d):
		return acceptance{Word: "no verdict", Why: "a transfer is compared with the layers below it, not with a target rate"}
	case inventory.Is(d): // it is only read, and compared with nothing
		return acceptance{}
	case !measured(d) && countGates(d.Gates, measure.GateFail) > 0:
		return acceptance{Word: "no verdict", Why: "nothing was measured, because a gate fails"}
	case !measured(d):
		return acceptance{Word: "no verdict", Why: "nothing was measured"}
	}
	return acceptance{Word: "no verdict", Why: noVerdictText(d), How: verdictCommands(d)}
}

// judgedText returns how many rungs of a ladder were judged, if not all were.
func judgedText(v *measure.Verdict) string {
	if v.Judged == v.Rungs {
		return ""
	}
	return fmt.Sprintf("%d of %d judged", v.Judged, v.Rungs)
}

// targetAcceptance returns the acceptance of a tuning with a target.
func targetAcceptance(d *measure.Document) acceptance {
	why := strings.TrimPrefix(tuning.TargetAnswer(d), "; ")
	if tuning.MeetsTarget(d) {
		return acceptance{Word: "accepted", Tone: doc.ToneGood, Why: why}
	}
	if host := tuning.BusyForTarget(d); host != "" {
		return acceptance{Word: "inconclusive", Tone: doc.ToneOpen, Why: strings.TrimPrefix(why, "inconclusive: "), Do: doc.Clean(stat.EndOther(host))}
	}
	return acceptance{Word: "not accepted", Tone: doc.ToneBad, Why: why}
}

func checkAcceptance(d *measure.Document) acceptance {
	switch fail := countGates(d.Gates, measure.GateFail); {
	case fail == 1:
		return acceptance{Word: "not fit", Tone: doc.ToneBad, Why: "a gate fails: a measurement would be invalid"}
	case fail > 1:
		return acceptance{Word: "not fit", Tone: doc.ToneBad, Why: fmt.Sprintf("%d gates fail: a measurement would be invalid", fail)}
	case d.BrokeOff() || countGates(d.Gates, measure.GatePass) == 0:
		return acceptance{Word: "no verdict", Why: "the check is incomplete"}
	}
	a := acceptance{Word: "fit", Tone: doc.ToneGood, Why: "no gate fails: a measurement is valid"}
	if n := countGates(d.Gates, measure.GateWarn); n > 0 {
		a.But = []string{unit.Plural(n, "gate") + doc.Verb(n, " warns", " warn") + ": a measurement may show less than the path carries"}
	}
	return a
}

// forcedText notes that gates failed and were overruled.
func forcedText(d *measure.Document) string {
	if !d.Forced || countGates(d.Gates, measure.GateFail) == 0 {
		return ""
	}
	return "despite a failed gate (--force)"
}

// noVerdictText explains why there is no verdict.
func noVerdictText(d *measure.Document) string {
	first, _, _ := result.MainCells(d)
	switch {
	case first != nil && result.Asks(first):
		return "requests have no link rate to compare with; set targets in a plan"
	case first != nil && first.From == first.To:
		return "traffic within one host has no link rate to compare with"
	}
	return "the link rate is not known"
}

// verdictCommands returns the commands to repeat the measurement with a link rate; the reader replaces the
// rate.
func verdictCommands(d *measure.Document) []string {
	first, _, _ := result.MainCells(d)
	again := slices.Contains([]string{"test", "explain", "ladder", "run", "tune"}, d.Command)
	if first == nil || result.Asks(first) || first.From == first.To || !again || slices.Contains(d.Arguments, "--link-rate") {
		return nil
	}
	plain := *d
	plain.Arguments = slices.DeleteFunc(slices.Clone(d.Arguments), func(a string) bool { return a == "--json" || a == "-J" || a == "--json-stream" })
	return []string{reproduce(&plain) + " --link-rate 10G"}
}

// betweenLines describes the end points: "peer is beta, 192.0.2.2, Debian 12". For many hosts it has only
// their names.
func betweenLines(d *measure.Document) (all []string) {
	many := len(d.EndPoints) > maxNames/2
	for _, e := range d.EndPoints[:min(len(d.EndPoints), maxNames)] {
		host, system, addr, name := "", "", doc.Clean(e.Addr), doc.Clean(e.Name)
		if e.Facts != nil {
			host, system = doc.Clean(measure.Value(e.Facts.Hostname)), doc.Clean(measure.Value(e.Facts.Distro))
		}
		if host == name {
			host = ""
		}
		if strings.HasPrefix(addr, name) {
			addr = ""
		}
		switch about := doc.Join(addr, system); {
		case many:
			all = append(all, strings.TrimSpace(name+" "+doc.Bracket(host)))
		case host != "":
			all = append(all, name+" is "+doc.Join(host, about))
		default:
			all = append(all, name+doc.Prefixed(": ", about))
		}
	}
	if !many {
		return all
	}
	more := ""
	if n := len(d.EndPoints) - len(all); n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return []string{unit.Plural(len(d.EndPoints), "host") + ": " + strings.Join(all, ", ") + more}
}

// carriedLines returns the figures of each direction, of each rung, or of the setting under which the pairs
// carried most.
func carriedLines(d *measure.Document) (all []string) {
	switch {
	case result.IsCheck(d):
		return nil
	case result.IsTransfer(d):
		return transfer.MovedLines(d)
	}
	if d.Ladder != nil {
		for i := range d.Ladder.Rungs {
			if r := &d.Ladder.Rungs[i]; r.Best != nil {
				all = append(all, doc.Clean(r.Name)+": "+fleet.RungRate(r))
			}
		}
		slices.Reverse(all) // the highest rung is of most interest
		return all
	}
	if s := fleet.Best(fleet.Sets(d)); s != nil && result.MainCount(d) > 2 {
		return []string{doc.Join(s.Answer(), s.Name)}
	}
	if s := ladder.Answer(d); s != "" {
		return []string{s}
	}
	if s := series.ClassesAnswer(d); s != "" {
		return []string{s}
	}
	first, back, _ := result.MainCells(d)
	for _, c := range []*measure.Cell{first, back} {
		if c != nil && stat.MainFigure(c) != nil {
			all = append(all, carriedLine(c))
		}
	}
	if first != nil && !result.Asks(first) {
		if s := result.RTTText(first.RTTIdle, first.RTTLoaded); s != "" {
			all = append(all, "round trip on the test connections "+s)
		}
	}
	return all
}

// carriedLine returns "956 Mb/s local -> peer (95% interval 948-964), 100% of what MTU 1500 allows on 1
// Gb/s".
func carriedLine(c *measure.Cell) string {
	if result.Asks(c) {
		return result.RequestsAnswer(c, nil)
	}
	s := result.Amounts(c, nil, unit.Rate)
	if f := c.Goodput; f != nil && f.CI95Low != nil && f.CI95High != nil && !result.HasCapacity(c) {
		s += " (" + result.IntervalText(f, doc.ScaleFor(f.Value).Span) + ")"
	}
	if x := c.Ceiling; x != nil {
		s += fmt.Sprintf(", %s of the %s that %s leaves for payload at MTU %d", unit.Percent(x.SharePct), unit.Rate(x.Bps), result.LinkRate(x), x.MTU)
	}
	return s
}

// limitLines names what limits each direction, with the confidence.
func limitLines(d *measure.Document, v *view) (all []string) {
	if result.IsCheck(d) {
		return nil
	}
	if v.Tuning != nil && len(v.Tuning.Remains) > 0 {
		return v.Tuning.Remains
	}
	diagnosed := slices.Concat(v.Why, v.Judged)
	for i := range diagnosed {
		if f := diagnosed[i].Findings; len(f) > 0 {
			all = append(all, limitLine(&diagnosed[i], &f[0]))
		}
	}
	if s := pairsLimit(d, v); s != "" {
		all = append(all, s)
	}
	if len(all) > 0 {
		return all
	}
	first, _, _ := result.MainCells(d)
	if c, _ := fleet.Judged(d); c != nil {
		first = c
	}
	switch {
	case first == nil || result.Asks(first):
		return nil
	case fillsLink(d, first):
		return []string{"the link itself: it is full"}
	}
	return []string{"not known"}
}

// pairsLimit returns what limits most pairs of a plan, unless the judged one has the same finding.
func pairsLimit(d *measure.Document, v *view) string {
	s := fleet.Best(fleet.Sets(d))
	if v.Fleet == nil || d.Ladder != nil || len(v.Why) > 0 || s == nil {
		return ""
	}
	if c, _ := fleet.Judged(d); c != nil && len(c.Findings) > 0 {
		same := unit.CountFunc(s.Cells, func(x *measure.Cell) bool {
			f := result.Binding(x)
			return f != nil && f.Cause == c.Findings[0].Cause
		})
		if 2*same >= len(s.Cells) {
			return ""
		}
	}
	return strings.TrimLeft(fleet.CauseAnswer(d, s), ":; ")
}

// fillsLink reports whether the figures reach the ceiling of the link; for a plan those of the best setting.
func fillsLink(d *measure.Document, first *measure.Cell) bool {
	if v := d.Verdict; v != nil && v.Pass && v.Share >= stat.PassPct {
		return true
	}
	cells := []*measure.Cell{first}
	if s := fleet.Best(fleet.Sets(d)); s != nil {
		cells = s.Cells
	}
	return !slices.ContainsFunc(cells, func(c *measure.Cell) bool { return c.Ceiling == nil || !(c.Ceiling.SharePct >= stat.PassPct) })
}

func limitLine(w *why.Diagnosis, f *why.Finding) string {
	s := result.Unended(f.Summary)
	switch {
	case f.Cause == measure.CauseNone:
		s = "no limit was found"
	case f.Cause == result.CauseLinkRate:
		s = "the link itself: it is full"
	case s == "":
		s = f.Cause
	}
	if f.Cause != measure.CauseNone && f.Confidence != measure.Certain {
		s += " (" + f.Confidence + ")"
	}
	if w.Direction != "" {
		s = w.Direction + ": " + s
	}
	return s
}

// do adds what to do: to make a measurement possible, or against what limits the rate.
func (b *summary) do(whole, d *measure.Document, v *view) {
	r := summaryRow{Name: "To do"}
	for _, g := range v.Gates.With(measure.GateFail) {
		r.addText(strings.Join(doc.NonEmpty(g.Where+": "+g.Fact, g.Advice, g.At), "; "), g.Fix...)
	}
	if result.IsCheck(d) && b.Accepted.Tone == doc.ToneGood {
		r.warned(v)
	}
	if v.Error != nil && d.BrokeOff() {
		r.addText(v.Error.Hint)
	}
	for _, w := range slices.Concat(v.Why, v.Judged) {
		if f := w.Findings; len(f) > 0 && !f[0].Healthy {
			r.against(&f[0])
		}
	}
	if v.Tuning != nil {
		r.tuned(v.Tuning, tuning.LinkIsFull(whole))
	}
	for _, s := range v.Advice {
		r.addText(s)
	}
	if len(r.Items) == 0 {
		r.addText(nothingToDo(b.Accepted, d))
	}
	if len(b.Accepted.But) > 0 && hasFewRuns(d) {
		r.addText(repeatText(d))
	}
	b.take(r)
}

// hasFewRuns reports whether the verdict rests on too few runs for an acceptance.
func hasFewRuns(d *measure.Document) bool {
	first, back, _ := result.MainCells(d)
	c, _ := fleet.Judged(d)
	return slices.ContainsFunc([]*measure.Cell{first, back, c}, func(c *measure.Cell) bool {
		return c != nil && slices.ContainsFunc(c.Coded, func(w measure.Warning) bool { return w.Code == measure.SingleRun || w.Code == measure.FewRuns })
	})
}

// repeatText explains how to turn an indication into an acceptance.
func repeatText(d *measure.Document) string {
	switch d.Command {
	case "test", "ladder":
	case "run":
		return fmt.Sprintf("for a reliable verdict, measure %d times (repeat: %d in the plan)", stat.AcceptanceRuns, stat.AcceptanceRuns)
	default:
		return ""
	}
	return fmt.Sprintf("for a reliable verdict, measure %d times (--repeat %d)", stat.AcceptanceRuns, stat.AcceptanceRuns)
}

// warned adds the warnings of the gates, a line for each gate.
func (r *summaryRow) warned(v *view) {
	said := map[string]int{}
	warns := v.Gates.With(measure.GateWarn).Joined()
	for _, g := range warns {
		said[g.ID]++
	}
	for _, g := range warns {
		if said[g.ID] == 0 {
			continue // another place of it is listed
		}
		where, advice := g.Where, g.Advice
		if n := said[g.ID] - 1; n > 0 {
			where += fmt.Sprintf(", and %d more", n)
		}
		if len(g.Fix) > 0 { // the commands contain it; exceptions are listed with the gate
			advice = ""
		}
		if len(r.Items) == 0 {
			r.addText("nothing is required before a measurement. Recommended:")
		}
		r.addText(strings.Join(doc.NonEmpty(g.ID+" ("+where+"): "+g.Fact, advice, g.At), "; "), g.Fix...)
		said[g.ID] = 0
	}
}

// against adds the fix of a finding, or the test that would confirm it.
func (r *summaryRow) against(f *why.Finding) {
	switch {
	case f.Advice+f.At != "" && !r.joins(f):
		r.add(summaryItem{strings.Join(doc.NonEmpty(f.Advice, f.At), "; "), f.Advice, doc.NonEmpty(f.Host), f.Commands})
	case f.Advice+f.At != "":
	case f.Next != "":
		r.addText("to confirm: " + f.Next)
	}
}

// joins adds the host of a finding to a line with the same advice for another one.
func (r *summaryRow) joins(f *why.Finding) bool {
	i := slices.IndexFunc(r.Items, func(x summaryItem) bool {
		return f.Host != "" && len(x.Hosts) > 0 && x.Advice == f.Advice && slices.Equal(x.Commands, f.Commands)
	})
	if i < 0 {
		return false
	}
	if x := &r.Items[i]; !slices.Contains(x.Hosts, f.Host) {
		x.Hosts = append(x.Hosts, f.Host)
		x.Text = strings.Join(doc.NonEmpty(x.Advice, why.AtHosts(x.Hosts...)), "; ")
	}
	return true
}

// tuned adds what a tuning leaves to its reader; nothing if the link is full.
func (r *summaryRow) tuned(t *tuning.View, full bool) {
	if len(t.Persistent) > 0 {
		r.addText("make the kept changes persistent (below)")
	}
	if full && len(t.Advice) > 0 {
		r.addText("no change is needed: the link is full. Further options are below")
		return
	}
	for _, a := range t.Advice {
		switch said := slices.ContainsFunc(r.Items, func(i summaryItem) bool { return i.Advice == a.Advice }); {
		case a.Change:
			r.addText("try " + a.Title)
		case !said: // with its commands, against what limits it
			r.addText("check: " + a.Title)
		}
	}
}

func nothingToDo(a acceptance, d *measure.Document) string {
	switch {
	case !measured(d) && !result.IsCheck(d) && !result.IsDisk(d) && !transfer.Moved(d):
		return "see the error below"
	case a.Tone == doc.ToneGood:
		return "nothing: the result meets its target"
	case d.Command != "explain" && (a.Tone == doc.ToneBad && !result.IsCheck(d) || len(a.How) > 0 && len(d.Findings) == 0):
		return "run `thru explain` to find the limit by experiment"
	}
	return "nothing: no setting was found that would help"
}
