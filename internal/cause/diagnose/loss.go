package diagnose

import (
	"slices"

	"thru/internal/measure"
)

// Thresholds of the loss rules, in percent.
const (
	AgainBar = 0.001 // of retransmitted segments, below which loss costs next to nothing
	LostBar  = 0.002 // of datagrams
)

// BbrBar is the loss in percent that bbr does not slow down for (draft-ietf-ccwg-bbr: version 1 up to 20, later ones 2 a round trip).
const BbrBar = 10

// PathLossPct returns the percentage of a cell's datagrams that the path lost, not a host.
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

// Surplus describes datagrams above the passing rate: the rate that passed, the share that did not, and the delay
// of those that did.
type Surplus struct {
	Capacity, LostPct float64
	Wait              Wait
	cell              *measure.Cell
}

// Surplus returns that of the experiments that sent more than passes; false if all passed.
func (f *Flow) Surplus() (Surplus, bool) {
	bps, _ := f.Goodput()
	for _, c := range f.DatagramTrials() {
		if lost := PathLossPct(c); lost >= SurplusBar && RateOf(c) > LeastCapacity*bps {
			return Surplus{Capacity: RateOf(c), LostPct: lost, Wait: WaitOf(c), cell: c}, true
		}
	}
	return Surplus{}, false
}

// LeastCapacity is the least ratio of passing datagrams to TCP goodput: below it a host or a device is limited in
// packets per second, and the test did not find the rate of TCP's larger packets.
const LeastCapacity = 0.9

// DatagramTrials returns the experiments that sent more datagrams than TCP carried.
func (f *Flow) DatagramTrials() []*measure.Cell {
	var cells []*measure.Cell
	for _, id := range []string{UdpAbove, UdpThrice, UdpTenfold, UdpThirtyfold} {
		if c := f.Experiment(id); c != nil && c.Datagrams != nil {
			cells = append(cells, c)
		}
	}
	return cells
}

// UdpPassed returns the highest datagram rate that the path passed, in bit/s.
func (f *Flow) UdpPassed() (most float64) {
	for _, c := range f.DatagramTrials() {
		if PathLossPct(c) < SurplusBar {
			most = max(most, RateOf(c))
		}
	}
	return most
}

// offersNoMore reports whether the sender fell short of an experiment's rate: higher rates would test the sender,
// not the path.
func (f *Flow) offersNoMore() bool {
	return slices.ContainsFunc(f.DatagramTrials(), func(c *measure.Cell) bool {
		d := c.Datagrams
		return d.OfferedBps != nil && *d.OfferedBps < LeastCapacity*float64(d.AskedBps)
	})
}
