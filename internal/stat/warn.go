package stat

import (
	"fmt"
	"math"
	"slices"

	"thru/internal/measure"
	"thru/internal/unit"
)

// MaxDifferencePct is by how much the figures of sender and receiver may differ without a warning, in percent.
const MaxDifferencePct = 1

// warnings adds what a reader must know to trust the figures.
func (s *summary) warnings() {
	s.warnFailures()
	s.captured()
	s.warnWrongBytes()
	if MainFigure(s.cell) == nil {
		return
	}
	s.warnSilence()
	s.warnOneSided()
	s.warnOtherWork()
	// A search changes its rate on purpose; requests concurrent with data show its time line.
	if !s.cell.Spec.Search && !(s.asks() && s.cell.AtOnce > 1) {
		s.warnRepeats()
		s.warnUnsteady()
	}
	s.warnCeiling()
	s.warnWindows()
	s.warnCongestion()
	s.warnBound()
	s.warnConfined()
	switch {
	case s.asks():
		s.warnRequests()
	case s.isUDP():
		s.warnDatagrams()
	default:
		s.warnDifference()
	}
}

// warnFailures names the runs that failed or ended early, and the ends with the reason.
func (s *summary) warnFailures() {
	for _, p := range s.all {
		number := p.run.Index + 1 // people count from 1
		switch {
		case p.run.Error != nil:
			s.warn("run %d failed: %s", number, p.run.Error.Message)
		case p.run.Partial:
			s.code(measure.EndedEarly, fmt.Sprintf("run %d ended early", number), "the figures until then are kept")
		}
		for _, side := range []string{senderSide, receiverSide} {
			// The run's error is more precise than that of its ends.
			if e := p.side(side); e != nil && e.Error != "" && p.run.Error == nil {
				s.warn("run %d, %s %s: %s", number, side, e.EndPoint, e.Error)
			}
		}
	}
	if f := MainFigure(s.cell); f != nil && !slices.ContainsFunc(s.all, pair.complete) {
		s.code(measure.EndedEarly, "no run is complete", "the figures are of runs that ended early")
	}
}

// warnOneSided warns if the figure is not the receiver's.
func (s *summary) warnOneSided() {
	if slices.ContainsFunc(s.runs, onlySender) {
		s.warn("the receiver's count is not known: the figure is what the sender handed to its kernel")
	}
}

// warnCongestion warns if a kernel used another congestion control than the requested one: that of a route
// (ip-route(8), congctl) overrides the socket's.
func (s *summary) warnCongestion() {
	asked := s.cell.Spec.Congestion
	for _, p := range s.runs {
		for _, x := range streams(p.sender) { // a receiver's has no effect
			if asked != "" && x.Congestion != "" && x.Congestion != asked {
				s.warn("%s was requested, but the sender's kernel used %s: check the route for congctl (ip route)", asked, x.Congestion)
			}
		}
		if asked != "" && isReported(p.sender) && len(p.sender.Streams) > 0 && p.sender.Streams[0].Congestion == "" {
			s.warn("%s was requested: %s does not report which congestion control it used", asked, p.sender.Reported)
		}
	}
}

// precision returns the target of a cell's repetitions.
func precision(c *measure.Cell) float64 {
	if c.AskedPct > 0 {
		return c.AskedPct
	}
	return DefaultPrecision
}

// MaxIdleBusyPct is how busy a machine may be without a test before its CPU figures carry a warning.
const MaxIdleBusyPct = 10

// warnOtherWork warns if a host was not idle without the test.
func (s *summary) warnOtherWork() {
	for _, side := range []string{senderSide, receiverSide} {
		for _, p := range s.runs {
			e := p.side(side)
			if busy := IdleBusy(e); busy > MaxIdleBusyPct {
				s.code(measure.BusyHost, fmt.Sprintf("%s: %s busy without the test", e.EndPoint, unit.Percent(busy)), "CPU figures, and perhaps the rate, include other work")
				break
			}
		}
	}
}

