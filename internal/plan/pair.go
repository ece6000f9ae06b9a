package plan

import (
	"slices"

	"thru/internal/measure"
)

// Pair is two end points between which data goes, by its name From -> To.
type Pair struct {
	From, To string
	Engine   string // where one end is no agent; "" is measure.Native
	DialTo   bool   // To opens the connections; else From does
	Either   bool   // where that end cannot connect, the other one tries
}

// Steps are those of the request between a pair: each direction by itself, or
// both at once, as for `thru test`, with the requests of --latency beside. The
// request's Reverse and OneWay, and its LocalCPU and PeerCPU, are seen from
// From: it stands for the local end, and To for the peer.
func (p Pair) Steps(r Request) ([]Step, error) {
	r.Local, r.Peer, r.Engine, r.either = p.From, p.To, p.Engine, p.Either
	if p.DialTo {
		r = r.turned()
	}
	r, err := r.settled()
	if err != nil {
		return nil, err
	}
	steps := r.directions()
	if p.DialTo && len(steps) > 1 {
		slices.Reverse(steps)
	}
	for i, s := range steps {
		if len(s.Specs) == 1 && s.Specs[0].From == p.From {
			steps[i].Label = "forward"
		} else if len(s.Specs) == 1 {
			steps[i].Label = "reverse"
		}
	}
	if r.Latency {
		return withLatency(steps, r), nil
	}
	return steps, nil
}

// turned is the request as the other end would make it: the end that opens the
// connections is the local one of a request.
func (r Request) turned() Request {
	r.Local, r.Peer, r.LocalCPU, r.PeerCPU = r.Peer, r.Local, r.PeerCPU, r.LocalCPU
	switch {
	case r.Reverse:
		r.Reverse, r.OneWay = false, true
	case r.OneWay || r.Traffic != measure.Bulk:
		r.Reverse, r.OneWay = true, false
	}
	return r
}
