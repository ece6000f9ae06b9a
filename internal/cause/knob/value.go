package knob

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Same tells whether two values are the same, whatever is between their words.
func Same(a, b string) bool { return slices.Equal(strings.Fields(a), strings.Fields(b)) }

// Greatest is the last number of a value: of "4096 131072 6291456" the most that
// is allowed. 0 where there is none.
func Greatest(value string) int64 {
	fields := strings.Fields(value)
	if len(fields) == 0 {
		return 0
	}
	n, err := strconv.ParseInt(fields[len(fields)-1], 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// Mask of CPUs as /sys has it, in values of RPS and XPS: groups of 32 in
// hexadecimal, the highest first, without zeros in front. No number is negative.
func Mask(cpus []int) string {
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
