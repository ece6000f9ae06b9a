package diagnose

import (
	"fmt"

	"thru/internal/measure"
)

// LimitedBar is the percentage of the time of a virtual CPU that a limit holds back (esxtop %MLMTD); less is rounding.
const LimitedBar = 1

// GuestCPU is what the host did with a guest's virtual CPUs.
type GuestCPU struct {
	Ready, costop, Limited            Gauges
	ReadyKnown, StopKnown, LimitKnown bool
	Wait, Stop                        Gauge   // ready and co-stop of the CPUs that the end's threads may use
	Net                               float64 // their ready time in percent, without that of a limit
	Limit                             Gauge   // time that a limit held the CPUs back
	Unlimited                         bool    // no limit took any of their time
	Full                              bool    // the guest's CPU had no idle time
}

// CPUs reads the counters of the virtual CPUs that the end's threads may use; time taken from others does not slow
// the flow. A CPU that a limit holds back also counts as ready (esxtop: %RDY includes %MLMTD), so that is
// subtracted.
func (e *End) CPUs() GuestCPU {
	b := GuestCPU{Ready: e.OfGuest(measure.CounterReady), costop: e.OfGuest(measure.CounterCoStop), Limited: e.OfGuest(measure.CounterLimited)}
	bound := e.boundCores()
	b.Wait, b.ReadyKnown = b.Ready.ofCPUs(bound)
	b.Stop, b.StopKnown = b.costop.ofCPUs(bound)
	b.Limit, b.LimitKnown = b.Limited.ofCPUs(bound)
	b.Net = max(0, b.Wait.Mean-b.Limit.Mean)
	b.Unlimited = b.LimitKnown && b.Limit.Mean < LimitedBar || !b.LimitKnown && e.hasNoQuota()
	used, ok := e.OfGuest(measure.CounterUsed).parts(bound)
	b.Full = e.IsFull() || ok && b.ReadyKnown && used.Mean+b.Wait.Mean > ThreadBar
	return b
}

// stolenByHost returns the percentage of time that the host kept the end's virtual CPUs waiting, or held them to a
// limit; 0 if it is not reported.
func (e *End) stolenByHost() float64 {
	b := e.CPUs()
	return max(b.Net, b.Limit.Mean)
}

// LimitOf words the CPU limit of the end's guest; known reports whether the inventory has it.
func (e *End) LimitOf() (limit string, known bool) {
	if e.Guest() == nil {
		return "", false
	}
	switch cpus, hz, known := e.Placements[0].CPULimit(); {
	case cpus > 0:
		return fmt.Sprintf("%.3g CPUs", cpus), true
	case hz > 0:
		return fmt.Sprintf("%.3g GHz", hz/1e9), true
	default:
		return "", known
	}
}

// hasNoQuota reports whether a KVM guest has no quota.
func (e *End) hasNoQuota() bool {
	limit, known := e.LimitOf()
	return e.Kind() == measure.KindKVM && known && limit == ""
}
