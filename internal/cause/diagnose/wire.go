package diagnose

import (
	"maps"
	"math"
	"slices"
	"strings"

	"thru/internal/measure"
)

// mostPlacements limits how many interfaces below one are followed: a foreign document may have a cycle.
const mostPlacements = 64

// Ports returns the interfaces with a wire by which this end reaches the other: its own one, or those under a
// bond, VLAN or tunnel.
func (e *End) Ports() []*measure.Interface {
	if e.Face == nil {
		return nil
	}
	var wired []*measure.Interface
	for seen, next := []string{}, []string{e.Face.Name}; len(next) > 0 && len(seen) < mostPlacements; next = next[1:] {
		i := e.Interface(next[0])
		if i == nil || slices.Contains(seen, i.Name) {
			continue
		}
		seen = append(seen, i.Name)
		if isWired(i) {
			wired = append(wired, i)
		}
		next = append(next, i.Lower...)
		if i.Tunnel != nil {
			next = append(next, i.Tunnel.Lower)
		}
		if i.Bond != nil {
			for _, m := range i.Bond.Members {
				next = append(next, m.Name)
			}
		}
	}
	return wired
}

// isWired reports whether an interface's speed is that of a wire.
func isWired(i *measure.Interface) bool {
	if i.Nominal != nil && *i.Nominal {
		return false
	}
	if i.Kind != nil {
		return *i.Kind == "physical" || *i.Kind == "virtual function"
	}
	return i.PCI != nil || i.SpeedBps != nil
}

// HasFace reports whether the interfaces of an end are known, so that a wire missing among them does not exist.
func (e *End) HasFace() bool { return e.Face != nil }

// SpeedOf returns an interface's speed in bit/s; 0 if it is not known.
func SpeedOf(i *measure.Interface) float64 {
	if i.SpeedBps == nil || *i.SpeedBps <= 0 {
		return 0
	}
	return float64(*i.SpeedBps)
}

// OnPort returns the place of a cause at one of an end's interfaces.
func (e *End) OnPort(i *measure.Interface) measure.Where {
	w := e.Where()
	w.Interface = i.Name
	return w
}

// Counters returns what the host of the end counted in the measured time; empty if nothing was read.
func (e *End) Counters() measure.HostSpan {
	if e.Seen == nil || e.Seen.Host == nil {
		return measure.HostSpan{}
	}
	return *e.Seen.Host
}

// NIC returns what the interface of the end counted in the measured time.
func (e *End) NIC() *measure.NICSpan { return e.Counters().NIC }

// Counted sums the increased driver counters whose names have one of the parts and none of the others, and names
// the largest. It returns the largest because some counters count the same packets twice.
func Counted(n *measure.NICSpan, parts, but []string) (most float64, name string) {
	for _, key := range slices.Sorted(maps.Keys(n.Driver)) {
		low := strings.ToLower(key)
		has := func(p string) bool { return strings.Contains(low, p) }
		if slices.ContainsFunc(parts, has) && !slices.ContainsFunc(but, has) && float64(n.Driver[key]) > most {
			most, name = float64(n.Driver[key]), key
		}
	}
	return most, name
}

// LinkIsFull reports whether the link itself carries all that it can, so that nothing else binds.
func (f *Flow) LinkIsFull() bool {
	share, ok := f.CeilingShare()
	return ok && share >= LinkFullBar
}

// IsNumber reports whether a figure is finite; absurd documents produce NaN and infinities.
func IsNumber(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
