package schedule

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"thru/internal/watch/record"
)

var midnight = time.Date(2026, 3, 9, 0, 0, 0, 0, time.UTC)

// fleet returns TCP tasks of n hosts, each with the given number of pairs.
func fleet(n, pairs, perDay int) []Task {
	var all []Task
	for i := range n {
		for j := 1; j <= pairs; j++ {
			from, to := fmt.Sprint("h", i), fmt.Sprint("h", (i+j)%n)
			all = append(all, Task{Pair: record.Pair{From: from, To: to}, Layer: record.TCP, PerDay: perDay, Takes: 8 * time.Second, Uses: []string{from, to}})
		}
	}
	return all
}

// overlaps returns a pair of turns that use the same thing at once, or "".
func overlaps(table *Table, turns []Turn) string {
	until := map[string]time.Time{}
	for _, turn := range turns {
		k := table.Tasks[turn.Task]
		for _, used := range k.Uses {
			if turn.Begin.Before(until[used]) {
				return fmt.Sprintf("%s at %v, taken until %v", used, turn.Begin, until[used])
			}
			until[used] = turn.Begin.Add(k.Takes)
		}
	}
	return ""
}

func TestNothingIsUsedTwice(t *testing.T) {
	tasks := fleet(40, 4, 24)
	for i := range tasks {
		if i%3 == 0 {
			tasks[i].Uses = append(tasks[i].Uses, "wan") // a declared segment
		}
		if i%7 == 0 {
			tasks[i].Hours = []Hours{{22 * time.Hour, 6 * time.Hour}}
			tasks[i].PerDay = 4
		}
	}
	table, err := New(tasks, 1)
	if err != nil {
		t.Fatal(err)
	}
	turns := table.Due(midnight, midnight.Add(72*time.Hour)) // past midnight too
	if s := overlaps(table, turns); s != "" {
		t.Error(s)
	}
	want := 0
	for _, k := range tasks {
		want += 3 * k.PerDay
	}
	if len(turns) < want-len(tasks) || len(turns) > want+len(tasks) { // jitter moves turns over the ends
		t.Errorf("%d turns in three days, want %d", len(turns), want)
	}
	for _, turn := range turns {
		if k := table.Tasks[turn.Task]; k.Hours != nil && turn.Begin.Hour() >= 6 && turn.Begin.Hour() < 22 {
			t.Errorf("%s -> %s at %v, outside its hours", k.From, k.To, turn.Begin)
		}
	}
}

func TestDueIsTheSameInParts(t *testing.T) {
	table, err := New(fleet(10, 3, 48), 5)
	if err != nil {
		t.Fatal(err)
	}
	whole := table.Due(midnight, midnight.Add(30*time.Hour))
	var parts []Turn
	for at := midnight; at.Before(midnight.Add(30 * time.Hour)); at = at.Add(7 * time.Minute) {
		parts = append(parts, table.Due(at, earlier(at.Add(7*time.Minute), midnight.Add(30*time.Hour)))...)
	}
	if !slices.Equal(whole, parts) {
		t.Errorf("%d turns at once, %d in parts", len(whole), len(parts))
	}
	other, err := New(fleet(10, 3, 48), 5)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(whole, other.Due(midnight, midnight.Add(30*time.Hour))) {
		t.Error("the same tasks and seed give another table")
	}
	seeded, err := New(fleet(10, 3, 48), 6)
	if err != nil {
		t.Fatal(err)
	}
	if slices.Equal(whole, seeded.Due(midnight, midnight.Add(30*time.Hour))) {
		t.Error("another seed gives the same table")
	}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// TestLargeFleet has 500 hosts with 2,000 TCP pairs a day.
func TestLargeFleet(t *testing.T) {
	table, err := New(fleet(500, 4, 1), 1)
	if err != nil {
		t.Fatal(err)
	}
	turns := table.Due(midnight, midnight.Add(day))
	var hours [24]int
	for _, turn := range turns {
		hours[turn.Begin.Hour()]++
	}
	if low, high := slices.Min(hours[:]), slices.Max(hours[:]); low < 50 || high > 125 {
		t.Errorf("2,000 turns are %d to %d an hour, want about 83", low, high)
	}
}

func TestDoesNotFit(t *testing.T) {
	tasks := fleet(2, 1, 2)
	tasks[0].Hours = []Hours{{time.Hour, time.Hour + 30*time.Second}}
	if _, err := New(tasks, 1); err == nil {
		t.Error("two turns of 8 s and 10 s of jitter fit in 30 s")
	}
	for _, bad := range []Task{{PerDay: 0, Takes: time.Second}, {PerDay: 1, Takes: 30 * time.Hour}} {
		if _, err := New([]Task{bad}, 1); err == nil {
			t.Errorf("%+v is placed", bad)
		}
	}
}

func BenchmarkLargeFleet(b *testing.B) {
	tasks := fleet(500, 4, 1)
	for b.Loop() {
		if _, err := New(tasks, 1); err != nil {
			b.Fatal(err)
		}
	}
}
