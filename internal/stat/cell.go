package stat

import (
	"fmt"
	"math"
	"slices"

	"thru/internal/measure"
)

// Summarise fills the figures of a cell from the evidence of its runs. It may be called after each run: it
// replaces figures, Missing and Warnings. ends holds the facts of the end points by name. link is the stated link:
// with a RateBps of 0 the interfaces give the rate, with an MTU of 0 the connections give the MTU.
//
// Figures use the complete runs or, if there are none, the partial data of the others. Evidence may be missing
// anywhere: a figure that cannot be computed is absent, with the reason in Missing.
func Summarise(c *measure.Cell, ends map[string]*measure.Facts, link Link) {
	forget(c)
	s := newSummary(c, ends, link)
	s.roundTrips()
	s.mainFigure()
	s.cpu()
	s.memory()
	s.verified()
	switch {
	case s.asks():
		s.latency()
		s.retransmits()
	case s.isUDP():
		s.datagrams()
		s.search()
		s.ceiling()
		s.lossPlaces()
		s.ofStreams()
	default:
		s.ceiling()
		s.window()
		s.retransmits()
		s.rfc6349()
		s.ofStreams()
	}
	s.warnings()
}

// ofStreams fills the figures of bulk data streams, for any protocol.
func (s *summary) ofStreams() {
	s.fairness()
	s.packets()
	s.reconcile()
}

// forget removes the results of an earlier summary.
func forget(c *measure.Cell) {
	c.Goodput, c.Ceiling, c.Steady, c.Reconciled, c.RFC6349 = nil, nil, nil, nil, nil
	c.RTTIdle, c.RTTLoaded, c.BDP, c.NeededWindow = nil, nil, nil, nil
	c.SenderCPU, c.ReceiverCPU, c.SenderMem, c.ReceiverMem = nil, nil, nil, nil
	c.Retransmits, c.Fairness, c.MeanPacket = nil, nil, nil
	c.Datagrams, c.LossPlaces, c.Transactions, c.Latency, c.Checked = nil, nil, nil, nil, nil
	c.Missing, c.Warnings, c.Coded = nil, nil, nil
}

// pair is one run with the evidence of both ends, each of which may be nil.
type pair struct {
	run              *measure.Run
	sender, receiver *measure.Evidence
	asks             bool // the sender sends requests and the receiver answers
	foreign          bool // one of the ends is not a thru agent
}

// The ends of a pair, and the prefix of their facts.
const (
	senderSide   = "sender"
	receiverSide = "receiver"
)

func (p pair) side(name string) *measure.Evidence {
	if name == senderSide {
		return p.sender
	}
	return p.receiver
}

// ends returns the evidence that exists.
func (p pair) ends() []*measure.Evidence {
	return slices.DeleteFunc([]*measure.Evidence{p.sender, p.receiver}, func(e *measure.Evidence) bool { return e == nil })
}

func (p pair) complete() bool {
	_, ok := p.rate()
	return ok && !p.run.Partial && p.run.Error == nil
}

// rate returns the run's main figure: goodput at the receiver in bit/s, or answered requests per second. If only a
// foreign sender is known, it is what that sent, with a warning.
func (p pair) rate() (float64, bool) {
	switch {
	case p.asks:
		return Requests(p.sender)
	case onlySender(p):
		return Goodput(p.sender)
	}
	return Goodput(p.receiver)
}

// bins returns the same rate in each second.
func (p pair) bins() []float64 {
	if p.asks {
		return RequestBins(p.sender)
	}
	return binsOf(p.receiver, p.sender)
}

// summary is the work on one cell.
type summary struct {
	cell *measure.Cell
	ends map[string]*measure.Facts
	link Link
	all  []pair // every run
	runs []pair // those that count
}

func newSummary(c *measure.Cell, ends map[string]*measure.Facts, link Link) *summary {
	s := &summary{cell: c, ends: ends, link: link}
	for i := range c.Runs {
		p := pairOf(c, &c.Runs[i])
		s.all = append(s.all, p)
		if p.complete() {
			s.runs = append(s.runs, p)
		}
	}
	if len(s.runs) == 0 {
		s.runs = s.all
	}
	return s
}

