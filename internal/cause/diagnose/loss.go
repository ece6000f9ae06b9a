package diagnose

import (
	"slices"

	"thru/internal/measure"
)

// Bars of the loss rules, in percent.
const (
	AgainBar = 0.001 // of segments sent again, below which loss costs nothing to speak of
	LostBar  = 0.002 // of datagrams
)

// BbrBar is the loss in percent that bbr does not slow down for (draft-ietf-ccwg-bbr: version 1 up to 20, later ones 2 a round trip).
const BbrBar = 10

// PathLossPct is the share of a cell's datagrams that the path lost, not a host.
func PathLossPct(c *measure.Cell) float64 {
	d := c.Datagrams
	if d == nil || d.Sent == 0 {
		return 0
	}
	lost := d.Lost
	for _, p := range c.LossPlaces {
		if p.Place != measure.LossPath && p.Place != measure.LossQdisc {
			lost -= p.Packets
		}
	}
	return max(0, 100*float64(lost)/float64(d.Sent))
}

// Surplus is what datagrams above a rate showed: the rate that came through,
// the share that did not, and how long those that did waited.
type Surplus struct {
	Capacity, LostPct float64
	Wait              Wait
	cell              *measure.Cell
}

// Surplus of the experiments that sent more than passes; false where all passed.
func (f *Flow) Surplus() (Surplus, bool) {
	bps, _ := f.Goodput()
	for _, c := range f.DatagramTrials() {
		if lost := PathLossPct(c); lost >= SurplusBar && RateOf(c) > LeastCapacity*bps {
			return Surplus{Capacity: RateOf(c), LostPct: lost, Wait: WaitOf(c), cell: c}, true
		}
	}
	return Surplus{}, false
}

// LeastCapacity is what has to come through of datagrams, over the goodput of
// TCP: where it is less, a host or a device is short of packets a second, and
// the rate of TCP's large ones is not what was found.
const LeastCapacity = 0.9

// DatagramTrials are the experiments that sent more datagrams than TCP carried.
func (f *Flow) DatagramTrials() []*measure.Cell {
	var cells []*measure.Cell
	for _, id := range []string{UdpAbove, UdpThrice, UdpTenfold, UdpThirtyfold} {
		if c := f.Experiment(id); c != nil && c.Datagrams != nil {
			cells = append(cells, c)
		}
	}
	return cells
}

// UdpPassed is the highest rate of datagrams that the path let pass, in bit/s.
func (f *Flow) UdpPassed() (most float64) {
	for _, c := range f.DatagramTrials() {
		if PathLossPct(c) < SurplusBar {
			most = max(most, RateOf(c))
		}
	}
	return most
}

// offersNoMore tells whether the sender fell short of the rate of an
// experiment: then higher ones ask too much of it, and say nothing of the path.
func (f *Flow) offersNoMore() bool {
	return slices.ContainsFunc(f.DatagramTrials(), func(c *measure.Cell) bool {
		d := c.Datagrams
		return d.OfferedBps != nil && *d.OfferedBps < LeastCapacity*float64(d.AskedBps)
	})
}
