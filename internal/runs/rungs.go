package runs

import (
	"cmp"
	"encoding/json"
	"runtime"
	"slices"

	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/plan"
	"thru/internal/plan/planfile"
)

// Rungs describes a ladder given by flags. It is stored with its run, as a plan file
// is.
type Rungs struct {
	Rungs   []plan.Rung  `json:"rungs,omitempty"`
	VCPUs   bool         `json:"vcpus,omitempty"`
	Request plan.Request `json:"request"`
}

// ReadRungs parses the stored rungs of a ladder.
func ReadRungs(text []byte) (a Rungs, ok bool) {
	err := json.Unmarshal(text, &a)
	return a, err == nil && (len(a.Rungs) > 0 || a.VCPUs)
}

// Plan returns the plan of the rungs. The number of CPUs of an end matters only to the
// vCPU study; where it is unknown, that of this machine is taken.
func (a Rungs) Plan(found func(endPoint string) planfile.Found) (p plan.Plan, err error) {
	r := a.Request
	names := []string{r.Local, r.Peer}
	if a.VCPUs {
		there := found(r.Peer)
		r.LocalCPUs, r.PeerCPUs = cmp.Or(found(r.Local).CPUs, runtime.NumCPU()), cmp.Or(there.CPUs, runtime.NumCPU())
		r.Engine = there.Engine
		p, err = plan.VCPUs(r)
	} else {
		rungs := slices.Clone(a.Rungs)
		names = nil
		for i, x := range rungs {
			names = append(names, x.From, x.To)
			rungs[i].Engine = cmp.Or(found(x.From).Engine, found(x.To).Engine)
			if rungs[i].Engine != "" && x.From != measure.Local && x.To != measure.Local {
				return p, fault.Usagef("its other end is local: --same-host local,"+x.To, "%s and %s: an ESXi host's iperf3 is measured from this machine only", x.From, x.To)
			}
		}
		p, err = plan.Rungs(rungs, r)
	}
	p.Order = plan.OrderSequential
	for i, name := range names {
		if slices.Index(names, name) == i {
			p.EndPoints = append(p.EndPoints, plan.EndPoint{Name: name})
		}
	}
	return p, err
}