// Ends returns what both ends of a cell's direction saw, in a completed run if there is one.
func Ends(c *measure.Cell) (sender, receiver *measure.Evidence) {
	for i := range c.Runs {
		p := pairOf(c, &c.Runs[i])
		if sender == nil && receiver == nil || p.complete() {
			sender, receiver = p.sender, p.receiver
		}
		if p.complete() {
			break
		}
	}
	return sender, receiver
}

// pairOf returns a run of a cell with the evidence of its ends.
func pairOf(c *measure.Cell, r *measure.Run) pair {
	p := pair{run: r, asks: asks(c), foreign: c.Spec.Engine == measure.IPerf3 || c.Spec.Engine == measure.IPerf2}
	if f := flowOf(c, r); f != nil {
		p.sender, p.receiver = f.Sender, f.Receiver
	}
	return p
}

// flowOf returns the cell's flow in a run.
func flowOf(c *measure.Cell, r *measure.Run) *measure.Flow {
	for i := range r.Flows {
		if r.Flows[i].From == c.From && r.Flows[i].To == c.To {
			return &r.Flows[i]
		}
	}
	if len(r.Flows) == 1 {
		return &r.Flows[0]
	}
	return nil
}

// missing records that a figure is absent, and why.
func (s *summary) missing(fact, why string) {
	n := measure.NotChecked{Fact: fact, Why: why}
	if !slices.Contains(s.cell.Missing, n) {
		s.cell.Missing = append(s.cell.Missing, n)
	}
}

// lacks reports whether a figure was recorded as absent.
func (s *summary) lacks(fact string) bool {
	return slices.ContainsFunc(s.cell.Missing, func(n measure.NotChecked) bool { return n.Fact == fact })
}

// warn adds a warning once.
func (s *summary) warn(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(s.cell.Warnings, text) {
		s.cell.Warnings = append(s.cell.Warnings, text)
	}
}

// code adds a warning with a code for programs, once.
func (s *summary) code(code, text, means string) {
	if w := (measure.Warning{Code: code, Text: text, Means: means}); !slices.Contains(s.cell.Coded, w) {
		s.cell.Coded = append(s.cell.Coded, w)
		s.warn("%s", w)
	}
}

// why returns an end's reason for a missing fact, which it may give for a group: "host" covers "host.cpus" too.
func (s *summary) why(side, fact, otherwise string) string {
	if len(s.runs) == 0 {
		return "no run was made"
	}
	e := s.runs[len(s.runs)-1].side(side)
	if e == nil {
		return "the evidence of the " + side + " did not arrive"
	}
	for _, m := range e.Missing {
		if m.Covers(fact) {
			return m.Why
		}
	}
	return otherwise
}

// Known returns a figure to store, or nil for NaN and infinities, which JSON cannot hold.
func Known(x float64) *float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return &x
}

// whole returns a figure in whole units, or nil if it is none or does not fit.
func whole(x float64) *int64 {
	if math.IsNaN(x) || math.Abs(x) >= math.MaxInt64 {
		return nil
	}
	return new(int64(math.Round(x)))
}

// Goodput returns the payload of one end over its measured time, in bit/s. The receiver's is the result.
func Goodput(e *measure.Evidence) (bps float64, ok bool) {
	if e == nil || e.MeasuredNs <= 0 || e.Bytes < 0 {
		return 0, false
	}
	return float64(e.Bytes) * 8e9 / float64(e.MeasuredNs), true
}

// Bins returns the rates of an end's 1 s bins in bit/s. It omits a last bin under half a second, whose noise would
// count as a whole second.
func Bins(e *measure.Evidence) []float64 {
	return binRates(e, 8, func(b *measure.StreamBin) int64 { return b.Bytes })
}

