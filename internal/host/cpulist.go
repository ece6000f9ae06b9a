package host

import (
	"fmt"
	"math/big"
	"strings"

	"thru/internal/unit"
)

// maxCPU is the greatest number that a CPU can have.
const maxCPU = unit.MaxCPU

// parseCPUList reads the CPUs of a list such as "0-3,8,10-11".
func parseCPUList(s string) ([]int, error) { return unit.ParseList(s, maxCPU) }

// cpuList reads a file with a list of CPUs.
func (f FS) cpuList(name string) ([]int, error) {
	s, err := f.Text(name)
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
		return nil, fmt.Errorf("%.80q is not a CPU mask", s)
	}
	var cpus []int
	for cpu := range n.BitLen() {
		if n.Bit(cpu) == 1 {
			cpus = append(cpus, cpu)
		}
	}
	return cpus, nil
}
