// Package record has what a watch knows of its pairs: samples, changes, outages and alarms. All parts of a watch share these types, and
// their JSON is what `thru watch --json` prints, a line for each, with the schema thru.watch/1.
//
// A value that was not measured is absent, never zero. Keys have their unit. Times are wall-clock times of the host that measured.
package record

import (
	"cmp"
	"fmt"
	"time"

	"thru/internal/measure"
)

// Schema is the version of the JSON of this package.
const Schema = "thru.watch/1"

// Pair is one direction between two end points, named as in a plan. Traffic flows from From to To.
type Pair struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// Compare orders pairs by their names.
func (p Pair) Compare(q Pair) int {
	return cmp.Or(cmp.Compare(p.From, q.From), cmp.Compare(p.To, q.To))
}

// Layer is a way to measure a pair, by its cost.
type Layer string

// The layers of a watch.
const (
	Probe Layer = "probe" // small packets, always: loss, delay, MTU, route
	Train Layer = "train" // short bursts of UDP, often: an estimate of the capacity
	TCP   Layer = "tcp"   // a short TCP test, seldom: goodput, and CPU per Gb/s
)

// State is what a turn says of a pair. Only Up, Degraded and Down judge the path; in the other states nothing is known of it.
type State string

// The states of a pair.
const (
	Up          State = "up"
	Degraded    State = "degraded"     // it carries traffic, and an objective or a change says that it carries less than it should
	Down        State = "down"         // nothing arrived, though both agents answered or the peer should have
	Refused     State = "refused"      // an agent does not permit the measurement
	Deferred    State = "deferred"     // production load, another test, or the budget was in the way
	NotMeasured State = "not-measured" // the watch itself could not measure: an agent is away, a clock jumped, the host slept
)

// Judges reports whether the state says something of the path.
func (s State) Judges() bool { return s == Up || s == Degraded || s == Down }

// Reason says why a turn has its state. Its words belong to the faces.
type Reason string

// The reasons of states other than Up.
const (
	NoAnswer     Reason = "no-answer"     // no packet came back
	AgentAway    Reason = "agent-away"    // the agent of an end cannot be reached
	NotPermitted Reason = "not-permitted" // its owner does not permit it
	Load         Reason = "load"          // production traffic above the bar of the plan
	Busy         Reason = "busy"          // another measurement has the turn
	Budget       Reason = "budget"        // the bytes of the day are used
	Failed       Reason = "failed"        // the measurement failed; Sample.Error has the cause
	ClockJump    Reason = "clock-jump"    // a wall clock was set during the turn
	Slept        Reason = "slept"         // the host or its virtual machine was suspended
	Changed      Reason = "changed"       // a change for the worse is not over
	BelowGoal    Reason = "below-goal"    // an objective is missed
	NoSample     Reason = "no-sample"     // no turn was due, or none was heard of
)

// Metric is the name of a measured value, with its unit.
type Metric string

// The metrics of the layers. Delays are round trips unless their name says otherwise.
const (
	Sent         Metric = "sent_packets"        // probe: packets sent in the turn
	LossRatio    Metric = "loss_ratio"          // probe: lost of sent, 0 to 1
	RTTMin       Metric = "rtt_min_ns"          // probe
	RTTMedian    Metric = "rtt_p50_ns"          // probe
	RTT99        Metric = "rtt_p99_ns"          // probe
	Delay        Metric = "delay_p50_ns"        // probe: one-way; absent where the clocks do not allow it
	DelayBound   Metric = "delay_error_ns"      // probe: how far the one-way delay may be wrong, either way
	MTU          Metric = "mtu_bytes"           // probe: the largest packet that passed
	Hops         Metric = "hops"                // probe: routers, by the TTL that arrived
	Capacity     Metric = "capacity_bps"        // train
	Goodput      Metric = "goodput_bps"         // tcp: what the receiver got
	CPUSender    Metric = "cpu_sender_s_per_gb" // tcp: CPU seconds of the sending host for one gigabit
	CPUReceiver  Metric = "cpu_receiver_s_per_gb"
	Retransmits  Metric = "retransmit_ratio" // tcp: segments sent again, of all
	RTTLoaded    Metric = "rtt_loaded_ns"    // tcp: during the test
	OtherLoad    Metric = "other_load_ratio" // tcp: traffic of others just before and after the test, of the link's rate, at the busier end
	TrafficBytes Metric = "traffic_bytes"    // any: what the turn itself put on the path, both ways
)

// Availability is a metric of objectives only: the share of the judged time in which the pair is not down.
const Availability Metric = "availability"

// Layer returns the layer that measures a metric.
func (m Metric) Layer() Layer {
	switch m {
	case Capacity:
		return Train
	case Goodput, CPUSender, CPUReceiver, Retransmits, RTTLoaded, OtherLoad:
		return TCP
	}
	return Probe
}

// Sample is one turn of one layer of a pair.
type Sample struct {
	Pair
	Layer      Layer                `json:"layer"`
	Begin      time.Time            `json:"begin"`
	Seconds    float64              `json:"seconds"` // how long it measured
	ID         string               `json:"id"`      // the same after each way and repetition: a sample counts once
	State      State                `json:"state"`
	Reason     Reason               `json:"reason,omitempty"`
	Error      string               `json:"error,omitempty"` // cause and hint of a failure, for people
	Values     map[Metric]float64   `json:"values,omitempty"`
	Gaps       []Gap                `json:"gaps,omitempty"`  // probe: packets lost in a row
	Route      string               `json:"route,omitempty"` // interface and next hop of the sender; compared as a whole
	Facts      string               `json:"facts,omitempty"` // digest of the facts of both hosts in force
	NotChecked []measure.NotChecked `json:"not_checked,omitempty"`
}