// binRates returns the rates of what count finds in each of the bins.
func binRates(e *measure.Evidence, each float64, count func(*measure.StreamBin) int64) (rates []float64) {
	if e == nil {
		return nil
	}
	for i := range e.Bins {
		if b := &e.Bins[i]; b.Span >= int64(measure.Bin)/2 && count(b) >= 0 {
			rates = append(rates, float64(count(b))*(each*1e9)/float64(b.Span))
		}
	}
	return rates
}

// rates returns those of the runs that count.
func (s *summary) rates() []float64 {
	var rates []float64
	for _, p := range s.runs {
		if rate, ok := p.rate(); ok {
			rates = append(rates, rate)
		}
	}
	return rates
}

// mainFigure fills goodput or request rate: the mean of the runs, its range and interval.
func (s *summary) mainFigure() {
	for _, p := range s.all {
		p.run.Goodput = nil
		if bps, ok := p.rate(); ok && !p.asks {
			p.run.Goodput = new(bps)
		}
	}
	to, key, side, fact := &s.cell.Goodput, "goodput_bps", receiverSide, "bytes"
	if s.asks() {
		to, key, side, fact = &s.cell.Transactions, "transactions_per_s", senderSide, "requests"
	}
	rates := s.rates()
	if len(rates) == 0 {
		s.missing(key, s.why(side, fact, "the "+side+" measured no time"))
		return
	}
	steady, bins := s.lastTimeline()
	switch {
	case s.cell.Spec.Search: // its rate changes on purpose
		steady = measure.Steady{}
	case !slices.ContainsFunc(s.runs, pair.hasSeconds):
		steady, bins = measure.Steady{}, nil
		s.missing("steady_state", "the receiver reported no time line, and that of the sender includes lost data")
	default:
		s.cell.Steady = &steady
	}
	if slices.ContainsFunc(s.runs, pair.borrowsSeconds) {
		bins = nil // they are the sender's, not a range of the received rate
	}
	if len(rates) > 1 {
		*to = severalRuns(rates, precision(s.cell))
	} else if *to = singleRun(rates[0], bins, steady); s.cell.Spec.Search { // a search changes its rate
		(*to).CI95Low, (*to).CI95High = nil, nil
	}
}

// lastTimeline judges the time line of the last run that counts.
func (s *summary) lastTimeline() (measure.Steady, []float64) {
	var bins []float64
	for _, p := range s.runs {
		if _, ok := p.rate(); ok {
			bins = p.bins()
		}
	}
	steady := steadyIn(bins, s.print())
	if s.asks() {
		steady.Levels = nil // Why words them: their key is for bit/s
	}
	return steady, bins
}

// singleRun returns the figure of one run, with range and interval from its bins.
func singleRun(rate float64, bins []float64, steady measure.Steady) *measure.Figure {
	f := &measure.Figure{Value: rate, Low: rate, High: rate, Runs: 1, Basis: "bins of a single run"}
	for _, b := range bins {
		f.Low, f.High = min(f.Low, b), max(f.High, b)
	}
	if ci, ok := RunInterval(bins); ok {
		f.CI95Low, f.CI95High = Known(max(0, ci.Low)), Known(ci.High)
	}
	if steady.Checked {
		f.Stable = new(steady.Steady)
	}
	return f
}

// leastForStable is how many runs it takes to judge whether a figure is stable.
const leastForStable = 3

// severalRuns returns the figure over runs, each of which counts as one value. It is stable if the interval is
// narrow and the runs do not form two groups.
func severalRuns(rates []float64, aimPct float64) *measure.Figure {
	f := &measure.Figure{Value: Mean(rates), Low: slices.Min(rates), High: slices.Max(rates), Runs: len(rates), Basis: "runs"}
	ci, ok := MeanInterval(rates)
	if !ok {
		return f
	}
	f.CI95Low, f.CI95High = Known(max(0, ci.Low)), Known(ci.High)
	if len(rates) >= leastForStable {
		_, _, groups := TwoGroups(rates)
		f.Stable = new(ci.HalfWidthPct() <= aimPct && !groups)
	}
	return f
}
