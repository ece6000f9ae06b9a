package host

import (
	"errors"
	"fmt"
	"slices"

	"thru/internal/measure"
)

// describeCounters reads the packets and errors of each queue. Where the
// driver's own counters have no queues, it reads the kernel's.
func (u *subject) describeCounters() {
	c, err := ask(u, kernel.counters)
	if err == nil {
		u.out.Counters = queueCounters(c)
		for name, n := range driverErrors(c) {
			if u.out.Errors == nil {
				u.out.Errors = map[string]uint64{}
			}
			if _, taken := u.out.Errors[name]; !taken {
				u.out.Errors[name] = n
			}
		}
	}
	if len(u.out.Counters) == 0 && (err == nil || errors.Is(err, errUnknown)) {
		u.out.Counters, err = ask(u, func(k kernel, _ string) ([]measure.QueueCounter, error) { return k.queueStats(u.index) })
	}
	if err != nil {
		u.miss("queue_counters", err)
	}
	u.out.Counters = u.bounded(u.out.Counters)
}

// bounded limits the list to the first queues of each direction.
func (u *subject) bounded(all []measure.QueueCounter) []measure.QueueCounter {
	seen := map[string]int{}
	list := slices.DeleteFunc(all, func(c measure.QueueCounter) bool {
		seen[c.Queue[:2]]++
		return seen[c.Queue[:2]] > maxQueues
	})
	if n := max(seen["rx"], seen["tx"]); n > maxQueues {
		u.miss("queue_counters.*", fmt.Errorf("only the first %d of %d were read", maxQueues, n))
	}
	return list
}
