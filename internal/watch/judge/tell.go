package judge

import (
	"maps"

	"thru/internal/watch/record"
)

// tell emits what there is to tell of alarms.
func (j *Judge) tell(all []trouble) {
	var open []*alarm
	by := byAlarm(all)
	for _, a := range j.alarms {
		members := by[a.ID]
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
		a.Raised, a.Labels = true, labels(a.Alarm)
		j.emitAlarm(record.AlarmRaised, a)
	default:
		return
	}
	a.News = false
}

// labels returns what names an alarm to others: where it is as it is raised.
func labels(a record.Alarm) map[string]string {
	all := map[string]string{"host": a.Host, "segment": a.Segment}
	if len(a.Pairs) == 1 {
		all["from"], all["to"] = a.Pairs[0].From, a.Pairs[0].To
	}
	maps.DeleteFunc(all, func(_, value string) bool { return value == "" })
	return all
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

// emitAlarm emits an alarm as it is now. The days of its pairs list it.
func (j *Judge) emitAlarm(k record.EventKind, a *alarm) {
	for _, x := range a.Pairs {
		if p := j.pairs[x]; p != nil && k != record.Suspected {
			p.Day.AddAlarm(a.Alarm)
		}
	}
	j.emit(record.Event{Kind: k, At: instant(j.now), Alarm: new(a.Alarm)})
}
