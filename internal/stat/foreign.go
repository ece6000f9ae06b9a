package stat

import "thru/internal/measure"

// An end without thru tells what its program reports, which is of the measured
// time alone where a ramp was left out, and has no seconds.

// isReported tells whether an end's figures are its program's own word.
func isReported(e *measure.Evidence) bool { return e != nil && e.Reported != "" }

// knowsLife tells whether an end counted over the whole life of its streams.
func knowsLife(e *measure.Evidence) bool {
	return !isReported(e) || e.TotalBytes > 0 || e.Bytes == 0
}

// binsOf are the seconds of an end, or where its program reports none those of
// the other one, which saw the same flow.
func binsOf(e, other *measure.Evidence) []float64 {
	if isReported(e) && len(e.Bins) == 0 {
		return Bins(other)
	}
	return Bins(e)
}

// inLifeOr are the counts over the life of an end's streams, or of the
// measured time where its program tells of no more.
func inLifeOr(e *measure.Evidence) tally {
	if t := countOf(e, inLife); t.known || !isReported(e) {
		return t
	}
	return countOf(e, inTime)
}
