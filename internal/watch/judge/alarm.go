package judge

import (
	"cmp"
	"slices"

	"thru/internal/watch/record"
)

// place is what pairs can share: a segment, a host, or what a host sends or receives. Among equals, the first is named.
type place struct {
	Segment, Host string
	Side          record.Side
}

// sort is what problems of one alarm share.
type sort struct {
	Kind  record.Kind
	Layer record.Layer
}

// trouble is a problem with its pair.
type trouble struct {
	*pair
	*problem
}

// byAlarm returns problems by the ID of their alarm.
func byAlarm(all []trouble) map[string][]trouble {
	by := map[string][]trouble{}
	for _, t := range all {
		by[t.Alarm] = append(by[t.Alarm], t)
	}
	return by
}

// alarm is an alarm from the first suspicion to its end.
type alarm struct {
	record.Alarm
	Layer     record.Layer `json:"layer,omitempty"`
	Made      int64        `json:"made_ns"`
	Asked     bool         `json:"asked"` // for an explanation
	Explained bool         `json:"explained"`
	Raised    bool         `json:"raised"`
	News      bool         `json:"news"` // that was not told
}

// take makes a problem one of the alarm's.
func (a *alarm) take(t trouble) {
	t.problem.Alarm, t.Waits, a.News = a.ID, 0, true
}

// place returns what the pairs of an alarm share; zero for nothing.
func (a *alarm) place() place { return place{a.Segment, a.Host, a.Side} }

// name makes an alarm one of a place.
func (a *alarm) name(x place) { a.Segment, a.Host, a.Side = x.Segment, x.Host, x.Side }

// describe writes what the problems of an alarm say. An alarm that has lost its pairs keeps what it said.
func (a *alarm) describe(members []trouble) {
	if len(members) == 0 {
		return
	}
	a.Pairs, a.Changes, a.Outages, a.Goals = nil, nil, nil, nil
	for i, t := range members {
		if since := instant(t.Since); i == 0 || since.Before(a.Since) {
			a.Since = since
		}
		if n := len(a.Pairs); n == 0 || a.Pairs[n-1] != t.Pair {
			a.Pairs = append(a.Pairs, t.Pair)
		}
		if t.Change != nil {
			a.Changes = append(a.Changes, *t.Change)
		}
		if t.problem.Outage != nil {
			a.Outages = append(a.Outages, *t.problem.Outage)
		}
		if t.Objective != nil {
			a.Goals = append(a.Goals, *t.Objective)
		}
	}
}

// gravity orders kinds of alarms: problems of a pair join an alarm about it that is as grave or graver.
func gravity(k record.Kind) int {
	return slices.Index([]record.Kind{record.KindOutage, record.KindChange, record.KindObjective}, k)
}

// ends returns a pair without its direction.
func ends(p record.Pair) record.Pair {
	return record.Pair{From: min(p.From, p.To), To: max(p.From, p.To)}
}

func comparePlaces(a, b place) int {
	return cmp.Or(cmp.Compare(a.Side, b.Side), cmp.Compare(a.Host, b.Host), cmp.Compare(a.Segment, b.Segment))
}
