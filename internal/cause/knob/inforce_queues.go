package knob

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"

	"thru/internal/measure"
	"thru/internal/unit"
)

// queuesShown is the evidence for several queue knobs.
func queuesShown() shown { return shown{"counters of the queues", check.queues} }

// worthwhileShare is the part of all packets or interrupts from which a queue or a CPU counts as used.
const worthwhileShare = 0.05

// queues reports whether more queues carry the traffic than could before: up to that number, how many do in one
// run is chance.
func (c check) queues() (*bool, string) {
	e := c.with.at(c.EndPoint)
	was, now := queuesUsed(c.before.at(c.EndPoint)), queuesUsed(e)
	if now == 0 || was == 0 {
		return nil, "the driver does not count packets per queue"
	}
	return moreThan(c.queuesBefore(directionOf(e)), was, now, "queues in use")
}

// moreThan reports whether a number of queues or CPUs shows that their bound, 0 if not known, was raised.
func moreThan(bound, was, now int, what string) (*bool, string) {
	fact := fmt.Sprintf("%s: %d, %d before", what, now, was)
	switch {
	case bound <= 0:
		return nil, fact + ", and how many were possible is not known"
	case was <= bound && now > bound:
		return new(true), fact
	}
	return nil, fact + ": the streams may need no more"
}

// queuesBefore returns how many queues could carry traffic of a direction ("rx", "tx") between two hosts under the
// value before; 0 is not known.
func (c check) queuesBefore(direction string) (n int) {
	fields := strings.Fields(c.was)
	switch c.Knob {
	case Channels:
		for i := 0; i+1 < len(fields); i += 2 {
			if count, err := strconv.Atoi(fields[i+1]); err == nil && (fields[i] == "combined" || fields[i] == direction) {
				n += max(count, 0)
			}
		}
	case RSSTable:
		queues := map[string]bool{}
		for _, f := range fields {
			queues[f] = true
		}
		n = len(queues)
	case RSSHash:
		// Without ports (ethtool's f and n) all flows of two hosts hash to one queue.
		for i := 0; i+1 < len(fields); i += 2 {
			if !strings.HasPrefix(fields[i], c.with.cell.Protocol) {
				continue
			}
			if strings.ContainsAny(fields[i+1], "fn") {
				return 0
			}
			n = 1
		}
	}
	return n
}

// directionOf returns the direction of an end's data through its interface, as drivers name it.
func directionOf(e *measure.Evidence) string {
	if e != nil && e.Sends {
		return "tx"
	}
	return "rx"
}

// queuesUsed counts the queues of an end's interface that carried a relevant part of the traffic, in the busier
// direction.
func queuesUsed(e *measure.Evidence) int {
	if e == nil || e.Host == nil || e.Host.NIC == nil {
		return 0
	}
	var counts []float64
	for name, n := range e.Host.NIC.Driver {
		name = strings.ToLower(name)
		packets := strings.Contains(name, "packets") || strings.Contains(name, "pkts") || strings.HasSuffix(name, "cnt")
		if packets && strings.Contains(name, directionOf(e)) && strings.ContainsAny(name, "0123456789") && !strings.Contains(name, "xdp") {
			counts = append(counts, float64(n))
		}
	}
	return takingPart(counts)
}

// takingPart counts the values that are a relevant part of the sum.
func takingPart(counts []float64) (n int) {
	total := 0.0
	for _, x := range counts {
		total += x
	}
	for _, x := range counts {
		if total > 0 && x >= worthwhileShare*total {
			n++
		}
	}
	return n
}

// spread reports whether more CPUs handle the packets than could before.
func (c check) spread() (*bool, string) {
	cpus := func(e *measure.Evidence) int {
		if e == nil || e.Host == nil {
			return 0
		}
		var packets []float64
		for _, s := range e.Host.Softnet {
			packets = append(packets, float64(s.Processed))
		}
		return takingPart(packets)
	}
	was, now := cpus(c.before.at(c.EndPoint)), cpus(c.with.at(c.EndPoint))
	if was == 0 || now == 0 {
		return nil, "the host does not count packets per CPU"
	}
	return moreThan(cpusOfMasks(c.was), was, now, "CPUs in use")
}

// cpusOfMasks returns how many CPUs can handle the queues' packets under a value ("rx-0 3 rx-1 0"): with an empty
// mask, the CPU that handles the interrupt.
func cpusOfMasks(value string) (n int) {
	fields := strings.Fields(value)
	for i := 1; i < len(fields); i += 2 {
		count := 0
		for word := range strings.SplitSeq(fields[i], ",") {
			x, err := strconv.ParseUint(word, 16, 64)
			if err != nil {
				return 0
			}
			count += bits.OnesCount64(x)
		}
		n += max(count, 1)
	}
	return n
}

// interrupts reports whether the interface interrupts the configured CPUs. A value may name only some of its
// interrupts; the others stay where they were. The counters do not separate them, so only a CPU that none of them
// could use before shows that they have moved.
func (c check) interrupts() (*bool, string) {
	e := c.with.at(c.EndPoint)
	if e == nil || e.Host == nil || len(e.Host.IRQs) == 0 || e.Host.NIC == nil || e.Host.NIC.Name != c.Interface {
		return nil, "the interrupts of that interface were not counted"
	}
	if c.was == "" {
		return nil, "the CPUs of its interrupts before are not known"
	}
	before, allowed := cpusOfInterrupts(c.was), cpusOfInterrupts(c.was, c.Value)
	if before == nil || allowed == nil {
		return nil, "the CPUs in its value cannot be parsed"
	}
	there, moved, all := 0.0, 0.0, 0.0
	for _, s := range e.Host.IRQs {
		n := float64(s.Count)
		all += n
		if allowed[s.Core] {
			there += n
		}
		if allowed[s.Core] && !before[s.Core] {
			moved += n
		}
	}
	if all <= 0 {
		return nil, "there were no interrupts"
	}
	share := 100 * there / all
	fact := unit.Percent(share) + " of the interrupts on the set CPUs"
	switch {
	case share < fullPct:
		return new(false), fact
	case moved >= worthwhileShare*all:
		return new(true), fact
	}
	return nil, fact + ", which may be the same as before"
}

// cpusOfInterrupts returns the CPUs that some interrupt may use under values of the form "24 0-1 25 2", of which a
// later one counts; nil if one cannot be parsed.
func cpusOfInterrupts(values ...string) map[int]bool {
	lists := map[string]string{}
	for _, v := range values {
		fields := strings.Fields(v)
		for i := 0; i+1 < len(fields); i += 2 {
			lists[fields[i]] = fields[i+1]
		}
	}
	allowed := map[int]bool{}
	for _, list := range lists {
		cpus, err := unit.ParseList(list, mostCPUs)
		if err != nil {
			return nil
		}
		for _, n := range cpus {
			allowed[n] = true
		}
	}
	return allowed
}

// mostCPUs limits the numbers of CPUs in a value.
const mostCPUs = 8192
