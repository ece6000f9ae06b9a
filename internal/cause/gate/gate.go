// Package gate judges whether two hosts and the path between them are fit to
// be measured (C-33): from their facts it makes gates, each with what was
// found, why it matters and what to do.
//
// It is pure: the same facts give the same gates, in the same order. It never
// guesses: where a fact is missing the gate is "not checked" and names it.
// A gate fails only where a measurement would be void or the stated need is
// beyond the host; what merely costs some of the rate is a warning.
//
// `thru test` refuses a host that fails a gate, so a false alarm would cost more than a miss.
package gate

import (
	"cmp"
	"slices"
	"time"

	"thru/internal/measure"
)

// Subject is what is judged.
type Subject struct {
	Ends    []End         // in order, the one that runs the command first
	Path    *measure.Path // between the first two, where it was probed
	NoPath  string        // why it was not, where there is one
	LinkBps int64         // rate that is wanted or stated; 0: none
	LinkL2  bool          // that rate counts frames without preamble and gap (see stat.Link)
	Streams int           // connections at a time that are planned; 0: not known
	UDP     bool          // datagrams are planned, and no TCP
}

// End is one host.
type End struct {
	Name   string            // "local", "host2"
	Facts  *measure.Facts    // nil: no agent is there; one gate says so
	Route  *measure.Route    // towards the other end; nil: whatever could carry the traffic is judged
	Costs  []Cost            // what earlier tests cost this host
	Shared bool              // all ends are this same machine: its facts are judged once
	Below  []measure.Beneath // what lies below it, by each hypervisor that knows it; none: nobody was asked
}

// Cost is what moving data cost a host in an earlier result.
type Cost struct {
	Sends      bool      // it sent; else it received
	Protocol   string    // "tcp" or "udp"
	IO         string    // data path, as in measure.Spec
	Bps        float64   // goodput
	Cores      float64   // CPUs used, less those of the idle host
	BusiestPct float64   // of the busiest CPU
	Streams    int       // connections at a time
	CPUModel   string    // of the host then
	At         time.Time // when that was; only carried
}

// JudgeBy is Judge by these rules.
func JudgeBy(s Subject, by []Rule) []measure.Gate { return Judge(s, by) }

// IsBelowBy is IsBelow by these rules.
func IsBelowBy(by []Rule, id string) bool {
	return slices.ContainsFunc(by, func(r Rule) bool { return r.ID == id && r.Below })
}

// Judge applies the rules to the subject: the worst gates first, then in the order of the rules.
func Judge(s Subject, by []Rule) []measure.Gate {
	sc := NewScene(s)
	gates := []measure.Gate{}
	for _, r := range by {
		gates = append(gates, r.judge(sc)...)
	}
	return Sort(gates)
}

// Sort puts the worst gates first, and leaves those of the same state in their order.
func Sort(gates []measure.Gate) []measure.Gate {
	slices.SortStableFunc(gates, func(a, b measure.Gate) int {
		return cmp.Compare(Rank(a.Status), Rank(b.Status))
	})
	return gates
}

// Rank orders the states of a gate for people: the worst first, and what is
// not known before what is well.
func Rank(status string) int {
	return slices.Index([]string{measure.GateFail, measure.GateWarn, measure.GateNotChecked, measure.GatePass}, status)
}
