package advise

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"thru/internal/unit"
)

// pairs takes a value of names and values in turns apart ("rx-0 3 rx-1 3").
func pairs(value string) (names []string, values map[string]string) {
	fields := strings.Fields(value)
	values = map[string]string{}
	for i := 0; i+1 < len(fields); i += 2 {
		if _, twice := values[fields[i]]; !twice {
			names = append(names, fields[i])
		}
		values[fields[i]] = fields[i+1]
	}
	return names, values
}

// with replaces pairs of such a value, and leaves the others as they are; names
// that it lacks are added at its end.
func with(value string, change ...string) string {
	names, values := pairs(value)
	for i := 0; i+1 < len(change); i += 2 {
		if !slices.Contains(names, change[i]) {
			names = append(names, change[i])
		}
		values[change[i]] = change[i+1]
	}
	var out []string
	for _, name := range names {
		out = append(out, name, values[name])
	}
	return strings.Join(out, " ")
}

// same tells whether two values are the same, whatever is between their words.
func same(a, b string) bool { return slices.Equal(strings.Fields(a), strings.Fields(b)) }

// mask of CPUs as sysfs has it: groups of 32 in hexadecimal, the highest first,
// without zeros in front.
func mask(cpus []int) string {
	words := []uint32{0}
	for _, c := range cpus {
		for c/32 >= len(words) {
			words = append(words, 0)
		}
		words[c/32] |= 1 << (c % 32)
	}
	slices.Reverse(words)
	out := fmt.Sprintf("%x", words[0])
	for _, w := range words[1:] {
		out += fmt.Sprintf(",%08x", w)
	}
	return out
}

// maskOfList is the mask of a list as the kernel writes it ("0-3,8").
func maskOfList(list string) string { return mask(cpusOf(list)) }

// cpusOf reads such a list; what is no number of a CPU is left out.
func cpusOf(list string) (cpus []int) {
	for part := range strings.SplitSeq(list, ",") {
		from, to, span := strings.Cut(strings.TrimSpace(part), "-")
		if !span {
			to = from
		}
		a, errA := strconv.Atoi(from)
		b, errB := strconv.Atoi(to)
		if errA != nil || errB != nil || a < 0 || b < a || b >= 4096 {
			continue
		}
		for c := a; c <= b; c++ {
			cpus = append(cpus, c)
		}
	}
	return cpus
}

// cpuList writes it.
func cpuList(cpus []int) string { return unit.List(sound(cpus)) }

// roundUp to a multiple, so that a value is one that a person would choose.
func roundUp(n, step int64) int64 { return (n + step - 1) / step * step }
