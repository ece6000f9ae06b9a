package host

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

// maxCPU bounds the numbers of CPUs: no kernel is built for more than some thousands.
const maxCPU = 1<<16 - 1

// parseCPUList reads the CPUs of a list such as "0-3,8,10-11" (cpuset(7),
// formats). The kernel writes them in order (lib/vsprintf.c,
// bitmap_list_string); a list that is not is refused, and so is an empty one.
func parseCPUList(s string) ([]int, error) {
	s = strings.TrimSpace(s)
	if s == "" {
		return nil, fmt.Errorf("the list of CPUs is empty")
	}
	var cpus []int
	next := uint64(0)
	for part := range strings.SplitSeq(s, ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		a, err1 := strconv.ParseUint(first, 10, 32)
		b, err2 := strconv.ParseUint(last, 10, 32)
		if err1 != nil || err2 != nil || a < next || b < a || b > maxCPU {
			return nil, fmt.Errorf("%.80q is no list of CPUs", s)
		}
		for n := a; n <= b; n++ {
			cpus = append(cpus, int(n))
		}
		next = b + 1
	}
	return cpus, nil
}

// cpuList reads a file that holds a list of CPUs.
func (f FS) cpuList(name string) ([]int, error) {
	s, err := f.text(name)
	if err != nil {
		return nil, err
	}
	cpus, err := parseCPUList(s)
	if err != nil {
		return nil, fmt.Errorf("/%s: %w", name, err)
	}
	return cpus, nil
}

// parseCPUMask reads a set of CPUs such as "00000000,0000000f": hexadecimal,
// in groups of 8 digits, the highest first (lib/vsprintf.c, bitmap_string).
func parseCPUMask(s string) ([]int, error) {
	n, ok := new(big.Int).SetString(strings.ReplaceAll(s, ",", ""), 16)
	if !ok || n.Sign() < 0 || n.BitLen() > maxCPU {
		return nil, fmt.Errorf("%.80q is no mask of CPUs", s)
	}
	var cpus []int
	for cpu := range n.BitLen() {
		if n.Bit(cpu) == 1 {
			cpus = append(cpus, cpu)
		}
	}
	return cpus, nil
}
