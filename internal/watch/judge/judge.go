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
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"thru/internal/measure"
	"thru/internal/watch/record"
)

// Judge has the state of all pairs.
type Judge struct {
	config  Config
	pairs   map[record.Pair]*pair
	order   []*pair // by names; nil after a pair came
	alarms  []*alarm
	now     int64 // of the last Tick; 0 before the first
	ignored int
	events  []record.Event // of the input that is being taken
}

// state is a Judge as JSON.
type state struct {
	Now     int64    `json:"now_ns"`
	Ignored int      `json:"ignored_samples"`
	Pairs   []*pair  `json:"pairs"`
	Alarms  []*alarm `json:"alarms"`
}

// New returns a judge that knows no pair.
func New(c Config) *Judge { return &Judge{config: c.complete(), pairs: map[record.Pair]*pair{}} }

// Restore returns the judge that data, its JSON, describes. The configuration may be another one: objectives keep their counts by their
// text. Pairs that the plan no longer has need Forget.
func Restore(c Config, data []byte) (*Judge, error) {
	var s state
	if err := json.Unmarshal(data, &s); err != nil {
		return nil, fmt.Errorf("judge: reading the state of the watch: %w", err)
	}
	j := New(c)
	j.now, j.ignored, j.alarms = s.Now, s.Ignored, s.Alarms
	for _, p := range s.Pairs {
		p.Goals = j.goals(p.Pair, p.Goals)
		j.pairs[p.Pair] = p
	}
	return j, nil
}

// MarshalJSON writes the whole state.
func (j *Judge) MarshalJSON() ([]byte, error) {
	return json.Marshal(state{j.now, j.ignored, j.sorted(), j.alarms})
}

// Ignored returns how many samples were repetitions, older than another of their pair and layer, or of no known layer.
func (j *Judge) Ignored() int { return j.ignored }

// sorted returns all pairs by their names.
func (j *Judge) sorted() []*pair {
	if j.order == nil {
		j.order = slices.SortedFunc(maps.Values(j.pairs), func(a, b *pair) int { return comparePairs(a.Pair, b.Pair) })
	}
	return j.order
}

// pair returns the state of a pair. That of a new one begins at an instant.
func (j *Judge) pair(of record.Pair, at int64) *pair {
	p := j.pairs[of]
	if p == nil {
		p = &pair{Pair: of, Cursor: at, Stands: standing{record.NotMeasured, record.NoSample}, Goals: j.goals(of, nil)}
		p.Day = &record.Summary{Pair: of, Begin: instant(at), End: j.config.nextDay(at)}
		j.pairs[of], j.order = p, nil
	}
	return p
}

// goals returns the objectives of a pair, with the counts of before.
func (j *Judge) goals(of record.Pair, before []*goal) (all []*goal) {
	for _, g := range j.config.Goals(of) {
		now := goal{}
		if i := slices.IndexFunc(before, func(x *goal) bool { return x.Objective == g.Objective }); i >= 0 {
			now = *before[i]
		}
		now.Goal = record.Goal{Objective: g.Objective, Metric: g.Metric, Limit: g.Limit, AtLeast: g.AtLeast, SharePct: g.SharePct, Per: g.Per}
		all = append(all, &now)
	}
	return all
}

func (j *Judge) emit(e record.Event) { j.events = append(j.events, e) }

// flush returns the events since it was last called.
func (j *Judge) flush() []record.Event {
	events := j.events
	j.events = nil
	return events
}

// Take takes a sample.
func (j *Judge) Take(s record.Sample) []record.Event {
	begin := s.Begin.UnixNano()
	end := begin + int64(max(0, s.Seconds)*float64(time.Second))
	layer := rank(s.Layer)
	if layer < 0 {
		j.ignored++
		return nil
	}
	if j.now != 0 && end-j.now > int64(j.config.Ahead) {
		s.State, s.Reason, begin, end = record.NotMeasured, record.ClockJump, j.now, j.now
	}
	p := j.pair(s.Pair, begin)
	if !s.State.Judges() && s.State != record.Refused && s.State != record.Deferred {
		j.miss(p, s.Reason, layer, begin, end)
		return j.flush()
	}
	if h := p.Heard[layer]; h.Begin != 0 && begin <= h.Begin {
		j.ignored++
		return nil
	}
	j.take(p, s, layer, begin, end)
	return j.flush()
}