// warnRepeats words what the number of runs allows. A baseline is short on purpose.
func (s *summary) warnRepeats() {
	f, print := MainFigure(s.cell), s.print()
	switch {
	case s.cell.Baseline || f.Runs >= AcceptanceRuns:
	case f.Runs == 1:
		s.code(measure.SingleRun, "single run", "how far runs differ is not known")
	default:
		s.code(measure.FewRuns, unit.Plural(f.Runs, "run"), fmt.Sprintf("indicative, an acceptance needs %d", AcceptanceRuns))
	}
	rates := s.rates()
	if low, high, found := TwoGroups(rates); found {
		s.code(measure.TwoGroups, fmt.Sprintf("the runs fall into two groups, %s and %s", print(low), print(high)), "their mean describes neither")
		return
	}
	if ci, ok := MeanInterval(rates); ok && f.Stable != nil && !*f.Stable {
		bar := "was requested"
		if s.cell.AskedPct == 0 {
			bar = "or less is stable"
		}
		s.code(measure.NotStable, "not stable", fmt.Sprintf("the 95%% interval reached %s of the mean after %d runs, %s %s",
			unit.Percent(ci.HalfWidthPct()), f.Runs, unit.Percent(precision(s.cell)), bar))
	}
}

// warnSilence warns if the data stopped in the middle of a run, which a mean hides. At a rate so low that a second
// may be empty it means nothing.
func (s *summary) warnSilence() {
	if s.isSparse() {
		return
	}
	for _, p := range s.runs {
		e := p.receiver
		if p.asks {
			e = p.sender
		}
		if e == nil {
			continue
		}
		silent, first := 0.0, -1.0
		for _, b := range e.Bins {
			if b.Bytes == 0 && b.Requests == 0 && b.Span > 0 {
				silent += float64(b.Span) / 1e9
				if first < 0 {
					first = float64(b.At) / 1e9
				}
			}
		}
		if silent > 0 {
			s.warn("run %d: no data arrived for %.1f s, first at second %.0f: the path was down, or lost all packets", p.run.Index+1, silent, first)
		}
	}
}

// isSparse reports whether the requested rate is less than a few messages per second: datagrams, requests, or
// buffers that TCP delivers.
func (s *summary) isSparse() bool {
	const few, buffer = 4, 64 << 10
	spec := s.cell.Spec
	size := int64(buffer)
	if n := s.payload(); n > 0 {
		size = int64(n)
	}
	return spec.Rate > 0 && spec.Rate/8 < few*size || spec.PerSecond > 0 && spec.PerSecond < few
}

// warnBound warns that an end point's operator limits the rate.
func (s *summary) warnBound() {
	if most := s.cell.Spec.MaxRate; most > 0 {
		s.warn("an end point allows at most %s (thru serve --max-rate): the path may carry more", unit.Rate(float64(most)))
	}
}

// warnUnsteady warns if a run had no steady state, or was too short for one.
func (s *summary) warnUnsteady() {
	switch steady := s.cell.Steady; {
	case steady == nil:
	case !steady.Checked && !s.cell.Baseline:
		s.code(measure.TooShort, "too short for a steady state", steady.Why)
	case steady.Checked && !steady.Steady && MainFigure(s.cell).Runs == 1:
		s.code(measure.NotStable, "not stable", steady.Why)
	case steady.Checked && !steady.Steady:
		s.code(measure.NotStable, "the last run was not steady", steady.Why)
	}
}

func (s *summary) warnCeiling() {
	if c := s.cell.Ceiling; AboveCeiling(s.cell) {
		s.warn("%s of the ceiling of %s: %s", unit.Percent(c.SharePct), unit.Rate(c.Bps), wrongAssumption)
	}
}

// warnWindows names the ends at which the kernel cut the window in the last run.
func (s *summary) warnWindows() {
	last := s.runs[len(s.runs)-1]
	for _, side := range []string{senderSide, receiverSide} {
		for _, x := range streams(last.side(side)) {
			if w := x.Window; w.Cut {
				s.code(measure.WindowCut, fmt.Sprintf("the kernel of the %s %s cut the window", side, last.side(side).EndPoint),
					fmt.Sprintf("requested %s, granted %s, of which %s are usable", unit.Size(w.Asked), unit.Size(w.Granted), unit.Size(w.Usable)))
				break // the streams of an end are equal
			}
		}
	}
}

func (s *summary) warnDifference() {
	r := s.cell.Reconciled
	if r == nil {
		return
	}
	if math.Abs(r.DifferencePct) > MaxDifferencePct && !r.OfRates {
		s.warn("the totals of sender and receiver differ by %s: %s", unit.Percent(r.DifferencePct), r.Note)
	}
	if rates := 100 * differenceOf(r.SenderBps, r.ReceiverBps); math.Abs(rates) > MaxDifferencePct {
		s.warn("in the measured time the sender counted %s and the receiver %s; the receiver's is the result",
			unit.Rate(r.SenderBps), unit.Rate(r.ReceiverBps))
	}
}
