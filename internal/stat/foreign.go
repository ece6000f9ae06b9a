package stat

import (
	"math"
	"slices"

	"thru/internal/measure"
)

// An end without thru has only what its program reports, which covers only the measured time if a ramp was left
// out, and has no seconds.

// isReported reports whether an end's figures are its program's own report.
func isReported(e *measure.Evidence) bool { return e != nil && e.Reported != "" }

// isDerived reports whether an end's figures are derived from what the other end saw.
func isDerived(e *measure.Evidence) bool {
	return isReported(e) && slices.ContainsFunc(e.Missing, func(m measure.NotChecked) bool { return m.Fact == "bytes_read" })
}

// knowsLife reports whether an end counted over the whole life of its streams.
func knowsLife(e *measure.Evidence) bool {
	return !isReported(e) || e.TotalBytes > 0 || e.Bytes == 0
}

// onlySender reports whether only the sender's figures are known because the foreign receiver's are missing: the
// test was aborted before the results were exchanged, or the server sent.
func onlySender(p pair) bool {
	_, received := Goodput(p.receiver)
	return !received && (isReported(p.sender) || p.foreign && p.sender != nil) && !p.asks
}

// binsOf returns the seconds of an end or, if its program reports none, those of the other end, which saw the same
// flow.
func binsOf(e, other *measure.Evidence) []float64 {
	if e == nil && isReported(other) || isReported(e) && len(e.Bins) == 0 {
		return Bins(other)
	}
	return Bins(e)
}

// borrowsSeconds reports whether the seconds are not those of the end whose rate counts.
func (p pair) borrowsSeconds() bool {
	return !p.asks && isReported(p.receiver) && len(p.receiver.Bins) == 0
}

// hasSeconds reports whether the seconds of binsOf stand for what the receiver got: those of a foreign receiver's
// sender do unless datagrams were lost.
func (p pair) hasSeconds() bool {
	if p.asks || !isReported(p.receiver) || len(p.receiver.Bins) > 0 || !countOf(p.receiver, inTime).known {
		return true
	}
	sent, _ := Goodput(p.sender)
	got, _ := Goodput(p.receiver)
	return math.Abs(100*differenceOf(sent, got)) <= MaxDifferencePct
}

// isWatched reports whether any drop counter was read at either end, so that the remaining loss can be attributed
// to the path.
func (p pair) isWatched() bool {
	_, known := socketDrops(p.receiver)
	return known || hostOf(p.sender) != nil || hostOf(p.receiver) != nil
}

// beyond notes that the remaining loss may also be at an end whose program has no counters.
func (p pair) beyond(places []measure.LossPlace) []measure.LossPlace {
	for i := range places {
		x := &places[i]
		switch {
		case x.Place != measure.LossPath:
			continue
		case isReported(p.receiver):
			x.Place = measure.LossPathOrReceiver
		case isReported(p.sender):
			x.Place = measure.LossSenderOrPath
		default:
			continue
		}
		x.Counter = "the rest; that end reports no counters"
	}
	return places
}

// isRest reports whether a place is the loss that no counter explains.
func isRest(place string) bool {
	return place == measure.LossPath || place == measure.LossPathOrReceiver || place == measure.LossSenderOrPath
}

// inLifeOr returns the counts over the life of an end's streams, or of the measured time if its program reports no
// more.
func inLifeOr(e *measure.Evidence) tally {
	if t := countOf(e, inLife); t.known || !isReported(e) {
		return t
	}
	return countOf(e, inTime)
}
