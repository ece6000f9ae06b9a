package judge

import (
	"slices"
	"time"

	"thru/internal/watch/record"
)

// This file accounts the time line of a pair: each nanosecond once, in one state.

// account adds the time from the cursor to an instant, in one state. Midnights and the edges of maintenance windows divide it.
func (j *Judge) account(p *pair, to int64, s standing) {
	for p.Cursor < to {
		in, edge := j.config.maintained(p.Pair, p.Cursor)
		midnight := p.Day.End.UnixNano()
		next := min(to, edge, midnight)
		p.count(s.State, in, time.Duration(next-p.Cursor))
		p.Cursor = next
		if next == midnight {
			j.endDay(p)
		}
	}
	if p.Cursor == to {
		p.Stands = s
	}
}

// count adds time to the summary of the day.
func (p *pair) count(s record.State, maintained bool, d time.Duration) {
	if p.Outage != nil && !s.Judges() {
		p.Outage.UnseenNs += int64(d)
	}
	if maintained {
		p.Day.Maintenance.Add(s, d)
		return
	}
	p.Day.States.Add(s, d)
	for _, g := range p.Goals {
		if g.Metric == record.Availability && s.Judges() {
			g.Day.add(s != record.Down, int64(d))
		}
	}
}

// endDay emits the summary of the day until the cursor, and begins the next.
func (j *Judge) endDay(p *pair) {
	day := p.summary()
	day.End = instant(p.Cursor)
	j.emit(record.Event{Kind: record.DayOver, At: day.End, Pair: new(p.Pair), Day: &day})
	for _, g := range p.Goals {
		g.endDay()
	}
	p.Day = &record.Summary{Pair: p.Pair, Begin: day.End, End: j.config.nextDay(p.Cursor)}
}

// summary returns the day with its objectives and the outage that lasts.
func (p *pair) summary() record.Summary {
	day := record.Merge(*p.Day)
	if p.Outage != nil {
		day.AddOutage(*p.Outage)
	}
	for _, g := range p.Goals {
		if today := g.today(); today.Of > 0 {
			day.Goals = append(day.Goals, g.report(p.Pair, today, 1))
		}
	}
	return day
}

// fill accounts the time until an instant for which no sample came: the last sample speaks for a while, then nothing is known.
func (j *Judge) fill(p *pair, to int64) {
	if to-p.Cursor <= int64(j.config.Every[layers()[p.Lead]])/10 { // turns do not follow each other exactly
		j.account(p, to, p.Stands)
		return
	}
	for len(p.Unseen) > 0 && p.Unseen[0].Begin < to {
		gap := p.Unseen[0]
		j.bridge(p, gap.Begin)
		end := to
		if len(p.Unseen) > 1 {
			end = min(to, p.Unseen[1].Begin)
		}
		j.unsee(p, end, gap.Reason)
		if gap.Last > end && end == to {
			p.Unseen[0].Begin = to
			return
		}
		p.Unseen = p.Unseen[1:]
	}
	j.bridge(p, to)
}

// bridge accounts time after a sample as the sample says, while it may speak.
func (j *Judge) bridge(p *pair, to int64) {
	j.account(p, min(to, p.Heard[p.Lead].Until), p.Stands)
	if p.Cursor < to {
		j.unsee(p, to, record.NoSample)
	}
}

// unsee accounts time that was not measured.
func (j *Judge) unsee(p *pair, to int64, r record.Reason) {
	from, s := p.Cursor, standing{record.NotMeasured, r}
	j.account(p, to, s)
	if from > p.SaidAt {
		j.say(p, s, from)
	}
}

// follow accounts the time of a sample that decides the state. It reports whether an outage began in it.
func (j *Judge) follow(p *pair, s record.Sample, end int64) (fell bool) {
	if !s.State.Judges() {
		j.part(p, end, standing{s.State, s.Reason})
		return false
	}
	up, down := p.good(s, p.Cursor), standing{record.Down, s.Reason}
	if s.State != record.Down {
		down.Reason = record.NoAnswer
	}
	for _, gap := range j.lost(p, s, end) {
		if begin := gap.Begin.UnixNano(); begin > p.Cursor {
			j.recover(p)
			j.part(p, begin, up)
		}
		if gap.Lost < lostInRow && p.Outage == nil { // it lasts, and the next turn tells whether it is an outage
			return fell
		}
		fell = j.fall(p, down.Reason) || fell
		if gap.End.IsZero() {
			j.part(p, end, down)
			return fell
		}
		j.part(p, min(gap.End.UnixNano(), end), down)
		j.recover(p)
	}
	if end >= p.Cursor {
		j.recover(p)
	}
	j.part(p, end, up)
	return fell
}

// lost returns the gaps of a sample that count: outages, what continues one, and a short one at the end, which may become one.
func (j *Judge) lost(p *pair, s record.Sample, end int64) (gaps []record.Gap) {
	for _, gap := range s.Gaps {
		continues := p.Outage != nil && gap.Begin.UnixNano() <= p.Cursor
		counts := gap.Lost >= lostInRow || gap.End.IsZero() || continues
		if counts && gap.Begin.UnixNano() < end {
			gaps = append(gaps, gap)
		}
	}
	if len(gaps) == 0 && s.State == record.Down {
		return []record.Gap{{Begin: s.Begin, Lost: lostInRow}}
	}
	return gaps
}

// part accounts a part of a sample, and says its state.
func (j *Judge) part(p *pair, to int64, s standing) {
	from := p.Cursor
	j.account(p, to, s)
	if p.trim(); len(p.Unseen) == 0 && to >= from { // a sample from a spool is no news of the present
		j.say(p, s, from)
	}
}

// fall begins an outage at the cursor. It reports whether there was none.
func (j *Judge) fall(p *pair, r record.Reason) bool {
	if p.Outage != nil {
		return false
	}
	in, _ := j.config.maintained(p.Pair, p.Cursor)
	p.Outage = &record.Outage{Pair: p.Pair, Begin: instant(p.Cursor), Reason: r, Maintenance: in}
	j.emitOutage(p, record.OutageBegan, p.Outage.Begin)
	if !in {
		q := p.problem(record.KindOutage, "", "")
		q.come(p.Cursor)
		q.Outage = new(*p.Outage)
	}
	return true
}

// recover ends the outage at the cursor, if there is one.
func (j *Judge) recover(p *pair) {
	if p.Outage == nil {
		return
	}
	p.Outage.End = instant(p.Cursor)
	j.emitOutage(p, record.OutageEnded, p.Outage.End)
	p.Day.AddOutage(*p.Outage)
	for _, q := range p.Problems {
		if q.Outage != nil && q.Outage.Begin.Equal(p.Outage.Begin) {
			q.Outage = new(*p.Outage)
		}
	}
	p.Outage = nil
}

// emitOutage emits the begin or end of the outage of a pair.
func (j *Judge) emitOutage(p *pair, k record.EventKind, at time.Time) {
	j.emit(record.Event{Kind: k, At: at, Pair: new(p.Pair), Outage: new(*p.Outage)})
}

// say sets the state of a pair, and emits it if it is news. While a problem is flapping, nothing is emitted.
func (j *Judge) say(p *pair, s standing, at int64) {
	if s != p.Said {
		p.Said, p.SaidAt = s, at
	}
	if s != p.Told && !slices.ContainsFunc(p.Problems, func(q *problem) bool { return q.Flapping }) {
		j.emit(record.Event{Kind: record.StateChanged, At: instant(at), Pair: new(p.Pair), State: s.State, Reason: s.Reason, Before: p.Told.State})
		p.Told = s
	}
}
