package judge

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"thru/internal/watch/record"
)

// Judge has the state of all pairs.
type Judge struct {
	config Config
	pairs  map[record.Pair]*pair
	order  []*pair // by names; nil after a pair came
	alarms []*alarm
	now    int64          // of the last Tick; 0 before the first
	events []record.Event // of the input that is being taken
}

// state is a Judge as JSON.
type state struct {
	Now    int64    `json:"now_ns"`
	Pairs  []*pair  `json:"pairs"`
	Alarms []*alarm `json:"alarms"`
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
	j.now, j.alarms = s.Now, s.Alarms
	for _, p := range s.Pairs {
		p.Goals = j.goals(p.Pair, p.Goals)
		j.pairs[p.Pair] = p
	}
	return j, nil
}

// MarshalJSON writes the whole state.
func (j *Judge) MarshalJSON() ([]byte, error) {
	return json.Marshal(state{j.now, j.sorted(), j.alarms})
}

// sorted returns all pairs by their names.
func (j *Judge) sorted() []*pair {
	if j.order == nil {
		j.order = slices.SortedFunc(maps.Values(j.pairs), func(a, b *pair) int { return a.Compare(b.Pair) })
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

// places returns what a pair crosses.
func (j *Judge) places(p record.Pair) []place {
	all := []place{{Host: p.From}, {Host: p.To}, {Host: p.From, Side: record.SideSender}, {Host: p.To, Side: record.SideReceiver}}
	for _, s := range j.config.Segments(p) {
		all = append(all, place{Segment: s})
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

// news notes that an alarm has something to tell.
func (j *Judge) news(id string) {
	for _, a := range j.alarms {
		a.News = a.News || a.ID == id
	}
}

// troubles returns all problems by the names of their pairs.
func (j *Judge) troubles() (all []trouble) {
	for _, p := range j.sorted() {
		for _, q := range p.Problems {
			all = append(all, trouble{p, q})
		}
	}
	return all
}
