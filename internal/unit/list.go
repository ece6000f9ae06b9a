package unit

import (
	"fmt"
	"strconv"
	"strings"
)

// ParseList reads the numbers of a list such as "0-3,8,10-11", as the kernel writes CPUs (cpuset(7), formats; lib/vsprintf.c, bitmap_list_string): sorted and
// without duplicates. It refuses any other list, an empty one, and a number above most.
func ParseList(s string, most int) ([]int, error) {
	s = strings.TrimSpace(s)
	if s == "" {
		return nil, fmt.Errorf("the list of CPUs is empty")
	}
	var numbers []int
	next := uint64(0)
	for part := range strings.SplitSeq(s, ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		a, err1 := strconv.ParseUint(first, 10, 32)
		b, err2 := strconv.ParseUint(last, 10, 32)
		if err1 != nil || err2 != nil || a < next || b < a || b > uint64(max(most, 0)) {
			return nil, fmt.Errorf("%.80q is not a list of CPUs", s)
		}
		for n := a; n <= b; n++ {
			numbers = append(numbers, int(n))
		}
		next = b + 1
	}
	return numbers, nil
}

// MaxCPU limits the numbers of CPUs: no kernel is built for more than some thousands.
const MaxCPU = 1<<16 - 1
