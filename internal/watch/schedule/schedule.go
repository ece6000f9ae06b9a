// Package schedule says when each turn of a watch begins. It is computed once for the whole fleet, from the tasks and a seed alone: every part of
// the fleet that knows both knows all turns, and nobody has to agree with anybody.
//
// The table is one day (UTC) that repeats. A turn holds what it uses, such as hosts, links and declared segments, for its time and its
// jitter, also past midnight: nothing is used twice at a time. A turn that was missed is not caught up: the next one comes at its own time.
// Probes disturb nobody: their senders spread them by themselves.
package schedule

import (
	"cmp"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"time"

	"thru/internal/fault"
	"thru/internal/watch/record"
)

const (
	day = 24 * time.Hour

	// slot is the grain of the table: a turn holds whole slots.
	slot = time.Second

	// slots is the number of slots of a day.
	slots = int(day / slot)

	// jitterShare bounds the jitter, relative to the time between two turns. Jitter keeps turns off the beat of other periodic work, such as cron's.
	jitterShare = 0.05

	// longestJitter bounds the jitter of seldom turns, since a turn holds what it uses for its jitter too.
	longestJitter = 10 * time.Second
)

// Task is one layer of a pair, measured again and again.
type Task struct {
	record.Pair
	Layer  record.Layer
	PerDay int           // turns a day, evenly spread over the hours in which it may run
	Takes  time.Duration // how long a turn holds what it uses, with its preparation
	Uses   []string      // hosts, links and segments that no other turn may use meanwhile
	Bytes  int64         // what a turn puts on the path, both ways
	Hours  []Hours       // when it may run; empty: always
}

// Hours is a part of the day (UTC), from From until To. If To is not later than From, it ends on the next day.
type Hours struct{ From, To time.Duration }

// Turn is one turn of a task.
type Turn struct {
	Task  int // index into Table.Tasks
	Begin time.Time
}

// Table is the day of a fleet.
type Table struct {
	Tasks []Task
	seed  uint64
	day   []entry // by slot
}

// entry is a turn of the table: its first slot, and the index of its task.
type entry struct{ slot, task int32 }

// New places the turns of all tasks. It fails with a hint if a task does not fit beside the others.
func New(tasks []Task, seed uint64) (*Table, error) {
	t := &Table{Tasks: tasks, seed: seed}
	held := map[string]*calendar{}
	for _, i := range order(tasks) {
		k := tasks[i]
		if k.PerDay < 1 || k.length() > slots {
			return nil, fault.Usagef("a turn takes less than a day, and there is at least one a day", "schedule: %s of %s -> %s: %d turns a day of %v", k.Layer, k.From, k.To, k.PerDay, k.Takes)
		}
		at := t.place(k, held)
		if at == nil {
			return nil, fault.Usagef("fewer turns a day, shorter turns, fewer pairs of one host, or more hours",
				"schedule: %s of %s -> %s: %d turns a day of %v do not fit beside the other turns of its hosts", k.Layer, k.From, k.To, k.PerDay, k.Takes)
		}
		for _, s := range at {
			t.day = append(t.day, entry{int32(s), int32(i)})
		}
	}
	slices.SortFunc(t.day, func(a, b entry) int { return cmp.Or(cmp.Compare(a.slot, b.slot), cmp.Compare(a.task, b.task)) })
	return t, nil
}

// order lists the tasks as they are placed: those that fill most of their hours first, since they fit in fewest places.
func order(tasks []Task) []int {
	fill := make([]float64, len(tasks))
	all := make([]int, len(tasks))
	for i, k := range tasks {
		all[i] = i
		fill[i] = float64(k.PerDay*k.length()) / float64(slots-k.closed().count())
	}
	slices.SortStableFunc(all, func(a, b int) int { return cmp.Compare(fill[b], fill[a]) })
	return all
}

// length returns the slots that a turn holds, with its jitter.
func (k Task) length() int { return int((k.Takes + k.jitter() + slot - 1) / slot) }

// jitter returns how much later than its slot a turn may begin.
func (k Task) jitter() time.Duration {
	return min(time.Duration(jitterShare*float64(day)/float64(max(k.PerDay, 1))), longestJitter)
}

// closed returns the slots in which the task may not run; nil: none.
func (k Task) closed() *calendar {
	if len(k.Hours) == 0 {
		return nil
	}
	var open calendar
	for _, h := range k.Hours {
		from, to := int(h.From/slot), int(h.To/slot)
		if to <= from {
			to += slots
		}
		open.take(from, to-from)
	}
	for i := range open {
		open[i] = ^open[i]
	}
	return &open
}

// place finds and takes slots for the turns of a task: evenly apart within its hours, from a start that the seed and its names give. A turn that is in
// the way of another moves to the next free place. It returns nil if there is none.
func (t *Table) place(k Task, held map[string]*calendar) []int {
	closed := k.closed()
	used := []*calendar{closed}
	for _, name := range k.Uses {
		if held[name] == nil {
			held[name] = new(calendar)
		}
		used = append(used, held[name])
	}
	open := slots - closed.count()
	begin := t.draw(k, 0)
	var at []int
	for turn := range k.PerDay {
		even := closed.nthFree(int((begin+float64(turn)/float64(k.PerDay))*float64(open)) % max(open, 1))
		s, ok := free(used, even, k.length())
		if !ok {
			return nil
		}
		for _, c := range used[1:] {
			c.take(s, k.length())
		}
		at = append(at, s)
	}
	return at
}

// free returns the first slot, from the given one on, at which length slots are free in all calendars.
func free(used []*calendar, from, length int) (int, bool) {
	for tried := 0; tried < slots; {
		s, step := (from+tried)%slots, 0
		for _, c := range used {
			step = max(step, c.blocked(s, length))
		}
		if step == 0 {
			return s, true
		}
		tried += step
	}
	return 0, false
}

// draw returns a number of [0, 1) that belongs to a task and n.
func (t *Table) draw(k Task, n int64) float64 {
	h := fnv.New64a()
	for _, s := range []string{k.From, k.To, string(k.Layer)} {
		h.Write(append([]byte(s), 0)) // a hash in memory never fails
	}
	return rand.New(rand.NewPCG(t.seed^h.Sum64(), uint64(n))).Float64()
}

// Due returns the turns that begin at or after from and before to, in order.
func (t *Table) Due(from, to time.Time) []Turn {
	var due []Turn
	for midnight := from.UTC().Add(-longestJitter).Truncate(day); midnight.Before(to); midnight = midnight.Add(day) {
		first := int32(max(from.Add(-longestJitter).Sub(midnight), 0) / slot)
		i, _ := slices.BinarySearchFunc(t.day, first, func(e entry, s int32) int { return cmp.Compare(e.slot, s) })
		for _, e := range t.day[i:] {
			slotted := midnight.Add(time.Duration(e.slot) * slot)
			if !slotted.Before(to) {
				break
			}
			k := t.Tasks[e.task]
			begin := slotted.Add(time.Duration(t.draw(k, slotted.Unix()) * float64(k.jitter())))
			if !begin.Before(from) && begin.Before(to) {
				due = append(due, Turn{int(e.task), begin})
			}
		}
	}
	slices.SortStableFunc(due, func(a, b Turn) int { return a.Begin.Compare(b.Begin) })
	return due
}
