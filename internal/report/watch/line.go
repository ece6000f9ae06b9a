// Package watch words what a watch finds out: a line for each event, and a table of the pairs as they are now.
package watch

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"thru/internal/measure"
	"thru/internal/unit"
	"thru/internal/watch/record"
	"thru/internal/watch/schedule"
)

// How times are printed: those of the last 12 hours, and others.
const (
	clock = "15:04:05"
	dated = "2006-01-02 15:04"
)

// Line returns an event in one line, as a person reads it, without its time; empty for events that are for programs. The location is that of other times.
func Line(e record.Event, zone *time.Location) string {
	switch e.Kind {
	case record.StateChanged:
		if e.Before == "" && e.State == record.Up {
			return pair(*e.Pair) + " is up"
		}
		return pair(*e.Pair) + " is " + State(e.State, e.Reason)
	case record.OutageEnded:
		o := e.Outage
		return fmt.Sprintf("%s carries packets again, after %s (%s to %s)", pair(o.Pair), unit.Duration(int64(o.End.Sub(o.Begin))), moment(o.Begin, e.At, zone), moment(o.End, e.At, zone))
	case record.AlarmRaised, record.AlarmUpdated:
		return "ALARM " + Alarm(*e.Alarm, e.At, zone)
	case record.AlarmOver:
		return "over: " + Alarm(*e.Alarm, e.At, zone)
	}
	return ""
}

// State returns a state and its reason in words.
func State(s record.State, why record.Reason) string {
	text := map[record.State]string{
		record.Up: "up", record.Degraded: "degraded", record.Down: "down", record.Refused: "refused", record.Deferred: "deferred", record.NotMeasured: "not measured",
	}[s]
	if reason := reasons()[why]; reason != "" {
		text += ": " + reason
	}
	return text
}

// reasons has the words of reasons.
func reasons() map[record.Reason]string {
	return map[record.Reason]string{
		record.NoAnswer: "no packet comes back", record.AgentAway: "the agent of an end cannot be reached", record.NotPermitted: "an agent does not permit it",
		record.Load: "production traffic has the link", record.Busy: "another measurement runs", record.Budget: "the byte budget of the day is used",
		record.Failed: "the measurement failed", record.ClockJump: "a clock was set",
		record.Slept: "the host was suspended", record.Changed: "worse than before", record.BelowGoal: "an objective is missed",
		record.NoSample: "no sample came",
	}
}

// Alarm returns what an alarm is about: what changed, since when, why, and what to do.
func Alarm(a record.Alarm, now time.Time, zone *time.Location) string {
	where := pair(a.Pairs[0])
	switch {
	case a.Host != "" && len(a.Pairs) > 1:
		where = fmt.Sprintf("%s (%s)", a.Host, unit.Plural(len(a.Pairs), "pair"))
	case a.Segment != "":
		where = fmt.Sprintf("%s (%s)", a.Segment, unit.Plural(len(a.Pairs), "pair"))
	case len(a.Pairs) > 1:
		where = fmt.Sprintf("%s and %s more", where, unit.Plural(len(a.Pairs)-1, "pair"))
	}
	var what []string
	switch {
	case a.Kind == record.KindOutage:
		what = append(what, "down")
	case len(a.Changes) > 0:
		what = append(what, change(a.Changes[0]))
	}
	if len(a.Goals) > 0 {
		what = append(what, "misses "+a.Goals[0].Objective)
	}
	if a.Flapping {
		what = append(what, "flapping")
	}
	text := fmt.Sprintf("%s: %s since %s", where, strings.Join(what, ", "), moment(a.Since, now, zone))
	if len(a.Findings) > 0 {
		text += "; "
		if a.Findings[0].Confidence == measure.Possible {
			text += "possible cause: "
		}
		text += a.Findings[0].Summary
	}
	if a.Deferred != "" {
		text += "; not explained yet: " + a.Deferred
	}
	for i, f := range a.Facts {
		if i == 3 {
			text += fmt.Sprintf("; %d more facts changed", len(a.Facts)-i)
			break
		}
		text += fmt.Sprintf("; %s at %s: %s -> %s, seen %s", cmp.Or(f.Name, f.Fact), f.Host, f.Before, f.After, moment(f.Since, now, zone))
	}
	return text
}

