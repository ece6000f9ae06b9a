package planfile

import (
	"slices"

	"thru/internal/measure"
	"thru/internal/plan"
	"thru/internal/unit"
)

// Types of pairs.
const (
	oneToOne  = "one-to-one"
	oneToMany = "one-to-many"
	manyToOne = "many-to-one"
	mesh      = "mesh"
	ring      = "ring"
	matrix    = "matrix"
)

// Which end opens the port.
const (
	listenFrom   = "from"
	listenTo     = "to"
	listenEither = "either"
)

// mostPairs limits the pairs of a plan.
const mostPairs = 10_000

// pairs is an entry of `pairs`.
type pairs struct {
	*node
	kind            string
	from, to, among *choice
	by              string
	listen          string // "": as the ends allow
}

// choice selects hosts: by names in order, or by a selector.
type choice struct {
	*node
	names    []*node
	selector selector
}

func (f *File) readPairs() error {
	n, ok := f.at("pairs")
	switch {
	case f.rungs != nil && ok:
		return f.errorf(n, "a ladder has its pairs in the rungs", "pairs do not go with rungs")
	case f.rungs != nil:
		return nil
	case !ok && f.keysOf(f.root, "the plan", fileKeys()...) != nil:
		return nil // unknown keys may be misspelt ones
	case !ok:
		return f.errorf(f.root, "such as `pairs: [{type: one-to-one, from: [local], to: [b]}]`, or rungs for a ladder", "there are no pairs: nothing would be measured")
	}
	var err error
	f.pairs, err = each(f.source, n, "pairs", "[{type: mesh, among: all}]", mostPairs, f.readPair)
	return err
}

func (f *File) readPair(x *node) (pairs, error) {
	p := pairs{node: x, kind: oneToOne}
	ends := func(place **choice, key string) field {
		return field{key, into(place, func(n *node) (*choice, error) { return f.choice(n, key) })}
	}
	err := f.fields(x, "an entry of pairs", "", 0, []field{
		{"type", f.choose(&p.kind, "type", oneToOne, oneToMany, manyToOne, mesh, ring, matrix)},
		ends(&p.from, "from"), ends(&p.to, "to"), ends(&p.among, "among"),
		{"by", into(&p.by, func(n *node) (string, error) { return f.words(n, "by", "site") })},
		{"listen", f.choose(&p.listen, "listen", listenFrom, listenTo, listenEither)},
	})
	if err != nil {
		return p, err
	}
	return p, f.checkPair(&p)
}

// checkPair checks that an entry has the ends that its type needs.
func (f *File) checkPair(p *pairs) error {
	within := p.kind == mesh || p.kind == ring || p.kind == matrix && p.from == nil && p.to == nil
	for _, c := range []struct {
		bad           bool
		hint, message string
	}{
		{within && (p.from != nil || p.to != nil), "such as {type: " + p.kind + ", among: all}: each with each of the same hosts", p.kind + " takes among, not from and to"},
		{!within && p.among != nil, "such as {type: " + p.kind + ", from: [a], to: [b]}", p.kind + " takes from and to, not among"},
		{!within && (p.from == nil || p.to == nil), "such as {type: " + p.kind + ", from: [a], to: [b]}", p.kind + " needs from and to"},
		{p.by != "" && p.kind != matrix, "such as {type: matrix, among: all, by: site}", "by is only for the type matrix"},
		{p.kind == matrix && within && p.by == "", "such as {type: matrix, among: all, by: site}; all with all is {type: mesh}", "a matrix among hosts needs a label: by"},
	} {
		if c.bad {
			return f.errorf(p.node, c.hint, "%s", c.message)
		}
	}
	return nil
}

