package diagnose

import (
	"maps"
	"math"
	"slices"
	"strings"

	"thru/internal/measure"
)

// mostPlacements bounds how many interfaces are followed below one: a document from
// elsewhere may have them in a circle.
const mostPlacements = 64

// Ports are the interfaces with a wire behind them by which this end reaches
// the other: its own one, or those that a bond, a VLAN or a tunnel lies on.
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

// isWired tells of an interface whose speed is that of a wire.
func isWired(i *measure.Interface) bool {
	if i.Nominal != nil && *i.Nominal {
		return false
	}
	if i.Kind != nil {
		return *i.Kind == "physical" || *i.Kind == "virtual function"
	}
	return i.PCI != nil || i.SpeedBps != nil
}

// HasFace tells whether the interfaces of an end are known, so that a wire
// that is not among them is not there.
func (e *End) HasFace() bool { return e.Face != nil }

// SpeedOf an interface in bit/s; 0 where it is not known.
func SpeedOf(i *measure.Interface) float64 {
	if i.SpeedBps == nil || *i.SpeedBps <= 0 {
		return 0
	}
	return float64(*i.SpeedBps)
}

// OnPort is the place of a cause at one of an end's interfaces.
func (e *End) OnPort(i *measure.Interface) measure.Where {
	w := e.Where()
	w.Interface = i.Name
	return w
}

// Counters are what the host of the end counted in the measured time; none where nothing
// was seen.
func (e *End) Counters() measure.HostSpan {
	if e.Seen == nil || e.Seen.Host == nil {
		return measure.HostSpan{}
	}
	return *e.Seen.Host
}

// NIC is what the interface of the end counted in the measured time.
func (e *End) NIC() *measure.NICSpan { return e.Counters().NIC }

// Counted sums the counters of a driver that moved and whose names have one of
// the parts and none of the others, and names the largest of them. Counters
// that count the same twice are why the largest is what is returned.
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

// LinkIsFull tells that the link itself carries all that it can, so that nothing else binds.
func (f *Flow) LinkIsFull() bool {
	share, ok := f.CeilingShare()
	return ok && share >= LinkFullBar
}

// IsNumber tells a figure from what a document of wild values makes of one.
func IsNumber(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
