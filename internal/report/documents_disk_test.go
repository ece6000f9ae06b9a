package report

import (
	"thru/internal/measure"
)

// diskRun returns a run with the given rate for each number of workers.
func diskRun(pattern, target string, block int64, latency int64, tried ...float64) measure.DiskRun {
	r := measure.DiskRun{Pattern: pattern, Target: target, BlockBytes: block, ElapsedNs: 3e9, Tried: []measure.DiskStep{}}
	workers := 1
	for _, bytes := range tried {
		r.Tried = append(r.Tried, measure.DiskStep{Workers: workers, Bytes: bytes})
		r.Workers, workers = workers, 2*workers
		r.Bytes = &measure.Figure{Value: bytes, Low: bytes * 0.95, High: bytes * 1.02, Runs: 1, Basis: "bins of a single run"}
		ops := bytes / float64(block)
		r.IOPS = &measure.Figure{Value: ops, Low: ops * 0.95, High: ops * 1.02, Runs: 1, Basis: "bins of a single run"}
	}
	r.Latency = &measure.Latency{Count: int64(3 * r.IOPS.Value), Min: latency / 2, Mean: latency, P50: latency, P90: latency * 3 / 2, P99: latency * 4, P999: latency * 9, P9999: latency * 20, Max: latency * 30}
	r.CPU = cpuFigure(12.5, 0.5, 41)
	if target == "" {
		r.BusyPct = new(97.4)
	}
	return r
}

// diskDocument is `thru disk /srv b`.
func diskDocument() *measure.Document {
	d := newDocument("disk", "/srv", "b")
	d.EndPoints = d.EndPoints[1:]
	d.EndPoints[0].Name, d.Cells = "b", []measure.Cell{}
	still := diskRun(measure.RandomRead, "", 4096, 81_000, 48e6, 95e6, 188e6, 371e6)
	still.Rising = true
	d.Disks = []measure.DiskTest{{
		Where: "b", Path: "/srv", Method: "fio-3.33", Cache: "O_DIRECT", FileBytes: 1 << 30, FreeBytes: 220 << 30, FileSystem: "ext4", Mount: "/srv", Options: "rw,noatime",
		Device: "nvme0n1", Model: "Micron 7450", Scheduler: "none", Rotational: new(false),
		Runs: []measure.DiskRun{
			diskRun(measure.SequentialRead, "", 128<<10, 310_000, 1.61e9, 3.05e9, 3.21e9, 3.22e9), still,
			diskRun(measure.SequentialWrite, "", 128<<10, 420_000, 1.02e9, 1.34e9, 1.35e9), diskRun(measure.RandomWrite, "", 4096, 24_000, 160e6, 301e6, 302e6),
		},
		Memory:  []measure.DiskRun{diskRun(measure.SequentialRead, "/dev/shm", 128<<10, 15_000, 8.4e9), diskRun(measure.SequentialRead, "/dev/zero", 128<<10, 4_000, 31e9)},
		Missing: []measure.NotChecked{{Fact: "memory", Why: "the baseline of /dev/null: permission denied"}},
	}}
	return d
}
