package diagnose

import (
	"thru/internal/measure"
	"thru/internal/stat"
)

// CrowdedEnd returns an end whose host was kept busy by other work; nil if there is none.
func (f *Flow) CrowdedEnd() *End {
	for _, e := range f.Ends() {
		if stat.IdleBusy(e.Seen) >= stat.MostOtherWork {
			return e
		}
	}
	return nil
}

// StealOf returns the percentage of time that the hypervisor took from a CPU.
func StealOf(cpus []measure.CPU) (float64, bool) {
	if len(cpus) == 0 {
		return 0, false
	}
	sum := 0.0
	for _, c := range cpus {
		sum += max(0, min(100, c.Steal))
	}
	return sum / float64(len(cpus)), true
}
