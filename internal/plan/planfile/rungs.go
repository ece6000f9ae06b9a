package planfile

import (
	"thru/internal/plan"
)

// mostRungs limits the rungs of a ladder.
const mostRungs = 100

func (f *File) readRungs() (err error) {
	name := func(r rung) string { return r.name }
	f.rungs, err = entries(f, "rungs", "[{name: LAN, pair: [a, b]}]", mostRungs, name, once{"rung", "give each rung its own name"}, f.readRung)
	return err
}

func (f *File) readRung(x *node) (r rung, err error) {
	r.node = x
	const example = "such as {name: virtual switch, pair: [a, b]}"
	return r, f.fields(x, "a rung", example, 2, []field{
		{"name", into(&r.name, func(n *node) (string, error) { return f.titleOf(n, "rung", example) })},
		{"pair", func(n *node) error {
			if n.kind != listNode || len(n.items) != 2 {
				return f.errorf(n, "two end points, the one that sends first; of one host: pair: [a, a]", "pair of the rung %q is %s", r.name, n.value())
			}
			for i, place := range []**node{&r.from, &r.to} {
				*place = n.items[i]
				if _, err := f.nameOf(n.items[i], "end point of a rung"); err != nil {
					return err
				}
			}
			return nil
		}},
		{"listen", f.choose(&r.listen, "listen", listenFrom, listenTo, listenEither)},
		{"link_rate", into(&r.link, f.linkRate)},
	})
}

// ladder returns the plan of the rungs.
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
