package result

import (
	"testing"

	"thru/internal/measure"
)

// TestWhoseCPU: the text of a busy host names the origin of the load.
func TestWhoseCPU(t *testing.T) {
	for want, f := range map[string]measure.CPUFigure{
		"host 99.3% busy, nearly all by other processes (1.97 cores), busiest core 1: 99.6%":        {Pct: 99.3, Cores: 0, MaxCore: 1, MaxCorePct: 99.6, OtherCores: new(1.97)},
		"host 90% busy, mostly by other processes (1.10 cores; the test 0.70), busiest core 0: 90%": {Pct: 90, Cores: 0.7, MaxCorePct: 90, OtherCores: new(1.1)},
		"90% of the machine, 1.70 cores, busiest core 0: 90%":                                       {Pct: 90, Cores: 1.7, MaxCorePct: 90, OtherCores: new(0.1)},
		"12% of the machine, 0.02 cores, busiest core 0: 20%":                                       {Pct: 12, Cores: 0.02, MaxCorePct: 20, OtherCores: new(0.22)},
	} {
		if got := cpuText(&f, "the machine"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
