package judge

import (
	"cmp"
	"maps"
	"slices"

	"thru/internal/watch/record"
)

// This file finds what pairs with the same problem have in common: the fewest hosts and segments that explain them (a greedy set cover), of
// which most pairs have the problem.

// place is what pairs can share.
type place struct {
	Kind int    `json:"kind"`
	Name string `json:"name"`
}

// The kinds of places; among equals, the first is named.
const (
	segment int = iota
	host
	sender   // a host, for what it sends
	receiver // a host, for what it receives
)

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

// gravity orders kinds of alarms: problems of a pair join an alarm about it that is as grave or graver.
func gravity(k record.Kind) int {
	return slices.Index([]record.Kind{record.KindOutage, record.KindChange, record.KindObjective}, k)
}

// places returns what a pair crosses.
func (j *Judge) places(p record.Pair) []place {
	all := []place{{host, p.From}, {host, p.To}, {sender, p.From}, {receiver, p.To}}
	for _, s := range j.config.Segments(p) {
		all = append(all, place{segment, s})
	}
	return all
}

// ends returns a pair without its direction.
func ends(p record.Pair) record.Pair {
	return record.Pair{From: min(p.From, p.To), To: max(p.From, p.To)}
}

// group gives each problem that is worth an alarm its alarm.
func (j *Judge) group() {
	waiting := map[sort][]trouble{}
	due := map[sort]bool{}
	for _, p := range j.sorted() {
		if len(p.Problems) == 0 {
			continue
		}
		maintained, _ := j.config.maintained(p.Pair, j.now)
		for _, q := range p.Problems {
			switch {
			case q.Alarm != "" || !q.Active || !q.Worth:
			case maintained:
				q.Waits = 0
			default:
				if q.Waits == 0 || q.Waits > j.now { // the clock was set back
					q.Waits = j.now
				}
				of := sort{q.Kind, q.Layer}
				waiting[of] = append(waiting[of], trouble{p, q})
				due[of] = due[of] || j.now-q.Waits >= int64(j.config.Gather)
			}
		}
	}
	sorts := slices.SortedFunc(maps.Keys(waiting), func(a, b sort) int {
		return cmp.Or(cmp.Compare(gravity(a.Kind), gravity(b.Kind)), cmp.Compare(rank(a.Layer), rank(b.Layer)))
	})
	for _, of := range sorts {
		fresh := slices.DeleteFunc(waiting[of], j.joins)
		if due[of] {
			j.cover(of, fresh)
		}
	}
}

// joins adds a problem to an alarm that exists: one of its place, or one of its pair. It reports whether there is one.
func (j *Judge) joins(t trouble) bool {
	for _, a := range j.alarms {
		ofPlace := a.Place.Name != "" && a.Kind == t.Kind && a.Layer == t.Layer && slices.Contains(j.places(t.Pair), a.Place)
		ofPair := gravity(a.Kind) <= gravity(t.Kind) && slices.ContainsFunc(t.Problems, func(q *problem) bool { return q.Alarm == a.ID })
		if ofPlace || ofPair {
			a.take(t)
			return true
		}
	}
	return false
}

// cover makes alarms for problems that have none.
func (j *Judge) cover(of sort, fresh []trouble) {
	shares := j.shares(of, fresh)
	for len(fresh) > 0 {
		best, reached := j.best(shares, fresh)
		if len(reached) == 0 {
			break
		}
		a := j.widen(of, best)
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
	for _, both := range slices.SortedFunc(maps.Keys(alone), comparePairs) {
		if last == nil || len(alone) <= j.config.Separate {
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
		if share := float64(n) / float64(all[x]); share >= j.config.Share && len(between[x]) > 1 {
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
func (j *Judge) widen(of sort, x place) *alarm {
	for _, a := range j.alarms {
		if a.Kind != of.Kind || a.Layer != of.Layer || a.Place.Name != "" {
			continue
		}
		if !slices.ContainsFunc(j.members(a), func(t trouble) bool { return !slices.Contains(j.places(t.Pair), x) }) {
			a.name(x)
			return a
		}
	}
	return nil
}

// name makes an alarm one of a place.
func (a *alarm) name(x place) {
	a.Place = x
	switch x.Kind {
	case segment:
		a.Segment = x.Name
	case sender:
		a.Host, a.Side = x.Name, record.SideSender
	case receiver:
		a.Host, a.Side = x.Name, record.SideReceiver
	default:
		a.Host = x.Name
	}
}

func comparePairs(a, b record.Pair) int {
	return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
}

func comparePlaces(a, b place) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
}