// change returns a change in words: "goodput -12.8% (940 -> 820 Mb/s)".
func change(c record.Change) string {
	text := Metric(c.Metric)
	if c.EffectPct != 0 {
		text += " " + unit.Change(c.EffectPct)
	}
	return fmt.Sprintf("%s (%s -> %s)", text, Value(c.Metric, c.Before), Value(c.Metric, c.After))
}

// Metric returns the name of a metric for people.
func Metric(m record.Metric) string {
	if name := map[record.Metric]string{
		record.LossRatio: "loss", record.RTTMin: "least RTT", record.RTTMedian: "RTT", record.RTT99: "RTT p99", record.Delay: "one-way delay", record.MTU: "MTU",
		record.Hops: "routers", record.Capacity: "capacity", record.Goodput: "goodput", record.CPUSender: "CPU per Gb/s of the sender",
		record.CPUReceiver: "CPU per Gb/s of the receiver", record.Retransmits: "retransmissions", record.RTTLoaded: "RTT under load", record.OtherLoad: "other traffic", record.Availability: "availability",
	}[m]; name != "" {
		return name
	}
	return string(m)
}

// Value returns a value of a metric in its unit.
func Value(m record.Metric, v float64) string {
	switch {
	case strings.HasSuffix(string(m), "_bps"):
		return unit.Rate(v)
	case strings.HasSuffix(string(m), "_ns"):
		return unit.Duration(int64(v))
	case strings.HasSuffix(string(m), "_ratio") || m == record.Availability:
		return unit.Percent(100 * v)
	case strings.HasSuffix(string(m), "_s_per_gb"):
		return unit.Percent(100*v) + " of a core"
	}
	return unit.Count(int64(v))
}

// Begun returns what a watch will do, and what it costs a day: the first line of its output.
func Begun(w schedule.Wish, tasks []schedule.Task, needs []schedule.Need) string {
	text := names(w.Paths)
	var how []string
	if w.ProbeEvery > 0 {
		how = append(how, "a probe each "+unit.Duration(int64(w.ProbeEvery)))
	}
	if len(tasks) > 0 {
		how = append(how, unit.Plural(tasks[0].PerDay, "TCP test")+" a day")
	}
	text += ": " + strings.Join(how, ", ")
	silent := unit.Filtered(w.Paths, func(p schedule.Path) bool { return !p.Probed() })
	switch {
	case w.ProbeEvery == 0 || len(silent) == 0:
	case len(tasks) == 0:
		text += fmt.Sprintf("\nnobody dials this machine, so that nothing measures %s without TCP tests", names(silent))
	default:
		text += fmt.Sprintf("\nnobody dials this machine, so that no probes measure %s: its first state comes with its first TCP test", names(silent))
	}
	if len(needs) == 0 {
		return text
	}
	most := slices.MaxFunc(needs, func(a, b schedule.Need) int { return cmp.Compare(a.Bytes, b.Bytes) })
	if most.Budget == 0 {
		return text + fmt.Sprintf("\n%s a day at %s; TCP tests need --link-rate", unit.Size(most.Bytes), most.Name)
	}
	return text + fmt.Sprintf("\n%s of at most %s a day at %s", unit.Size(most.Bytes), unit.Size(most.Budget), most.Name)
}

// names returns few paths by their names, and the number of many.
func names(paths []schedule.Path) string {
	if len(paths) > 2 {
		return unit.Plural(len(paths), "path")
	}
	return strings.Join(unit.Mapped(paths, func(p schedule.Path) string { return pair(p.Pair) }), ", ")
}

// Standing returns a pair as it is now, in one line.
func Standing(s record.Standing, now time.Time, zone *time.Location) string {
	return fmt.Sprintf("%s: %s since %s", pair(s.Pair), State(s.State, s.Reason), moment(s.Since, now, zone))
}

// pair returns the name of a pair.
func pair(p record.Pair) string { return p.From + " -> " + p.To }

// moment returns a time, with its date unless it is within the last 12 hours.
func moment(t, now time.Time, zone *time.Location) string {
	if now.Sub(t).Abs() < 12*time.Hour {
		return t.In(zone).Format(clock)
	}
	return t.In(zone).Format(dated)
}
