package record

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// States lists the states of a pair, the best first.
func States() []State { return []State{Up, Degraded, Down, Refused, Deferred, NotMeasured} }

// Times is the time spent in each state that occurred, exact to the nanosecond.
type Times map[State]time.Duration

// Add adds time in a state.
func (t *Times) Add(s State, d time.Duration) {
	if *t == nil {
		*t = Times{}
	}
	(*t)[s] += d
}

// In returns the time in some states.
func (t Times) In(some ...State) (sum time.Duration) {
	for _, s := range some {
		sum += t[s]
	}
	return sum
}

// All returns the time in all states.
func (t Times) All() time.Duration { return t.In(States()...) }

// Standing is how a pair is now.
type Standing struct {
	Pair
	State  State
	Reason Reason
	Since  time.Time
	Goals  []Goal // over their window of 30 days
}

// Summary is a day, or more, of a pair. Summaries of days merge into that of a month without the samples.
type Summary struct {
	Pair
	Begin        time.Time `json:"begin"`
	End          time.Time `json:"end"`
	States       Times     `json:"state_ns"`
	Maintenance  Times     `json:"maintenance_ns"` // within announced work; not part of state_ns, and not judged
	Turns        int       `json:"turns"`          // that judged the path
	SentPackets  int64     `json:"sent_packets"`
	LostPackets  int64     `json:"lost_packets"`
	TrafficBytes int64     `json:"traffic_bytes"` // of the watch itself
	Values       []Spread  `json:"values,omitempty"`
	Goals        []Goal    `json:"objectives,omitempty"`
	Outages      []Outage  `json:"outages,omitempty"`
	MoreOutages  int       `json:"more_outages,omitempty"` // beyond the first OutagesPerDay of a day
	Alarms       []Alarm   `json:"alarms,omitempty"`       // that were raised, changed or over, each as it was last, with the first of its findings
}

// OutagesPerDay bounds the list of a day; further outages are only counted.
const OutagesPerDay = 500

// Availability returns the share of the judged time in which the pair was not down. It is unknown if no time was judged.
func (s *Summary) Availability() (share float64, known bool) {
	judged := s.States.In(Up, Degraded, Down)
	return 1 - float64(s.States.In(Down))/float64(judged), judged > 0
}

// LossRatio returns the share of probe packets that were lost.
func (s *Summary) LossRatio() (share float64, known bool) {
	return float64(s.LostPackets) / float64(s.SentPackets), s.SentPackets > 0
}

// Add counts the value of a turn.
func (s *Summary) Add(m Metric, value float64) { s.spread(m).add(value) }

// spread returns the entry of a metric, and makes it where there is none. Entries are sorted by metric.
func (s *Summary) spread(m Metric) *Spread {
	i, found := slices.BinarySearchFunc(s.Values, m, func(v Spread, m Metric) int { return cmp.Compare(v.Metric, m) })
	if !found {
		s.Values = slices.Insert(s.Values, i, Spread{Metric: m})
	}
	return &s.Values[i]
}

// AddOutage lists an outage of a day. One that was listed while it lasted is replaced.
func (s *Summary) AddOutage(o Outage) { s.addOutage(o, OutagesPerDay) }

func (s *Summary) addOutage(o Outage, most int) {
	same := slices.IndexFunc(s.Outages, func(x Outage) bool { return x.Begin.Equal(o.Begin) })
	switch {
	case same >= 0:
		s.Outages[same] = o
	case len(s.Outages) < most:
		s.Outages = append(s.Outages, o)
	default:
		s.MoreOutages++
	}
}

// AddAlarm lists an alarm, in place of what was listed of it before.
func (s *Summary) AddAlarm(a Alarm) {
	a.Findings = a.Findings[:min(1, len(a.Findings))]
	if i := slices.IndexFunc(s.Alarms, func(x Alarm) bool { return x.ID == a.ID }); i >= 0 {
		s.Alarms[i] = a
		return
	}
	s.Alarms = append(s.Alarms, a)
}

