package schedule

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"thru/internal/fault"
	"thru/internal/unit"
	"thru/internal/watch/record"
)

// The costs of turns that do not depend on the link.
const (
	// ProbeBytes is what a probe and its reply put on the path, with the headers below them.
	ProbeBytes = 2 * 112

	// TrainBytes is what the trains of one turn put on the path: 10 of 128 full packets, and their reports.
	TrainBytes = 10*128*1538 + 40_000

	// defaultShare is the budget of a link without one of its own, relative to what it carries in a day.
	defaultShare = 0.001

	// Turns a day of a layer that the plan leaves to the budget.
	mostTrains = 144
	mostTCP    = 24
)

// Path is a pair to be watched.
type Path struct {
	record.Pair
	RateBps int64    // of its slowest link; 0: not known
	Uses    []string // hosts, links and segments that a turn uses alone; each has a budget
}

// Wish is what a plan asks of a watch.
type Wish struct {
	Paths       []Path
	ProbeEvery  time.Duration // between two packets of a pair; 0: no probes
	TrainPerDay int           // turns a day; Auto: what the budget allows; 0: none
	TCPPerDay   int           // the same
	TCPTime     time.Duration // how long a TCP turn sends, with its ramp
	BudgetBytes int64         // a day, of each thing used; 0: 0.1% of what its links carry
	Hours       []Hours       // of trains and TCP
}

// Auto leaves the turns a day to the budget.
const Auto = -1

// setUp is how long a turn holds its hosts beside its traffic.
const setUp = 3 * time.Second

// Need is what a watch puts on one host, link or segment a day, and what it may.
type Need struct {
	Name          string
	Bytes, Budget int64
}

// Fit returns the tasks of a wish, and what they need of each thing used, by name. It fails if the budget is too small, and says what fits.
func Fit(w Wish) ([]Task, []Need, error) {
	for _, p := range w.Paths {
		if p.RateBps == 0 && (w.BudgetBytes == 0 || w.TCPPerDay != 0) {
			return nil, nil, fault.Usagef("give link_rate, or the budget and no TCP turns", "schedule: the link rate of %s -> %s is not known, so the bytes of its turns are not", p.From, p.To)
		}
	}
	fixed := w
	fixed.TrainPerDay, fixed.TCPPerDay = max(w.TrainPerDay, 0), max(w.TCPPerDay, 0)
	if err := within(fixed.needs()); err != nil {
		return nil, nil, err
	}
	// Trains first: they cost least for what they tell.
	for _, auto := range []struct {
		asked int
		set   *int
		most  int
		layer record.Layer
	}{{w.TrainPerDay, &fixed.TrainPerDay, mostTrains, record.Train}, {w.TCPPerDay, &fixed.TCPPerDay, mostTCP, record.TCP}} {
		if auto.asked != Auto {
			continue
		}
		for *auto.set = auto.most; *auto.set > 0 && within(fixed.needs()) != nil; *auto.set-- {
		}
		if *auto.set == 0 {
			*auto.set = 1
			return nil, nil, fmt.Errorf("schedule: one turn of %s a day for each pair: %w", auto.layer, within(fixed.needs()))
		}
	}
	return fixed.tasks(), fixed.needs(), nil
}

// needs returns the bytes a day of everything used, by name.
func (w Wish) needs() []Need {
	all := map[string]*Need{}
	for _, p := range w.Paths {
		var bytes int64
		if w.ProbeEvery > 0 {
			bytes = int64(day/w.ProbeEvery) * ProbeBytes
		}
		bytes += int64(w.TrainPerDay)*TrainBytes + int64(w.TCPPerDay)*w.tcpBytes(p)
		for _, name := range p.Uses {
			n := all[name]
			if n == nil {
				n = &Need{Name: name, Budget: w.BudgetBytes}
				all[name] = n
			}
			n.Bytes += bytes
			if w.BudgetBytes == 0 {
				n.Budget = max(n.Budget, int64(defaultShare*float64(p.RateBps)/8*day.Seconds()))
			}
		}
	}
	var list []Need
	for _, name := range slices.Sorted(maps.Keys(all)) {
		list = append(list, *all[name])
	}
	return list
}

// tcpBytes returns what a TCP turn puts on a path at most.
func (w Wish) tcpBytes(p Path) int64 { return int64(float64(p.RateBps) / 8 * w.TCPTime.Seconds()) }

// within returns an error for the need that exceeds its budget most.
func within(needs []Need) error {
	share := func(n Need) float64 { return float64(n.Bytes) / float64(n.Budget) }
	worst := Need{Budget: 1}
	for _, n := range needs {
		if share(n) > share(worst) {
			worst = n
		}
	}
	if worst.Bytes <= worst.Budget {
		return nil
	}
	return fault.Usagef(fmt.Sprintf("a budget of %s a day, or %.2g of the turns or pairs of %s", unit.Size(worst.Bytes), float64(worst.Budget)/float64(worst.Bytes), worst.Name),
		"schedule: the watch needs %s a day at %s, and its budget is %s", unit.Size(worst.Bytes), worst.Name, unit.Size(worst.Budget))
}

// tasks returns the turns that hold something.
func (w Wish) tasks() []Task {
	var all []Task
	for _, p := range w.Paths {
		add := func(layer record.Layer, perDay int, takes time.Duration, bytes int64) {
			if perDay > 0 {
				all = append(all, Task{Pair: p.Pair, Layer: layer, PerDay: perDay, Takes: takes + setUp, Uses: p.Uses, Bytes: bytes, Hours: w.Hours})
			}
		}
		add(record.Train, w.TrainPerDay, time.Second, TrainBytes)
		add(record.TCP, w.TCPPerDay, w.TCPTime, w.tcpBytes(p))
	}
	return all
}
