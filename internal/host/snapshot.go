package host

import (
	"time"

	"thru/internal/measure"
)

// Snapshot is one reading of this host's counters, each counted since boot or
// since its owner began. Two of them make a measure.HostSpan (Span).
//
// Taken is when the reading began, on the monotonic clock. A counter that
// could not be read is nil and named in Missing, with the key of
// measure.HostSpan.
type Snapshot struct {
	Taken   time.Time
	CPUs    []CPUTimes
	Memory  *measure.Memory // at the time of the reading
	Worker  *measure.Process
	NIC     *measure.NICSpan // with all driver counters; RxRing without those of vmxnet3
	Qdisc   *measure.Qdisc   // Backlog is that at the reading
	Softnet []measure.Softnet
	Proto   map[string]uint64
	Quota   *measure.QuotaSpan // of the group with the lowest quota around this process; also nil where there is no quota
	IRQs    []measure.IRQSpan  // of the interface, by core
	Swap    *measure.SwapSpan
	Missing []measure.NotChecked
}