// miss takes a sample of a turn that was not measured. It is no news if another layer judges the path.
func (j *Judge) miss(p *pair, r record.Reason, layer int, begin, end int64) {
	if begin <= p.Missed {
		j.ignored++
		return
	}
	p.Missed = begin
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
	if s.State.Judges() {
		j.weigh(p, s, maintained, begin)
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

// weigh counts the values of a turn: for the day, for objectives, and for changes that may be over. A turn belongs to the day of the cursor.
func (j *Judge) weigh(p *pair, s record.Sample, maintained bool, at int64) {
	for _, q := range p.Problems {
		if q.Kind == record.KindChange {
			j.feedChange(q, s, maintained, at)
		}
	}
	if maintained {
		return
	}
	p.Day.Turns++
	if sent := s.Values[record.Sent]; sent > 0 {
		p.Day.SentPackets += int64(sent)
		p.Day.LostPackets += int64(math.Round(sent * s.Values[record.LossRatio]))
	}
	for _, m := range []record.Metric{record.Goodput, record.Capacity, record.RTTMedian, record.RTT99, record.LossRatio} {
		if v, ok := s.Values[m]; ok && !math.IsNaN(v) && !math.IsInf(v, 0) {
			p.Day.Add(m, v)
		}
	}
	for _, g := range p.Goals {
		if kept, known := g.keeps(s); known {
			g.turn(kept, at)
			j.feedGoal(p, g, kept, at)
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
		if late := j.now - int64(j.config.Late); p.Cursor < late {
			j.fill(p, late)
		}
		p.settle(&j.config, j.now)
	}
	j.group()
	j.tell()
	return j.flush()
}

// Explanation is why something changed, as explain and the facts of the hosts say.
type Explanation struct {
	Findings []measure.Finding
	Facts    []record.FactChange
	Result   string // id of the stored result
	Link     string
}

// Explained adds to an alarm why it is so, which lets it be raised. An alarm that is no longer wanted is ignored.
func (j *Judge) Explained(id string, why Explanation) {
	for _, a := range j.alarms {
		if a.ID == id {
			a.Findings, a.Facts, a.Result, a.Link = why.Findings, why.Facts, why.Result, why.Link
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

// Standing is how a pair is now.
type Standing struct {
	record.Pair
	State  record.State   `json:"state"`
	Reason record.Reason  `json:"reason,omitempty"`
	Since  time.Time      `json:"since"`
	Outage *record.Outage `json:"outage,omitempty"`     // that lasts
	Goals  []record.Goal  `json:"objectives,omitempty"` // over their window of 30 days
}

// Standings returns all pairs by their names.
func (j *Judge) Standings() []Standing {
	all := make([]Standing, 0, len(j.pairs))
	for _, p := range j.sorted() {
		s := Standing{Pair: p.Pair, State: p.Said.State, Reason: p.Said.Reason, Since: instant(p.SaidAt)}
		if p.Outage != nil {
			s.Outage = new(*p.Outage)
		}
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

// Days returns the summaries of a pair that are not final: from the day of its last sample to an instant, with that time as not measured for
// which nothing came yet.
func (j *Judge) Days(of record.Pair, now time.Time) ([]record.Summary, error) {
	p := j.pairs[of]
	if p == nil {
		return nil, nil
	}
	data, err := json.Marshal(state{Pairs: []*pair{p}})
	if err != nil {
		return nil, fmt.Errorf("judge: copying the state of a pair: %w", err)
	}
	copied, err := Restore(j.config, data)
	if err != nil {
		return nil, err
	}
	var days []record.Summary
	for _, e := range copied.Forget(of, now) {
		if e.Kind == record.DayOver {
			days = append(days, *e.Day)
		}
	}
	return days, nil
}
