// Package judge decides what the samples of a watch mean: the state of each pair, outages, whether objectives are kept, what is worth an
// alarm, and the summaries of days and months.
//
// A Judge is a state machine without clock and I/O. Its inputs are samples (Take), change points (Changed), the results of explain
// (Explained) and the time (Tick); each returns the events that follow from it. The same inputs give the same events. Its JSON is its whole
// state, so a watch that restarts goes on where it was.
//
// The samples of a pair and layer come in the order of their time, as an agent spools them; repetitions are ignored. Samples that come late
// replace "not measured" for up to Config.Late. Only samples make a pair down: before a sample says so, its maker has checked that the
// agents of both ends were there at the end of the turn.
package judge

import (
	"time"

	"thru/internal/measure"
	"thru/internal/watch/record"
)

// Take takes a sample.
func (j *Judge) Take(s record.Sample) []record.Event {
	begin := s.Begin.UnixNano()
	end := begin + int64(max(0, s.Seconds)*float64(time.Second))
	layer := rank(s.Layer)
	if layer < 0 {
		return nil
	}
	if j.now != 0 && end-j.now > int64(ahead) {
		s.State, s.Reason, begin, end = record.NotMeasured, record.ClockJump, j.now, j.now
	}
	p := j.pair(s.Pair, begin)
	switch {
	case !s.State.Judges() && s.State != record.Refused && s.State != record.Deferred:
		j.miss(p, s.Reason, layer, begin, end)
	case begin > p.Heard[layer].Begin:
		j.take(p, s, layer, begin, end)
	}
	return j.flush()
}

// miss takes a sample of a turn that was not measured. It is no news if another layer judges the path.
func (j *Judge) miss(p *pair, r record.Reason, layer int, begin, end int64) {
	if layer > p.Lead && p.Heard[p.Lead].judges(begin) {
		return
	}
	if p.miss(begin, end, r) {
		j.say(p, standing{record.NotMeasured, r}, begin)
	}
}

// take takes a sample that is new, and that has a state.
func (j *Judge) take(p *pair, s record.Sample, layer int, begin, end int64) {
	leads := p.leads(layer, begin, s.State.Judges())
	if leads {
		from := begin
		if len(s.Gaps) > 0 {
			from = min(from, s.Gaps[0].Begin.UnixNano())
		}
		j.fill(p, from)
		p.Lead = layer
	}
	every := j.config.Every[s.Layer]
	p.Heard[layer] = heard{begin, end + int64(every+every/2), s.State}
	p.Day.TrafficBytes += int64(s.Values[record.TrafficBytes])
	maintained, _ := j.config.maintained(p.Pair, begin)
	if s.State.Judges() && !maintained {
		j.weigh(p, s, begin)
	}
	if !leads {
		return
	}
	if fell := j.follow(p, s, end); s.State.Judges() {
		j.feedOutage(p, fell, maintained, begin)
		for _, g := range p.Goals {
			if g.Metric == record.Availability && !maintained {
				j.feedGoal(p, g, p.Outage == nil && !fell, begin)
			}
		}
	}
}

// Tick tells the time. It notices silence, and prepares, raises and ends alarms. A watch calls it every few seconds.
func (j *Judge) Tick(now time.Time) []record.Event {
	j.now = now.UnixNano()
	for _, p := range j.sorted() {
		if until := p.Heard[p.Lead].Until; len(p.Unseen) == 0 && until < j.now {
			j.say(p, standing{record.NotMeasured, record.NoSample}, max(until, p.Cursor))
		}
		if final := j.now - int64(late); p.Cursor < final {
			j.fill(p, final)
		}
		p.settle(j.config.Accept, j.now)
	}
	all := j.troubles()
	j.group(all)
	j.tell(all)
	return j.flush()
}

// Explanation is why something changed, as explain and the facts of the hosts say.
type Explanation struct {
	Findings []measure.Finding
	Facts    []record.FactChange
	Result   string // id of the stored result
	Link     string
	Deferred string // why none of this is known yet
}

// Explained adds to an alarm why it is so, which lets it be raised. An alarm that is no longer wanted is ignored.
func (j *Judge) Explained(id string, why Explanation) {
	for _, a := range j.alarms {
		if a.ID == id {
			a.Findings, a.Facts, a.Result, a.Link = why.Findings, why.Facts, why.Result, why.Link
			a.Deferred = why.Deferred
			a.Explained, a.News = true, true
		}
	}
}

// Forget removes a pair that the plan no longer has. Its last day ends now.
func (j *Judge) Forget(of record.Pair, now time.Time) []record.Event {
	p := j.pairs[of]
	if p == nil {
		return nil
	}
	j.fill(p, now.UnixNano())
	j.endDay(p)
	delete(j.pairs, of)
	j.order = nil
	return j.flush()
}

// Standings returns all pairs by their names.
func (j *Judge) Standings() []record.Standing {
	all := make([]record.Standing, 0, len(j.pairs))
	for _, p := range j.sorted() {
		s := record.Standing{Pair: p.Pair, State: p.Said.State, Reason: p.Said.Reason, Since: instant(p.SaidAt)}
		for _, g := range p.Goals {
			s.Goals = append(s.Goals, g.budget(p.Pair))
		}
		all = append(all, s)
	}
	return all
}

// Alarms returns the alarms that were raised and are not over, the oldest first.
func (j *Judge) Alarms() (raised []record.Alarm) {
	for _, a := range j.alarms {
		if a.Raised {
			raised = append(raised, a.Alarm)
		}
	}
	return raised
}
