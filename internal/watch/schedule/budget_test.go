package schedule

import (
	"fmt"
	"testing"
	"time"

	"thru/internal/fault"
	"thru/internal/watch/record"
)

// paths returns a mesh of n hosts at 10 Gb/s.
func paths(n int) []Path {
	var all []Path
	for i := range n {
		for j := range n {
			if i != j {
				from, to := fmt.Sprint("h", i), fmt.Sprint("h", j)
				all = append(all, Path{Pair: record.Pair{From: from, To: to}, RateBps: 10e9, Uses: []string{from, to}})
			}
		}
	}
	return all
}

func TestFit(t *testing.T) {
	wish := Wish{Paths: paths(2), ProbeEvery: time.Second, TrainPerDay: Auto, TCPPerDay: Auto, TCPTime: 4 * time.Second}
	for _, c := range []struct {
		name       string
		change     func(*Wish)
		train, tcp int  // turns a day
		over       bool // the budget is too small
	}{
		{"0.1% of 10 Gb/s is 108 GB a day: 21 turns of 5 GB, or 10 each way", func(*Wish) {}, 144, 10, false},
		{"no TCP", func(w *Wish) { w.TCPPerDay = 0 }, 144, 0, false},
		{"given turns within the budget", func(w *Wish) { w.TrainPerDay, w.TCPPerDay = 6, 8 }, 6, 8, false},
		{"given turns above the budget", func(w *Wish) { w.TCPPerDay = 11 }, 0, 0, true},
		{"a budget for less than one TCP turn", func(w *Wish) { w.BudgetBytes = 9e9 }, 0, 0, true},
		{"a budget for less than the probes", func(w *Wish) { w.BudgetBytes = 1e6; w.TrainPerDay, w.TCPPerDay = 0, 0 }, 0, 0, true},
		{"probes alone need no rate", func(w *Wish) {
			w.BudgetBytes = 1e9
			w.TrainPerDay, w.TCPPerDay = 0, 0
			w.Paths[0].RateBps = 0
		}, 0, 0, false},
		{"TCP needs a rate", func(w *Wish) { w.BudgetBytes = 1e9; w.Paths[0].RateBps = 0 }, 0, 0, true},
	} {
		w := wish
		w.Paths = paths(2)
		c.change(&w)
		tasks, needs, err := Fit(w)
		if c.over {
			if fault.Code(err) != fault.Usage || fault.Hint(err) == "" {
				t.Errorf("%s: %v, hint %q", c.name, err, fault.Hint(err))
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		got := map[record.Layer]int{}
		for _, k := range tasks {
			got[k.Layer] = k.PerDay
		}
		if got[record.Train] != c.train || got[record.TCP] != c.tcp {
			t.Errorf("%s: %v turns a day, want %d trains and %d of TCP", c.name, got, c.train, c.tcp)
		}
		for _, n := range needs {
			if n.Bytes > n.Budget || n.Bytes == 0 {
				t.Errorf("%s: %+v", c.name, n)
			}
		}
		if _, err := New(tasks, 1); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
