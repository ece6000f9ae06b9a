package compare

import (
	"cmp"
	"slices"
	"strconv"

	"thru/internal/measure"
)

// pathChanges returns the changed facts of paths: of each direction that the newest result of either side has
// probed or used.
func pathChanges(a, b *side, e ends) (all []measure.FactChange) {
	before, after := a.directionFacts(), b.directionFacts()
	names := measure.NewVocabulary()
	for _, w := range after {
		from, to := e.before[w.from], e.before[w.to]
		i := slices.IndexFunc(before, func(x directionFacts) bool { return x.from == from && x.to == to })
		if i < 0 {
			continue
		}
		for _, f := range w.facts {
			k := slices.IndexFunc(before[i].facts, func(x directionFact) bool { return x.kind == f.kind })
			if k < 0 || before[i].facts[k].value == f.value {
				continue
			}
			all = append(all, measure.FactChange{Of: measure.PairName(w.from, w.to), Fact: f.kind, Name: names[f.kind].Title, Before: before[i].facts[k].value, After: f.value})
		}
	}
	return all
}

// directionFacts are the facts of one direction.
type directionFacts struct {
	from, to string
	facts    []directionFact
}

type directionFact struct{ kind, value string }

// directionFacts returns those of the newest result that has probed a path.
func (s *side) directionFacts() (all []directionFacts) {
	for _, d := range slices.Backward(s.docs) {
		for i := range d.Paths {
			p := &d.Paths[i]
			for _, w := range []directionFacts{oneDirection(p, p.From, p.To, &p.Forward), oneDirection(p, p.To, p.From, &p.Back)} {
				if !slices.ContainsFunc(all, func(x directionFacts) bool { return x.from == w.from && x.to == w.to }) {
					all = append(all, w)
				}
			}
		}
	}
	return all
}

func oneDirection(p *measure.Path, from, to string, o *measure.DirectionFacts) directionFacts {
	w := directionFacts{from: from, to: to}
	add := func(kind, value string) { w.facts = append(w.facts, directionFact{kind, value}) }
	if o.MTU != nil {
		add("paths.mtu", strconv.Itoa(o.MTU.Bytes))
		add("paths.silent", yesNo(o.MTU.Silent))
	}
	if o.Route != nil {
		gateway := cmp.Or(o.Route.Gateway, "none, on the link")
		add("paths.gateway", gateway)
	}
	if o.Hops != nil {
		add("paths.hops", strconv.Itoa(*o.Hops))
	}
	if o.Congestion != nil {
		add("paths.congestion", *o.Congestion)
	}
	if p.Ports != nil && from == p.From {
		add("paths.ways", strconv.Itoa(p.Ports.Directions))
	}
	if from == p.From && !p.Quick {
		add("paths.seen_as", cmp.Or(p.SeenAs, "no NAT"))
	}
	if h := p.Handshake; h != nil {
		if from == p.From {
			w.facts = append(w.facts, synFacts(h.SYNSeen)...)
		} else {
			w.facts = append(w.facts, synFacts(h.SYNACKSeen)...)
		}
	}
	return w
}

// synFacts returns the options of a handshake segment as they arrived.
func synFacts(s *measure.SYN) (all []directionFact) {
	if s == nil {
		return nil
	}
	if s.MSS != nil {
		all = append(all, directionFact{"paths.syn_mss", strconv.Itoa(*s.MSS)})
	}
	if s.HasScale != nil {
		value := "no such option"
		if *s.HasScale && s.WindowScale != nil {
			value = strconv.Itoa(*s.WindowScale)
		}
		all = append(all, directionFact{"paths.window_scale", value})
	}
	for _, o := range []struct {
		kind string
		on   *bool
	}{{"paths.sack", s.SACK}, {"paths.timestamps", s.Timestamps}, {"paths.ecn", s.ECN}} {
		if o.on != nil {
			all = append(all, directionFact{o.kind, map[bool]string{true: "on", false: "off"}[*o.on]})
		}
	}
	return all
}