// choice reads a name, a list of names, a selector, or all.
func (f *File) choice(n *node, what string) (*choice, error) {
	c := &choice{node: n}
	switch {
	case n.kind == textNode && n.text != all:
		c.names = []*node{n}
	case n.kind == listNode:
		items, err := f.list(n, what, "[a, b]")
		if err != nil {
			return nil, err
		}
		c.names = items
	default:
		var err error
		c.selector, err = f.selectorOf(n, what)
		return c, err
	}
	for i, x := range c.names {
		if _, err := f.nameOf(x, "end point of "+what); err != nil {
			return nil, err
		}
		if slices.ContainsFunc(c.names[:i], func(o *node) bool { return o.text == x.text }) {
			return nil, f.errorf(x, "for several flows of a pair at once: end_points in traffic or axes", "%s has %s twice", what, x.value())
		}
	}
	return c, nil
}

// among returns the hosts of a choice; without one all hosts of the plan.
func (h *hosts) among(c *choice, p *node, what string) ([]*host, error) {
	if c == nil {
		c = &choice{node: p, selector: selector{}}
	}
	var found []*host
	if c.names == nil {
		for _, x := range h.list {
			if c.selector.fits(x.Labels) {
				found = append(found, x)
			}
		}
		if len(found) == 0 {
			hint := "set labels in end_points; hosts of the controller bring their own"
			if len(h.list) == 0 {
				hint = "name them in end_points"
			}
			return nil, h.errorf(c.node, hint, "%s: no end point matches %s", what, c.selector)
		}
		return found, nil
	}
	for _, n := range c.names {
		x := h.byName[n.text]
		if x == nil {
			var known []string
			for _, o := range h.list[:min(len(h.list), 30)] {
				known = append(known, o.Name)
			}
			return nil, h.errorf(n, meant(n.text, append(known, Local))+"; each has to be in end_points", "%s: there is no end point %q", what, clip(n.text))
		}
		found = append(found, x)
	}
	return found, nil
}

// pairing collects the pairs of a plan, each once.
type pairing struct {
	*hosts
	ordered bool // a mesh contains both orders of two hosts; else the traffic covers both directions
	list    []plan.Pair
	seen    map[[2]string]bool
	turned  map[[2]string]bool // pairs that repeat two hosts in the other order
	twice   int
}

// expandPairs lists the pairs of all entries. turned holds the pairs of a mesh that repeat two hosts in the
// other order: bidirectional traffic measures only the first.
func (f *File) expandPairs(h *hosts) (list []plan.Pair, turned map[[2]string]bool, err error) {
	g := &pairing{hosts: h, ordered: f.ordered(), seen: map[[2]string]bool{}, turned: map[[2]string]bool{}}
	for _, p := range f.pairs {
		if err := g.entry(p); err != nil {
			return nil, nil, err
		}
	}
	if len(g.list) == 0 {
		n, _ := f.at("pairs")
		return nil, nil, f.errorf(n, "a mesh, a ring or a matrix needs two hosts at least", "there is no pair to measure")
	}
	if g.twice > 0 {
		h.warnings = append(h.warnings, "named more than once, and measured once: "+unit.Plural(g.twice, "pair"))
	}
	return g.list, g.turned, nil
}

// ordered reports whether a -> b and b -> a are two pairs of a mesh. If all traffic is bidirectional they are
// one.
func (f *File) ordered() bool {
	for _, p := range f.points() {
		if t, err := f.traffic(p); err == nil && !isBidirectional(t) {
			return true
		}
	}
	return false
}

// entry adds the pairs of one entry.
func (g *pairing) entry(p pairs) error {
	if p.kind == mesh || p.kind == ring || p.from == nil {
		list, err := g.among(p.among, p.node, "among")
		if err != nil {
			return err
		}
		return g.within(p, list)
	}
	from, err := g.among(p.from, p.node, "from")
	if err != nil {
		return err
	}
	to, err := g.among(p.to, p.node, "to")
	if err != nil {
		return err
	}
	switch {
	case p.kind == oneToMany && len(from) != 1:
		return g.errorf(p.from.node, "take many-to-one, one-to-one or matrix", "one-to-many has one end in from, not %d", len(from))
	case p.kind == manyToOne && len(to) != 1:
		return g.errorf(p.to.node, "take one-to-many, one-to-one or matrix", "many-to-one has one end in to, not %d", len(to))
	case p.kind == oneToOne && len(from) != len(to):
		return g.errorf(p.node, "give each of from its own of to; for all with all take matrix", "one-to-one has %d ends in from and %d in to", len(from), len(to))
	case p.kind == oneToOne:
		for i := range from {
			if err := g.add(p, from[i], to[i]); err != nil {
				return err
			}
		}
		return nil
	}
	for _, a := range from {
		for _, b := range to {
			own := a == b && (len(from) > 1 || len(to) > 1) // in a matrix a host is no peer of itself
			if own || p.by != "" && !g.differ(a, b, p.by) {
				continue
			}
			if err := g.addOrder(p, a, b, a != b && g.seen[[2]string{b.Name, a.Name}]); err != nil {
				return err
			}
		}
	}
	return nil
}

