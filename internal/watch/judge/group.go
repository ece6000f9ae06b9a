package judge

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"

	"thru/internal/watch/record"
)

// newAlarm returns an alarm about a place, or about a pair.
func (j *Judge) newAlarm(of sort, x place, first trouble) *alarm {
	name := fnv.New64a()
	fmt.Fprintf(name, "%q %q %d", of, []string{x.Segment, x.Host, string(x.Side), first.From, first.To}, first.Since)
	a := &alarm{Layer: of.Layer, Made: j.now}
	a.name(x)
	a.ID, a.Kind = fmt.Sprintf("%016x", name.Sum64()), of.Kind
	j.alarms = append(j.alarms, a)
	return a
}

// This file finds what pairs with the same problem have in common: the fewest hosts and segments that explain them (a greedy set cover), of
// which most pairs have the problem.

// group gives each problem that is worth an alarm its alarm.
func (j *Judge) group(all []trouble) {
	waiting := map[sort][]trouble{}
	due := map[sort]bool{}
	for _, t := range all {
		if t.Alarm != "" || !t.Active || !t.Worth {
			continue
		}
		if maintained, _ := j.config.maintained(t.Pair, j.now); maintained {
			t.problem.Waits = 0
			continue
		}
		if t.Waits == 0 || t.Waits > j.now { // the clock was set back
			t.problem.Waits = j.now
		}
		of := sort{t.Kind, t.Layer}
		waiting[of] = append(waiting[of], t)
		due[of] = due[of] || j.now-t.Waits >= int64(j.config.Gather)
	}
	sorts := slices.SortedFunc(maps.Keys(waiting), func(a, b sort) int {
		return cmp.Or(cmp.Compare(gravity(a.Kind), gravity(b.Kind)), cmp.Compare(rank(a.Layer), rank(b.Layer)))
	})
	for _, of := range sorts {
		fresh := slices.DeleteFunc(waiting[of], j.joins)
		if due[of] {
			j.cover(of, fresh, all)
		}
	}
}

// joins adds a problem to an alarm that exists: one of its place, or one of its pair. It reports whether there is one.
func (j *Judge) joins(t trouble) bool {
	for _, a := range j.alarms {
		ofPlace := a.Kind == t.Kind && a.Layer == t.Layer && slices.Contains(j.places(t.Pair), a.place())
		ofPair := gravity(a.Kind) <= gravity(t.Kind) && slices.ContainsFunc(t.Problems, func(q *problem) bool { return q.Alarm == a.ID })
		if ofPlace || ofPair {
			a.take(t)
			return true
		}
	}
	return false
}

// cover makes alarms for problems that have none.
func (j *Judge) cover(of sort, fresh, all []trouble) {
	shares := j.shares(of, fresh)
	for len(fresh) > 0 {
		best, reached := j.best(shares, fresh)
		if len(reached) == 0 {
			break
		}
		a := j.widen(of, best, all)
		if a == nil {
			a = j.newAlarm(of, best, reached[0])
		}
		for _, t := range reached {
			a.take(t)
		}
		fresh = slices.DeleteFunc(fresh, func(t trouble) bool { return t.Alarm != "" })
	}
	alone := map[record.Pair][]trouble{}
	for _, t := range fresh {
		alone[ends(t.Pair)] = append(alone[ends(t.Pair)], t)
	}
	var last *alarm
	for _, both := range slices.SortedFunc(maps.Keys(alone), record.Pair.Compare) {
		if last == nil || len(alone) <= separate {
			last = j.newAlarm(of, place{}, alone[both][0])
		}
		for _, t := range alone[both] {
			last.take(t)
		}
	}
}

// shares returns the places of problems of which enough pairs have the problem, with their share. A place of two ends alone is no
// explanation: either of them could be named.
func (j *Judge) shares(of sort, fresh []trouble) map[place]float64 {
	all, bad := map[place]int{}, map[place]int{}
	between := map[place]map[record.Pair]bool{}
	for _, t := range fresh {
		for _, x := range j.places(t.Pair) {
			between[x] = map[record.Pair]bool{}
		}
	}
	for _, p := range j.sorted() {
		affected := slices.ContainsFunc(p.Problems, func(q *problem) bool { return q.Active && q.Kind == of.Kind && q.Layer == of.Layer })
		if !affected && !j.counts(p, of.Layer) {
			continue
		}
		for _, x := range j.places(p.Pair) {
			if between[x] == nil {
				continue
			}
			all[x]++
			if affected {
				bad[x]++
				between[x][ends(p.Pair)] = true
			}
		}
	}
	shares := map[place]float64{}
	for x, n := range bad {
		if share := float64(n) / float64(all[x]); share >= leastShare && len(between[x]) > 1 {
			shares[x] = share
		}
	}
	return shares
}

// counts reports whether a pair is known to be without a problem of a layer: its path is judged, and not only by other layers.
func (j *Judge) counts(p *pair, l record.Layer) bool {
	maintained, _ := j.config.maintained(p.Pair, j.now)
	return p.Said.State.Judges() && !maintained && (l == "" || p.Heard[rank(l)].Begin != 0)
}

// best returns the place that explains most problems.
func (j *Judge) best(shares map[place]float64, fresh []trouble) (best place, reached []trouble) {
	by := map[place][]trouble{}
	for _, t := range fresh {
		for _, x := range j.places(t.Pair) {
			if shares[x] > 0 {
				by[x] = append(by[x], t)
			}
		}
	}
	for _, x := range slices.SortedFunc(maps.Keys(by), comparePlaces) {
		n, most := len(by[x]), len(reached)
		if n > most || n == most && shares[x] > shares[best] {
			best, reached = x, by[x]
		}
	}
	return best, reached
}

// widen returns an alarm without a place, all of whose pairs cross a place; nil for none. It was the first sign of the same.
func (j *Judge) widen(of sort, x place, all []trouble) *alarm {
	by := byAlarm(all)
	for _, a := range j.alarms {
		if a.Kind != of.Kind || a.Layer != of.Layer || a.place() != (place{}) {
			continue
		}
		if !slices.ContainsFunc(by[a.ID], func(t trouble) bool { return !slices.Contains(j.places(t.Pair), x) }) {
			a.name(x)
			return a
		}
	}
	return nil
}