// Merge returns the summary of one pair over the time of all parts, which do not overlap and come in order.
func Merge(parts ...Summary) Summary {
	all := Summary{States: Times{}, Maintenance: Times{}}
	for i, part := range parts {
		if i == 0 {
			all.Pair, all.Begin = part.Pair, part.Begin
		}
		all.End = part.End
		for s, d := range part.States {
			all.States.Add(s, d)
		}
		for s, d := range part.Maintenance {
			all.Maintenance.Add(s, d)
		}
		all.Turns += part.Turns
		all.SentPackets += part.SentPackets
		all.LostPackets += part.LostPackets
		all.TrafficBytes += part.TrafficBytes
		for _, v := range part.Values {
			all.spread(v.Metric).merge(v)
		}
		for _, g := range part.Goals {
			all.addGoal(g)
		}
		for _, o := range part.Outages {
			all.addOutage(o, math.MaxInt)
		}
		all.MoreOutages += part.MoreOutages
		for _, a := range part.Alarms {
			all.AddAlarm(a)
		}
	}
	return all
}

// addGoal adds what a part kept of an objective. Its burn rate is that of a moment, and has no sum.
func (s *Summary) addGoal(g Goal) {
	i := slices.IndexFunc(s.Goals, func(x Goal) bool { return x.Objective == g.Objective })
	if i < 0 {
		i = len(s.Goals)
		s.Goals = append(s.Goals, Goal{Pair: g.Pair, Objective: g.Objective, Metric: g.Metric, Limit: g.Limit, AtLeast: g.AtLeast, SharePct: g.SharePct, Per: g.Per})
	}
	s.Goals[i].Kept += g.Kept
	s.Goals[i].Of += g.Of
	s.Goals[i].UsedPct = s.Goals[i].Used(1)
}

// Used returns how much of the error budget is used, in percent. The budget is that of the counted time, times whole: 30 after the first of
// 30 days. Without a budget, each miss counts as a whole one.
func (g Goal) Used(whole float64) float64 {
	missed := float64(g.Of - g.Kept)
	allowed := (1 - g.SharePct/100) * float64(g.Of) * whole
	switch {
	case missed == 0:
		return 0
	case allowed <= 0:
		return 100 * (1 + missed)
	}
	return 100 * missed / allowed
}

// Spread is the distribution of a metric as counts in bins that grow by 2%, so a quantile is within 1% of a measured value (the DDSketch of
// Masson, Rim and Lee, VLDB 2019). It merges without loss.
type Spread struct {
	Metric Metric  `json:"metric"`
	Count  int     `json:"count"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
	Zeros  int     `json:"zeros,omitempty"` // values of 0 have no logarithm
	Bins   []Bin   `json:"bins,omitempty"`  // ascending
}

// Bin counts the values above growth^(index-1) up to growth^index.
type Bin [2]int32 // index, count

// growth is the ratio of neighbouring bins.
const growth = 1.02

// add counts a value.
func (s *Spread) add(value float64) {
	one := Spread{Metric: s.Metric, Count: 1, Min: value, Max: value}
	if value > 0 {
		one.Bins = []Bin{{int32(math.Ceil(math.Log(value) / math.Log(growth))), 1}}
	} else {
		one.Zeros = 1
	}
	s.merge(one)
}

// merge adds the values of another distribution.
func (s *Spread) merge(o Spread) {
	if s.Count == 0 {
		s.Min, s.Max = o.Min, o.Max
	}
	s.Count, s.Zeros = s.Count+o.Count, s.Zeros+o.Zeros
	s.Min, s.Max = min(s.Min, o.Min), max(s.Max, o.Max)
	for _, b := range o.Bins {
		i, found := slices.BinarySearchFunc(s.Bins, b, func(x, b Bin) int { return cmp.Compare(x[0], b[0]) })
		if found {
			s.Bins[i][1] += b[1]
		} else {
			s.Bins = slices.Insert(s.Bins, i, b)
		}
	}
}

// Quantile returns the value at a share p of all, 0 to 1; NaN without values.
func (s *Spread) Quantile(p float64) float64 {
	if s.Count == 0 {
		return math.NaN()
	}
	rank := int(math.Ceil(p * float64(s.Count)))
	left := rank - s.Zeros
	if left <= 0 {
		return min(max(0, s.Min), s.Max)
	}
	for _, b := range s.Bins {
		if left -= int(b[1]); left <= 0 {
			middle := 2 * math.Pow(growth, float64(b[0])) / (1 + growth)
			return min(max(middle, s.Min), s.Max)
		}
	}
	return s.Max
}
