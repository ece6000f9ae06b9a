package planfile

import (
	"thru/internal/plan"
)

// mostRungs bounds the rungs of a ladder.
const mostRungs = 100

func (f *File) readRungs() error {
	n, ok := f.at("rungs")
	if !ok {
		return nil
	}
	seen := map[string]bool{}
	var err error
	f.rungs, err = each(f.source, n, "rungs", "[{name: LAN, pair: [a, b]}]", mostRungs, func(x *node) (rung, error) {
		r, err := f.readRung(x)
		if err == nil && seen[r.name] {
			err = f.errorf(x, "names tell rungs apart", "the rung %q is there twice", clip(r.name))
		}
		seen[r.name] = true
		return r, err
	})
	return err
}

func (f *File) readRung(x *node) (r rung, err error) {
	r.node = x
	if err := f.keysOf(x, "a rung", "name", "pair", "listen", "link_rate"); err != nil {
		return r, err
	}
	const example = "such as {name: virtual switch, pair: [a, b]}"
	n := x.get("name")
	if n == nil {
		return r, f.errorf(x, example, "a rung has no name")
	}
	if r.name, err = f.titleOf(n, "rung", example); err != nil {
		return r, err
	}
	if n = x.get("pair"); n == nil {
		return r, f.errorf(x, example, "the rung %q has no pair", r.name)
	}
	if n.kind != listNode || len(n.items) != 2 {
		return r, f.errorf(n, "two end points, the one that sends first; of one host: pair: [a, a]", "pair of the rung %q is %s", r.name, n.value())
	}
	for _, end := range n.items {
		if _, err := f.nameOf(end, "end point of a rung"); err != nil {
			return r, err
		}
	}
	r.from, r.to = n.items[0], n.items[1]
	if n := x.get("listen"); n != nil {
		if r.listen, err = f.oneOf(n, "listen", listenFrom, listenTo, listenEither); err != nil {
			return r, err
		}
	}
	if n := x.get("link_rate"); n != nil {
		r.link, err = f.linkRate(n)
	}
	return r, err
}

// ladder is the plan of the rungs.
func (f *File) ladder(h *hosts) (plan.Plan, error) {
	var rungs []plan.Rung
	for _, r := range f.rungs {
		from, err := h.among(&choice{node: r.node, names: []*node{r.from}}, r.node, "pair")
		if err != nil {
			return plan.Plan{}, err
		}
		to, err := h.among(&choice{node: r.node, names: []*node{r.to}}, r.node, "pair")
		if err != nil {
			return plan.Plan{}, err
		}
		p, err := h.pair(r.node, r.listen, from[0], to[0])
		if err != nil {
			return plan.Plan{}, err
		}
		rungs = append(rungs, plan.Rung{Name: r.name, Pair: p, Link: r.link})
	}
	t, err := f.traffic(point{})
	if err != nil {
		return plan.Plan{}, err
	}
	p, err := plan.Rungs(rungs, t)
	if err != nil {
		return p, f.contradiction(err, point{})
	}
	return p, nil
}
