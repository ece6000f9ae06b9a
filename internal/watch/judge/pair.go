package judge

import (
	"slices"
	"time"

	"thru/internal/watch/record"
)

// pair is the state of one pair. Instants are nanoseconds since 1970. All time before the cursor is accounted, and stays as it is.
type pair struct {
	record.Pair
	Heard    [3]heard        `json:"heard"` // by rank of the layer
	Lead     int             `json:"lead"`  // rank of the layer that spoke last of the state
	Cursor   int64           `json:"cursor_ns"`
	Stands   standing        `json:"stands"` // at the cursor
	Said     standing        `json:"said"`
	SaidAt   int64           `json:"said_at_ns"`
	Told     standing        `json:"told"`             // in the last event; flapping withholds others
	Unseen   []unseen        `json:"unseen,omitempty"` // not measured, and not accounted while samples may still arrive
	Outage   *record.Outage  `json:"outage,omitempty"` // while it lasts
	Problems []*problem      `json:"problems,omitempty"`
	Goals    []*goal         `json:"goals,omitempty"`
	Day      *record.Summary `json:"day"` // the day of the cursor
}

// standing is a state with its reason.
type standing struct {
	State  record.State  `json:"state"`
	Reason record.Reason `json:"reason,omitempty"`
}

// heard is the last sample of a layer.
type heard struct {
	Begin int64        `json:"begin_ns"` // 0 if there was none
	Until int64        `json:"until_ns"` // it speaks for the time until then
	State record.State `json:"state"`
}

// unseen is a time in which the watch could not measure.
type unseen struct {
	Begin  int64         `json:"begin_ns"`
	Last   int64         `json:"last_ns"` // the end of the last turn that said so
	Reason record.Reason `json:"reason"`
}

// judges reports whether the sample says something of the path at an instant.
func (h heard) judges(at int64) bool { return h.Begin != 0 && at < h.Until && h.State.Judges() }

// leads reports whether a sample decides the state: no layer that comes more often judges that time, and what judges wins over what does not.
func (p *pair) leads(layer int, begin int64, judges bool) bool {
	for i, other := range p.Heard {
		switch {
		case i == layer || other.Begin == 0 || begin >= other.Until:
		case i < layer && (other.State.Judges() || !judges), !judges && other.State.Judges():
			return false
		}
	}
	return true
}

// miss notes a time that was not measured. It reports whether that is the present.
func (p *pair) miss(begin, end int64, r record.Reason) bool {
	n := len(p.Unseen)
	switch {
	case begin < p.Cursor && end <= p.Cursor || n > 0 && begin <= p.Unseen[n-1].Begin:
		return false
	case n > 0 && p.Unseen[n-1].Reason == r:
		p.Unseen[n-1].Last = max(p.Unseen[n-1].Last, end)
	default:
		p.Unseen = append(p.Unseen, unseen{max(begin, p.Cursor), end, r})
	}
	return true
}

// trim removes what was thought not measured, and then arrived.
func (p *pair) trim() {
	for len(p.Unseen) > 0 && p.Unseen[0].Last <= p.Cursor {
		p.Unseen = slices.Delete(p.Unseen, 0, 1)
	}
}

// good returns the standing of a pair that carries traffic.
func (p *pair) good(s record.Sample, at int64) standing {
	if s.State == record.Degraded {
		return standing{s.State, s.Reason}
	}
	if p.suffers(record.KindChange) {
		return standing{record.Degraded, record.Changed}
	}
	if p.suffers(record.KindObjective) {
		return standing{record.Degraded, record.BelowGoal}
	}
	for i, h := range p.Heard {
		if i != p.Lead && h.judges(at) && h.State == record.Down {
			return standing{record.Degraded, record.NoAnswer}
		}
	}
	return standing{State: record.Up}
}

// problem returns the problem of a kind and key, and makes it where there is none.
func (p *pair) problem(k record.Kind, l record.Layer, key string) *problem {
	if q := p.known(k, key); q != nil {
		return q
	}
	q := &problem{Kind: k, Layer: l, Key: key}
	p.Problems = append(p.Problems, q)
	return q
}

// known returns the problem of a kind and key; nil for none.
func (p *pair) known(k record.Kind, key string) *problem {
	i := slices.IndexFunc(p.Problems, func(q *problem) bool { return q.Kind == k && q.Key == key })
	if i < 0 {
		return nil
	}
	return p.Problems[i]
}

// suffers reports whether the last turns of the pair show a problem of a kind.
func (p *pair) suffers(k record.Kind) bool {
	return slices.ContainsFunc(p.Problems, func(q *problem) bool { return q.Active && q.Kind == k && !q.back() })
}

// settle accepts levels that have lasted, and forgets what is over.
func (p *pair) settle(accept time.Duration, now int64) {
	for _, q := range p.Problems {
		if q.Active && q.Kind == record.KindChange && now-q.Since >= int64(accept) {
			q.end(now)
		}
	}
	p.Problems = slices.DeleteFunc(p.Problems, func(q *problem) bool { return q.spent(now) })
}
