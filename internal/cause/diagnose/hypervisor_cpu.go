package diagnose

import (
	"fmt"

	"thru/internal/measure"
)

// LimitedBar is the percentage of the time of a virtual CPU that a limit holds back (esxtop %MLMTD); less is rounding.
const LimitedBar = 1

// GuestCPU is what the host did with the virtual CPUs of a guest.
type GuestCPU struct {
	Ready, costop, Limited            Gauges
	ReadyKnown, StopKnown, LimitKnown bool
	Wait, Stop                        Gauge   // ready and co-stop of the CPUs that the end's threads may use
	Net                               float64 // ready of them in percent, a limit left out
	Limit                             Gauge   // held back by a limit
	Unlimited                         bool    // no limit took any of their time
	Full                              bool    // the guest's CPU had no time to spare
}

// CPUs reads them for the virtual CPUs that the end's threads may use: what is
// taken of others is no loss to the flow. A CPU that a limit holds back counts as
// ready too (esxtop: %RDY includes %MLMTD), so that is taken off.
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

// stolenByHost is the time in percent for which the host kept the end's virtual
// CPUs waiting, or held them to a limit; 0 where it did not tell.
func (e *End) stolenByHost() float64 {
	b := e.CPUs()
	return max(b.Net, b.Limit.Mean)
}

// LimitOf words the limit of the end's guest; known tells whether the inventory says.
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

// hasNoQuota tells of a guest of KVM that no quota is set for it.
func (e *End) hasNoQuota() bool {
	limit, known := e.LimitOf()
	return e.Kind() == measure.KindKVM && known && limit == ""
}
