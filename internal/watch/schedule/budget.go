package schedule

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/unit"
	"thru/internal/watch/record"
)

const (
	// ProbeBytes is what a probe and its reply put on the path, with the headers below them.
	ProbeBytes = 2 * 112

	// defaultShare is the budget of a link without one of its own, relative to what it carries in a day.
	defaultShare = 0.001

	// mostTCP bounds the TCP turns a day that the plan leaves to the budget.
	mostTCP = 24

	// explainTurns is what an explanation puts on the path, in TCP turns: nine in ten take 20 s.
	explainTurns = 6
)

// Path is a pair to be watched.
type Path struct {
	record.Pair
	RateBps int64    // of its slowest link; 0: not known
	Uses    []string // hosts, links and segments that a turn uses alone; each has a budget
}

// Probed reports whether probes measure the path. Nobody dials this machine, so that only it probes itself; its own probes measure the round trip.
func (p Path) Probed() bool { return p.To != measure.Local || p.From == measure.Local }

// Wish is what a plan asks of a watch.
type Wish struct {
	Paths       []Path
	ProbeEvery  time.Duration // between two packets of a pair; 0: no probes
	TCPPerDay   int           // turns a day; Auto: what the budget allows beside one explanation; 0: none
	TCPTime     time.Duration // how long a TCP turn sends, with its ramp
	BudgetBytes int64         // a day, of each thing used; 0: 0.1% of what its links carry
	Hours       []Hours       // of TCP turns
}

// Auto leaves the turns a day to the budget.
const Auto = -1

// setUp is how long a turn holds its hosts beside its traffic.
const setUp = 5 * time.Second

// Need is what a watch puts on one host, link or segment a day, and what it may; a Budget of 0 is none, since no rate is known.
type Need struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes_a_day"`
	Budget int64  `json:"budget_bytes_a_day,omitempty"`
}

// Fit returns the tasks of a wish, and what they need of each thing used, by name. It fails if the budget is too small, and says what fits.
func Fit(w Wish) ([]Task, []Need, error) {
	if i := slices.IndexFunc(w.Paths, func(p Path) bool { return p.RateBps == 0 }); i >= 0 && w.TCPPerDay != 0 {
		return nil, nil, fault.Usagef("give --link-rate, or link_rate in the plan; or no TCP tests: --tcp 0", "schedule: the link rate of %s -> %s is not known, so the bytes of a TCP test are not", w.Paths[i].From, w.Paths[i].To)
	}
	if w.TCPPerDay == Auto {
		w.TCPPerDay = w.auto()
	}
	needs := w.needs(0)
	if err := within(needs); err != nil {
		return nil, nil, err
	}
	return w.tasks(), needs, nil
}

// auto returns the most turns a day that leave room for an explanation; where not even one does, one without it.
func (w Wish) auto() int {
	for w.TCPPerDay = mostTCP; w.TCPPerDay > 1; w.TCPPerDay-- {
		if within(w.needs(explainTurns)) == nil {
			break
		}
	}
	return w.TCPPerDay
}

// needs returns the bytes a day of everything used, by name, with so many TCP turns more.
func (w Wish) needs(more int) []Need {
	all, rest := map[string]*Need{}, map[string]int64{}
	for _, p := range w.Paths {
		bytes := int64(w.TCPPerDay) * w.tcpBytes(p)
		if w.ProbeEvery > 0 && p.Probed() {
			bytes += int64(day/w.ProbeEvery) * ProbeBytes
		}
		for _, name := range p.Uses {
			n := all[name]
			if n == nil {
				n = &Need{Name: name, Budget: w.BudgetBytes}
				all[name] = n
			}
			n.Bytes += bytes
			rest[name] = max(rest[name], int64(more)*w.tcpBytes(p))
			if w.BudgetBytes == 0 {
				n.Budget = max(n.Budget, int64(defaultShare*float64(p.RateBps)/8*day.Seconds()))
			}
		}
	}
	var list []Need
	for _, name := range slices.Sorted(maps.Keys(all)) {
		all[name].Bytes += rest[name]
		list = append(list, *all[name])
	}
	return list
}

// tcpBytes returns what a TCP turn puts on a path at most.
func (w Wish) tcpBytes(p Path) int64 { return int64(float64(p.RateBps) / 8 * w.TCPTime.Seconds()) }

// ExplainBytes returns what an explanation puts on a path.
func (w Wish) ExplainBytes(p Path) int64 { return explainTurns * w.tcpBytes(p) }

// within returns an error for the need that exceeds its budget most.
func within(needs []Need) error {
	share := func(n Need) float64 { return float64(n.Bytes) / float64(n.Budget) }
	worst := Need{Budget: 1}
	for _, n := range needs {
		if n.Budget > 0 && share(n) > share(worst) {
			worst = n
		}
	}
	if worst.Bytes <= worst.Budget {
		return nil
	}
	return fault.Usagef(fmt.Sprintf("a budget of %s a day, or at most %.0f%% of the TCP tests or pairs at %s", unit.Size(worst.Bytes), math.Floor(100*float64(worst.Budget)/float64(worst.Bytes)), worst.Name),
		"schedule: the watch needs %s a day at %s, and its budget is %s", unit.Size(worst.Bytes), worst.Name, unit.Size(worst.Budget))
}

// tasks returns the turns that hold something.
func (w Wish) tasks() []Task {
	if w.TCPPerDay == 0 {
		return nil
	}
	return unit.Mapped(w.Paths, func(p Path) Task {
		return Task{Pair: p.Pair, Layer: record.TCP, PerDay: w.TCPPerDay, Takes: w.TCPTime + setUp, Uses: p.Uses, Bytes: w.tcpBytes(p), Hours: w.Hours}
	})
}
