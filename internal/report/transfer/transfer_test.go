package transfer

import (
	"testing"

	"thru/internal/measure"
)

// TestTransferCPU: the text of a busy host names the origin of the load, other work included.
func TestTransferCPU(t *testing.T) {
	all := measure.CPUFigure{Pct: 100, Cores: 2, MaxCorePct: 100, WorkerCores: new(0.06), OtherCores: new(1.9)} // of a transfer: other work included
	if got, want := transferCPU(&all, "this process"), "host 100% busy, nearly all by other processes (1.90 cores), core 0 100%, this process 0.06 cores"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
