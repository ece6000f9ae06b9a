package stat

import (
	"math"
	"testing"

	"thru/internal/measure"
)

// TestTransferFigure: a range has at least three whole seconds, and contains the mean.
func TestTransferFigure(t *testing.T) {
	for _, tt := range []struct {
		name      string
		seconds   []float64
		low, high float64
	}{
		{"none", nil, 100, 100},
		{"one", []float64{150}, 100, 100},
		{"two", []float64{50, 150}, 100, 100},
		{"three", []float64{50, 90, 150}, 50, 150},
		{"the last part was faster than all", []float64{50, 60, 90}, 100, 100},
		{"the disk was waited for at the end", []float64{150, 160, 190}, 100, 100},
	} {
		x := measure.TransferRun{Bytes: 125, ElapsedNs: 10e9, Seconds: tt.seconds} // 100 bit/s
		if f := TransferFigure(&x); f.Value != 100 || f.Low != tt.low || f.High != tt.high {
			t.Errorf("%s: %v, %v to %v; want %v to %v", tt.name, f.Value, f.Low, f.High, tt.low, tt.high)
		}
	}
	if TransferFigure(&measure.TransferRun{ElapsedNs: 1}) != nil {
		t.Error("a figure of no bytes")
	}
}

// TestSpanCPU: the CPU time of other processes is separate from that of the watched one.
func TestSpanCPU(t *testing.T) {
	span := &measure.HostSpan{Span: 1e9, CPUs: []measure.CPU{{User: 60, System: 30, SoftIRQ: 10}, {Core: 1, User: 20, System: 40, Idle: 40}},
		Worker: &measure.Process{UserNs: 1e8, SystemNs: 2e8}}
	f := SpanCPU(span)
	if f == nil || f.OtherCores == nil || math.Abs(*f.OtherCores-1.2) > 1e-9 || math.Abs(*f.WorkerCores-0.3) > 1e-9 || math.Abs(f.Cores-1.6) > 1e-9 {
		t.Errorf("%+v", f)
	}
	span.Worker = nil
	if f := SpanCPU(span); f.OtherCores != nil {
		t.Errorf("others of a process that was not watched: %+v", f)
	}
}

// TestDiskLimit: a device limits only if more workers were tried and carried no more; workers, CPUs and memory
// come before it.
func TestDiskLimit(t *testing.T) {
	busy, rate := 97.0, &measure.Figure{Value: 1e9}
	tried := []measure.DiskStep{{Workers: 1}, {Workers: 2}}
	for name, tt := range map[string]struct {
		run    measure.DiskRun
		memory float64
		want   DiskLimit
	}{
		"no rate":      {measure.DiskRun{BusyPct: &busy, Tried: tried}, 0, DiskUnknown},
		"device":       {measure.DiskRun{Bytes: rate, BusyPct: &busy, Tried: tried}, 1e10, DiskDevice},
		"one step":     {measure.DiskRun{Bytes: rate, BusyPct: &busy, Tried: tried[:1]}, 0, DiskUnknown},
		"not busy":     {measure.DiskRun{Bytes: rate, BusyPct: new(60.0), Tried: tried}, 0, DiskUnknown},
		"rising":       {measure.DiskRun{Bytes: rate, BusyPct: &busy, Tried: tried, Rising: true}, 0, DiskWorkers},
		"CPUs":         {measure.DiskRun{Bytes: rate, BusyPct: &busy, Tried: tried, CPU: &measure.CPUFigure{Pct: 96}}, 0, DiskCPU},
		"as in memory": {measure.DiskRun{Bytes: rate, BusyPct: &busy, Tried: tried}, 1.05e9, DiskMemory},
	} {
		d := measure.DiskTest{}
		if tt.memory > 0 {
			d.Memory = []measure.DiskRun{{Bytes: &measure.Figure{Value: tt.memory}}}
		}
		if got := DiskLimitOf(&d, &tt.run); got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
}
