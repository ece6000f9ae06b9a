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
	for _, c := range []struct {
		name   string
		change func(*Wish)
		tcp    int  // turns a day of each direction
		over   bool // the budget is too small, or the rate is missing
	}{
		{"0.1% of 10 Gb/s is 108 GB a day: 21 turns of 5 GB, less 6 for an explanation, or 7 each way", func(*Wish) {}, 7, false},
		{"no TCP", func(w *Wish) { w.TCPPerDay = 0 }, 0, false},
		{"given turns within the budget", func(w *Wish) { w.TCPPerDay = 10 }, 10, false},
		{"given turns above the budget", func(w *Wish) { w.TCPPerDay = 11 }, 0, true},
		{"a budget for one turn each way, and no explanation", func(w *Wish) { w.BudgetBytes = 11e9 }, 1, false},
		{"a budget for less than that", func(w *Wish) { w.BudgetBytes = 9e9 }, 0, true},
		{"a budget for less than the probes", func(w *Wish) { w.BudgetBytes, w.TCPPerDay = 1e6, 0 }, 0, true},
		{"probes alone need no rate", func(w *Wish) { w.TCPPerDay, w.Paths[0].RateBps = 0, 0 }, 0, false},
		{"TCP needs a rate", func(w *Wish) { w.BudgetBytes, w.Paths[0].RateBps = 1e9, 0 }, 0, true},
	} {
		w := Wish{Paths: paths(2), ProbeEvery: time.Second, TCPPerDay: Auto, TCPTime: 4 * time.Second}
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
		for _, k := range tasks {
			if k.PerDay != c.tcp {
				t.Errorf("%s: %d turns a day, want %d", c.name, k.PerDay, c.tcp)
			}
		}
		if (len(tasks) > 0) != (c.tcp > 0) {
			t.Errorf("%s: %d tasks", c.name, len(tasks))
		}
		for _, n := range needs {
			if n.Budget > 0 && n.Bytes > n.Budget || n.Bytes == 0 && w.ProbeEvery > 0 {
				t.Errorf("%s: %+v", c.name, n)
			}
		}
		if _, err := New(tasks, 1); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