// SampleID returns the id of the sample of a turn that began at a time. It has milliseconds, as stores do.
func SampleID(p Pair, l Layer, begin time.Time) string {
	return fmt.Sprintf("%s/%s/%s/%d", l, p.From, p.To, begin.UnixMilli())
}

// Gap is a run of probe packets that were lost in a row. A turn lists all gaps of three packets and more, and its last one whatever its length
// if it is open at the end of the turn: the next turn lists it again, with its first begin, and closed if it is over.
type Gap struct {
	Begin time.Time `json:"begin"`        // when the first lost packet was sent
	End   time.Time `json:"end,omitzero"` // when the first packet after it was sent; zero while it lasts
	Lost  int       `json:"lost_packets"` // since Begin
}

// Direction says whether a change is for the better.
type Direction string

// The directions of a change.
const (
	Better  Direction = "better"
	Worse   Direction = "worse"
	Neither Direction = "neither" // another route is neither
)

// Change is a change point of one metric of a pair.
type Change struct {
	Pair
	Metric    Metric    `json:"metric"`
	Since     time.Time `json:"since"`    // the first sample after it
	Earliest  time.Time `json:"earliest"` // it lies between Earliest and Latest
	Latest    time.Time `json:"latest"`
	Found     time.Time `json:"found"` // the sample that decided
	Before    float64   `json:"before"`
	After     float64   `json:"after"`
	EffectPct float64   `json:"effect_pct"` // of Before, with its 95% interval
	LowPct    float64   `json:"low_pct"`
	HighPct   float64   `json:"high_pct"`
	Direction Direction `json:"direction"`
	P         float64   `json:"p"`             // of a series without change showing this or more
	Over      time.Time `json:"over,omitzero"` // not zero: the level is back at that before the change with this Since; later ones are over too
}

// FactChange is a fact of a host that is not what it was.
type FactChange struct {
	Host   string    `json:"host"`
	Fact   string    `json:"fact"`           // a key of measure's table of facts
	Name   string    `json:"name,omitempty"` // for people: "MTU of eth0"
	Before string    `json:"before"`
	After  string    `json:"after"`
	Since  time.Time `json:"since"` // of the first turn that shows it
}

// Outage is a time in which a pair was down. End is zero while it lasts.
type Outage struct {
	Pair
	Begin       time.Time `json:"begin"`        // the first packet that was lost
	End         time.Time `json:"end,omitzero"` // the first packet that arrived again
	Reason      Reason    `json:"reason"`
	UnseenNs    int64     `json:"unseen_ns,omitempty"`   // of its time, not measured
	Maintenance bool      `json:"maintenance,omitempty"` // it began within announced work
}

// Kind is what an alarm is about.
type Kind string

// The kinds of alarms.
const (
	KindChange    Kind = "change"
	KindOutage    Kind = "outage"
	KindObjective Kind = "objective"
)

// Side is a direction of a host's traffic.
type Side string

// The sides of an alarm that is about one direction only.
const (
	SideSender   Side = "sender"
	SideReceiver Side = "receiver"
)

// Alarm is what a person is told, once, of one thing that is wrong, for all pairs that it touches.
type Alarm struct {
	ID       string            `json:"id"` // the same from its begin to its end
	Kind     Kind              `json:"kind"`
	Pairs    []Pair            `json:"pairs"`
	Host     string            `json:"host,omitempty"`    // the host that all pairs share
	Side     Side              `json:"side,omitempty"`    // if only what Host sends, or receives, is affected
	Segment  string            `json:"segment,omitempty"` // the segment that all pairs share
	Labels   map[string]string `json:"labels,omitempty"`  // host, segment, from and to as it was raised: they name it to others, and stay
	Since    time.Time         `json:"since"`
	End      time.Time         `json:"end,omitzero"` // when it was over
	Changes  []Change          `json:"changes,omitempty"`
	Outages  []Outage          `json:"outages,omitempty"`
	Goals    []Goal            `json:"objectives,omitempty"`
	Facts    []FactChange      `json:"changed_facts,omitempty"`
	Findings []measure.Finding `json:"findings,omitempty"` // of explain, the binding one first
	Result   string            `json:"result,omitempty"`   // id of the stored result that explains it
	Link     string            `json:"link,omitempty"`     // to its page
	Deferred string            `json:"deferred,omitempty"` // why it is not explained yet: other traffic, with its figure
	Flapping bool              `json:"flapping,omitempty"` // it came and went so often that it is told once
}

// Per is what an objective counts.
type Per string

// The units of objectives. An hour or day keeps an objective if most of its turns do.
const (
	PerTurn Per = "turns"
	PerHour Per = "hours"
	PerDay  Per = "days"
	PerTime Per = "ms" // judged milliseconds, for Availability
)

// Goal is an objective of a pair, and how much of its error budget is used.
type Goal struct {
	Pair
	Objective string  `json:"objective"` // as in the plan: goodput >= 9G, 99% of days
	Metric    Metric  `json:"metric"`
	Limit     float64 `json:"limit"`
	AtLeast   bool    `json:"at_least"` // else at most
	SharePct  float64 `json:"share_pct"`
	Per       Per     `json:"per"`
	Kept      int     `json:"kept"`
	Of        int     `json:"of"`
	UsedPct   float64 `json:"budget_used_pct"`     // of what may be missed; above 100 the objective is missed
	BurnRate  float64 `json:"burn_rate,omitempty"` // of the last two days: 1 uses the budget exactly
}
