package plan

import (
	"slices"

	"thru/internal/measure"
)

// Pair is a pair of end points; data flows in the direction From -> To.
type Pair struct {
	From, To string
	Engine   string // if one end is no agent; "" is measure.Native
	DialTo   bool   // To opens the connections; else From does
	Either   bool   // if that end cannot connect, the other one tries
}

// Steps returns the steps of the request between a pair: each direction by itself, or both at once, as for
// `thru test`, together with the requests of --latency. From is the local end of the request and To the peer:
// Reverse, OneWay, LocalCPU and PeerCPU are relative to From.
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

// turned returns the request with the ends swapped: a request's local end opens the connections.
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