// within adds the pairs among the hosts of one list.
func (g *pairing) within(p pairs, list []*host) error {
	for i, a := range list {
		for j, b := range list {
			switch {
			case i == j, p.kind == ring && (i+1)%len(list) != j:
				continue
			case p.by != "" && !g.differ(a, b, p.by):
				continue
			}
			if err := g.addOrder(p, a, b, j < i && (p.kind != ring || len(list) == 2)); err != nil {
				return err
			}
		}
	}
	return nil
}

// differ reports whether two hosts have different values of a label.
func (g *pairing) differ(a, b *host, label string) bool {
	x, hasA := a.Labels[label]
	y, hasB := b.Labels[label]
	return hasA && hasB && x != y
}

// addOrder adds one order of two hosts; the second one only if some traffic is unidirectional.
func (g *pairing) addOrder(p pairs, from, to *host, second bool) error {
	key := [2]string{from.Name, to.Name}
	switch {
	case second && !g.ordered:
		return nil
	case second && !g.seen[key]:
		g.turned[key] = true
	}
	return g.add(p, from, to)
}

// add adds a pair, and which end opens its port.
func (g *pairing) add(p pairs, from, to *host) error {
	if g.seen[[2]string{from.Name, to.Name}] {
		g.twice++
		return nil
	}
	if len(g.list) == mostPairs {
		return g.errorf(p.node, "measure fewer hosts at a time, or a ring", "the plan has more than %d pairs", mostPairs)
	}
	pair, err := g.pair(p.node, p.listen, from, to)
	if err != nil {
		return err
	}
	g.seen[[2]string{from.Name, to.Name}] = true
	g.list = append(g.list, pair)
	return nil
}

// pair returns which of two ends opens the port, and the engine of the data. This machine always dials, since
// only itself can connect to it; so does the peer of an end that is no agent.
func (h *hosts) pair(where *node, listen string, from, to *host) (plan.Pair, error) {
	p := plan.Pair{From: from.Name, To: to.Name, DialTo: listen == listenFrom, Either: listen == listenEither}
	if n := where.get("listen"); n != nil {
		where = n
	}
	from.used, to.used = true, true
	foreign, near := to, from
	if from.engine != measure.Native {
		foreign, near = from, to
	}
	switch {
	case from == to:
		p.DialTo, p.Either = false, false
		if from.engine != measure.Native {
			return p, h.errorf(where, "the other end is local", "%s cannot be measured against itself", clip(from.Name))
		}
	case foreign.engine != measure.Native:
		if near.Name != Local {
			return p, h.errorf(where, "its other end is local", "%s has no agent: it is measured only from this machine, not against %s", clip(foreign.Name), clip(near.Name))
		}
		p.Engine, p.DialTo, p.Either = foreign.engine, foreign == from, false
	case from.Name == Local || to.Name == Local:
		dialTo := to.Name == Local
		if listen == listenFrom && !dialTo || listen == listenTo && dialTo {
			return p, h.errorf(where, "leave listen out, or take either", "local opens no port: it dials %s", clip(map[bool]string{true: from.Name, false: to.Name}[dialTo]))
		}
		p.DialTo, p.Either = dialTo, false
	}
	return p, nil
}
