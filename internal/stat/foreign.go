package stat

import (
	"math"
	"slices"

	"thru/internal/measure"
)

// An end without thru tells what its program reports, which is of the measured
// time alone where a ramp was left out, and has no seconds.

// isReported tells whether an end's figures are its program's own word.
func isReported(e *measure.Evidence) bool { return e != nil && e.Reported != "" }

// isDerived tells whether an end's figures are made of what the other one saw.
func isDerived(e *measure.Evidence) bool {
	return isReported(e) && slices.ContainsFunc(e.Missing, func(m measure.NotChecked) bool { return m.Fact == "bytes_read" })
}

// knowsLife tells whether an end counted over the whole life of its streams.
func knowsLife(e *measure.Evidence) bool {
	return !isReported(e) || e.TotalBytes > 0 || e.Bytes == 0
}

// onlySender tells of a sender whose foreign receiver's figures are not known:
// a test that was broken off before the results were exchanged, or a server
// that sent.
func onlySender(p pair) bool {
	_, received := Goodput(p.receiver)
	return !received && (isReported(p.sender) || p.foreign && p.sender != nil) && !p.asks
}

// binsOf are the seconds of an end, or where its program reports none those of
// the other one, which saw the same flow.
func binsOf(e, other *measure.Evidence) []float64 {
	if e == nil && isReported(other) || isReported(e) && len(e.Bins) == 0 {
		return Bins(other)
	}
	return Bins(e)
}

// borrowsSeconds tells whether the seconds are not those of the end whose rate counts.
func (p pair) borrowsSeconds() bool {
	return !p.asks && isReported(p.receiver) && len(p.receiver.Bins) == 0
}

// hasSeconds tells whether the seconds of binsOf stand for what the receiver
// got: those of a foreign receiver's sender do so unless datagrams were lost.
func (p pair) hasSeconds() bool {
	if p.asks || !isReported(p.receiver) || len(p.receiver.Bins) > 0 || !countOf(p.receiver, inTime).known {
		return true
	}
	sent, _ := Goodput(p.sender)
	got, _ := Goodput(p.receiver)
	return math.Abs(100*differenceOf(sent, got)) <= MaxDifferencePct
}

// isWatched tells whether any counter of drops was read at either end, so that
// the rest can be laid to the path.
func (p pair) isWatched() bool {
	_, known := socketDrops(p.receiver)
	return known || hostOf(p.sender) != nil || hostOf(p.receiver) != nil
}

// beyond says of the rest of a loss that it may lie at an end, too, whose
// program tells no counters.
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
		x.Counter = "the rest; that end tells no counters"
	}
	return places
}

// isRest tells whether a place is what no counter explains.
func isRest(place string) bool {
	return place == measure.LossPath || place == measure.LossPathOrReceiver || place == measure.LossSenderOrPath
}

// inLifeOr are the counts over the life of an end's streams, or of the
// measured time where its program tells of no more.
func inLifeOr(e *measure.Evidence) tally {
	if t := countOf(e, inLife); t.known || !isReported(e) {
		return t
	}
	return countOf(e, inTime)
}
