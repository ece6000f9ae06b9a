package judge

import (
	"fmt"
	"hash/fnv"

	"thru/internal/watch/record"
)

// alarm is an alarm from the first suspicion to its end.
type alarm struct {
	record.Alarm
	Layer     record.Layer `json:"layer,omitempty"`
	Place     place        `json:"place"`
	Made      int64        `json:"made_ns"`
	Asked     bool         `json:"asked"` // for an explanation
	Explained bool         `json:"explained"`
	Raised    bool         `json:"raised"`
	News      bool         `json:"news"` // that was not told
}

// newAlarm returns an alarm about a place, or about a pair.
func (j *Judge) newAlarm(of sort, x place, first trouble) *alarm {
	name := fnv.New64a()
	fmt.Fprintf(name, "%s\n%s\n%d\n%s\n%s\n%s\n%d", of.Kind, of.Layer, x.Kind, x.Name, first.From, first.To, first.Since)
	a := &alarm{Layer: of.Layer, Made: j.now}
	if x.Name != "" {
		a.name(x)
	}
	a.ID, a.Kind = fmt.Sprintf("%016x", name.Sum64()), of.Kind
	j.alarms = append(j.alarms, a)
	return a
}

// take makes a problem one of the alarm's.
func (a *alarm) take(t trouble) {
	t.problem.Alarm, t.Waits, a.News = a.ID, 0, true
}

// news notes that an alarm has something to tell.
func (j *Judge) news(id string) {
	for _, a := range j.alarms {
		a.News = a.News || a.ID == id
	}
}

// members returns the problems of an alarm.
func (j *Judge) members(a *alarm) (all []trouble) {
	for _, p := range j.sorted() {
		for _, q := range p.Problems {
			if q.Alarm == a.ID {
				all = append(all, trouble{p, q})
			}
		}
	}
	return all
}

// tell emits what there is to tell of alarms.
func (j *Judge) tell() {
	var open []*alarm
	for _, a := range j.alarms {
		members := j.members(a)
		a.describe(members)
		active, audible := false, false
		for _, t := range members {
			maintained, _ := j.config.maintained(t.Pair, j.now)
			active = active || t.Active
			audible = audible || t.Active && !maintained
			if t.Flapping && !a.Flapping {
				a.Flapping, a.News = true, true
			}
		}
		if !active {
			j.finish(a, members)
			continue
		}
		open = append(open, a)
		if audible {
			j.announce(a)
		}
	}
	j.alarms = open
}

// announce asks for an explanation, and raises or updates an alarm. An outage waits for nothing: explain needs a path.
func (j *Judge) announce(a *alarm) {
	if !a.Asked {
		a.Asked = true
		j.emitAlarm(record.Suspected, a)
	}
	waits := !a.Explained && a.Kind != record.KindOutage && j.now-a.Made < int64(j.config.Wait) && j.now >= a.Made
	switch {
	case a.Raised && a.News:
		j.emitAlarm(record.AlarmUpdated, a)
	case !a.Raised && !waits:
		j.emitAlarm(record.AlarmRaised, a)
		a.Raised = true
	default:
		return
	}
	a.News = false
}

// finish ends an alarm. One that was not raised leaves silently.
func (j *Judge) finish(a *alarm, members []trouble) {
	ended := a.Since.UnixNano()
	if len(members) == 0 { // its pairs left the plan
		ended = j.now
	}
	for _, t := range members {
		ended = max(ended, t.Ended)
		t.problem.Alarm = ""
	}
	if a.Raised {
		a.End = instant(ended)
		j.emitAlarm(record.AlarmOver, a)
	}
}

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

// emitAlarm emits an alarm as it is now.
func (j *Judge) emitAlarm(k record.EventKind, a *alarm) {
	j.emit(record.Event{Kind: k, At: instant(j.now), Alarm: new(a.Alarm)})
}
