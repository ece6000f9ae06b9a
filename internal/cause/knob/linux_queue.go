package knob

import (
	"fmt"
	"strconv"
	"strings"
)

// linuxTable words the indirection table. ethtool sets it as a pattern, not entry by entry: queues in turn,
// starting from one.
func linuxTable(w *wording) {
	w.lasts = untilBoot
	show := "ethtool -x " + w.nic()
	command := func(value string) string {
		first, count, ok := inTurns(value)
		switch {
		case !ok:
			return ""
		case first > 0:
			return fmt.Sprintf("ethtool -X %s start %d equal %d", w.nic(), first, count)
		}
		return fmt.Sprintf("ethtool -X %s equal %d", w.nic(), count)
	}
	set, undo := command(w.set.Value), command(w.before)
	if set == "" {
		w.add("ethtool cannot set single entries of this table: `ethtool -X " + w.nic() + " weight ...` comes close")
		w.verify(show)
		return
	}
	if undo == "" {
		undo = fmt.Sprintf("ethtool -X %s default", w.nic())
		w.add("the undo command sets the driver's default: ethtool cannot restore single entries of the earlier table (" + show + " shows it)")
	}
	w.do(set, undo, show)
}

// inTurns reports whether a table assigns its entries to count queues in turn.
func inTurns(table string) (first, count int, ok bool) {
	var queues []int
	for _, f := range strings.Fields(table) {
		q, err := strconv.Atoi(f)
		if err != nil || q < 0 {
			return 0, 0, false
		}
		queues = append(queues, q)
	}
	if len(queues) == 0 {
		return 0, 0, false
	}
	first, count = queues[0], 1
	for count < len(queues) && queues[count] == first+count {
		count++
	}
	for i, q := range queues {
		if q != first+i%count {
			return 0, 0, false
		}
	}
	return first, count, true
}

// linuxMasks words the CPUs of queues: "rx-0 3 rx-1 c".
func linuxMasks(file string) func(*wording) {
	return func(w *wording) {
		w.eachFile(func(p pair) string { return fmt.Sprintf("/sys/class/net/%s/queues/%s/%s", w.nic(), p.name, file) })
	}
}

// linuxInterrupts words the CPUs of interrupts: "24 0-1 25 2".
func linuxInterrupts(w *wording) {
	w.eachFile(func(p pair) string { return "/proc/irq/" + p.name + "/smp_affinity_list" })
	w.lasts += "; " + irqbalance
}

// eachFile words one kernel file for each pair that differs from before.
func (w *wording) eachFile(file func(pair) string) {
	w.lasts = untilBoot
	old := pairs(w.before)
	for _, p := range differing(w.set.Value, w.before) {
		before := named(old, p.name)
		if before == unknownValue {
			w.readFirst("cat " + file(p))
		}
		w.do("echo "+p.value+" > "+file(p), "echo "+before+" > "+file(p), "cat "+file(p))
	}
}

// linuxGovernor words the governor of all CPUs ("performance"), or of each
// ("cpu0 powersave cpu1 performance").
func linuxGovernor(w *wording) {
	w.lasts = untilBoot
	const all = "/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"
	show := "grep . " + all
	commands := func(value string) []string {
		if len(strings.Fields(value)) <= 1 {
			return []string{"echo " + w.word(value) + " | tee " + all}
		}
		var list []string
		for _, p := range pairs(value) {
			list = append(list, "echo "+p.value+" > /sys/devices/system/cpu/"+p.name+"/cpufreq/scaling_governor")
		}
		return list
	}
	w.out.Set, w.undo = commands(w.set.Value), commands(w.before)
	w.verify(show)
	if w.before == "" {
		w.readFirst(show)
	}
}
