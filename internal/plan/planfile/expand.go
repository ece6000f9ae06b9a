package planfile

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"thru/internal/measure"
	"thru/internal/plan"
	"thru/internal/unit"
)

// Limits of a plan.
const (
	mostCells = 20_000
	mostRuns  = 200_000
)

// Found is what is known of an end point after connecting it.
type Found struct {
	CPUs   int    // 0: not known, then the controller's number is used
	Engine string // engine of its data, if the address does not give it: of ESXi; else ""
}

// Expand returns the list of steps. fleets holds the hosts of the controllers that Controllers names. found
// returns what is known of an end point of the plan; nil: nothing yet.
func (f *File) Expand(fleets map[string][]Host, found func(endPoint string) Found) (plan.Plan, error) {
	h, err := f.resolve(fleets)
	if err != nil {
		return plan.Plan{}, err
	}
	for _, x := range h.byName {
		if found != nil {
			now := found(x.Name)
			x.cpus, x.engine = cmp.Or(now.CPUs, x.cpus), cmp.Or(now.Engine, x.engine)
		}
	}
	var p plan.Plan
	if f.rungs != nil {
		p, err = f.ladder(h)
	} else {
		p, err = f.measured(h)
	}
	if err != nil {
		return plan.Plan{}, err
	}
	p.Command, p.Name, p.Order, p.Seed, p.Gates, p.Link = "run", f.Name, f.order, seed(f.Name), f.gates, f.base.Link
	for _, t := range f.targets {
		p.Targets = append(p.Targets, t.Target)
	}
	if n := p.Runs(); n > mostRuns {
		return plan.Plan{}, f.errorf(f.root, "repeat less, or vary fewer things", "the plan has %d runs, more than %d", n, mostRuns)
	}
	if err := f.samePlace(h); err != nil {
		return plan.Plan{}, err
	}
	p.EndPoints, p.ManualSteps, p.Hypervisors = h.measured(), f.manualSteps(h), f.hypervisors
	p.Warnings = append(h.warnings, f.warnings(h, p)...)
	return p, nil
}

// samePlace refuses two names for one agent, which runs one test at a time. A pair of them would be a path
// within one host.
func (f *File) samePlace(h *hosts) error {
	places := map[string]*host{}
	for _, x := range h.list {
		if !x.used || x.engine != measure.Native {
			continue
		}
		other := places[x.At]
		if other == nil {
			places[x.At] = x
			continue
		}
		at := slices.IndexFunc(f.endPoints, func(e endPoint) bool { return e.Name == x.Name })
		where := f.root
		if at >= 0 {
			where = f.endPoints[at].node
		}
		return f.errorf(where, "name it once; a path within one host is the pair of an end point with itself", "%s and %s are the same end point", clip(other.Name), clip(x.Name))
	}
	return nil
}

// seed returns the seed of the order of blocks: the same plan has the same order.
func seed(name string) uint64 {
	hash := fnv.New64a()
	hash.Write([]byte(name))
	return hash.Sum64()
}

// measured returns the plan of the pairs.
func (f *File) measured(h *hosts) (plan.Plan, error) {
	list, turned, err := f.expandPairs(h)
	if err != nil {
		return plan.Plan{}, err
	}
	b := builder{File: f, hosts: h, points: f.points(), turned: turned, many: len(list) > 1}
	if err := b.count(len(list)); err != nil {
		return plan.Plan{}, err
	}
	rounds := [][]plan.Pair{list}
	if f.order != plan.OrderSimultaneous {
		rounds = pack(list, f.atOnce, func(name string) string { return h.byName[name].At })
	}
	for i, pairs := range rounds {
		b.round = ""
		if len(pairs) > 1 && len(rounds) > 1 {
			b.round = fmt.Sprintf("round %d of %d", i+1, len(rounds))
		}
		for j, p := range b.points {
			if err := b.add(pairs, p, j == 0); err != nil {
				return plan.Plan{}, err
			}
		}
	}
	return plan.Plan{Steps: b.steps, Repeat: f.repeats()}, nil
}

// pack distributes pairs over rounds of at most n pairs that share no host. A pair goes to the first round
// with room for it.
func pack(list []plan.Pair, n int, place func(string) string) [][]plan.Pair {
	if n == 1 {
		return slices.Collect(slices.Chunk(list, 1))
	}
	type round struct {
		pairs []plan.Pair
		busy  map[string]bool
	}
	var rounds []*round
	full := 0                  // all earlier rounds are full
	always := map[string]int{} // all earlier rounds contain the host
	for _, p := range list {
		a, b := place(p.From), place(p.To)
		i := max(full, always[a], always[b])
		for i < len(rounds) && (len(rounds[i].pairs) == n || rounds[i].busy[a] || rounds[i].busy[b]) {
			i++
		}
		if i == len(rounds) {
			rounds = append(rounds, &round{busy: map[string]bool{}})
		}
		r := rounds[i]
		r.pairs, r.busy[a], r.busy[b] = append(r.pairs, p), true, true
		for full < len(rounds) && len(rounds[full].pairs) == n {
			full++
		}
		for _, x := range []string{a, b} {
			for always[x] < len(rounds) && rounds[always[x]].busy[x] {
				always[x]++
			}
		}
	}
	out := make([][]plan.Pair, len(rounds))
	for i, r := range rounds {
		out[i] = r.pairs
	}
	return out
}

// builder collects the steps.
type builder struct {
	*File
	*hosts
	points []point
	turned map[[2]string]bool // pairs of a mesh that repeat two hosts in the other order
	many   bool               // the plan has several pairs: a step of one pair names it
	round  string             // "round 2 of 7", if there are several
	steps  []plan.Step
}

// count refuses a plan of too many cells.
func (b *builder) count(pairs int) error {
	cells := 0
	for _, p := range b.points {
		t, err := b.traffic(p)
		if err != nil {
			return err
		}
		n := pairs * t.EndPoints
		if isBidirectional(t) {
			n = 2 * (pairs - len(b.turned)) * t.EndPoints
		}
		if cells += n; cells > mostCells {
			return b.File.errorf(b.root, "measure fewer hosts, or vary fewer things at a time", "the plan has more than %d cells: %d pairs, %d combinations of axes", mostCells, pairs, len(b.points))
		}
	}
	return nil
}

// add adds the steps of some pairs at a point: one step for each direction that is measured by itself. It
// measures the idle path once a round, at the first point.
func (b *builder) add(pairs []plan.Pair, p point, first bool) error {
	t, err := b.traffic(p)
	if err != nil {
		return err
	}
	if isBidirectional(t) {
		pairs = slices.DeleteFunc(slices.Clone(pairs), func(p plan.Pair) bool { return b.turned[[2]string{p.From, p.To}] })
	}
	var labels []string // in order of appearance
	merged := map[string]*flowSet{}
	for _, pair := range pairs {
		steps, err := b.flows(pair, p, t)
		if err != nil {
			return err
		}
		for _, s := range steps {
			set := merged[s.Label]
			if set == nil {
				set = &flowSet{step: s, kind: s.Label}
				set.step.Specs = nil
				merged[s.Label], labels = set, append(labels, s.Label)
			}
			copies := t.EndPoints
			if s.Baseline {
				copies = 1
			}
			set.add(s.Specs, copies)
		}
	}
	for _, l := range labels {
		if merged[l].step.Baseline && !first {
			continue
		}
		s := b.finish(merged[l], p, t, len(pairs))
		if err := b.collide(s, p); err != nil {
			return err
		}
		b.steps = append(b.steps, s)
	}
	return nil
}

// flows returns the steps of one pair alone.
func (b *builder) flows(pair plan.Pair, p point, t plan.Request) ([]plan.Step, error) {
	from, to := b.byName[pair.From], b.byName[pair.To]
	t.LocalCPUs, t.PeerCPUs = from.cpus, to.cpus
	if from.engine != measure.Native { // assume as many CPUs as at the other end, as in `thru test`
		t.LocalCPUs = to.cpus
	}
	if to.engine != measure.Native {
		t.PeerCPUs = from.cpus
	}
	for _, h := range []*host{from, to} {
		if t.CPUs > h.cpus && h.cpus > 0 {
			return nil, b.File.errorf(b.axisValue(p, "cpus"), "take at most as many as each end has", "%s has %s: it cannot be confined to %d", clip(h.Name), unit.Plural(h.cpus, "CPU"), t.CPUs)
		}
	}
	steps, err := pair.Steps(t)
	if err != nil {
		return nil, b.contradiction(err, p)
	}
	return steps, nil
}

// flowSet collects the flows of a step.
type flowSet struct {
	step plan.Step
	kind string // the label of the step of one pair
	of   []int  // each flow's number among the copies of its pair, from 1
	all  []int  // number of copies of that pair
}

// add adds the flows of a pair, copies times.
func (x *flowSet) add(specs []measure.Spec, copies int) {
	for i := range copies {
		for _, s := range specs {
			x.step.Specs = append(x.step.Specs, s)
			x.of, x.all = append(x.of, i+1), append(x.all, copies)
		}
	}
}

// finish names the step and its flows.
func (b *builder) finish(x *flowSet, p point, t plan.Request, pairs int) plan.Step {
	s := x.step
	s.Independent = pairs > 1 || t.EndPoints > 1 && !s.Baseline || isTwo(s)
	streams := s.Specs[0].Streams
	if slices.ContainsFunc(s.Specs, func(o measure.Spec) bool { return o.Streams != streams && o.Traffic == s.Specs[0].Traffic }) {
		streams = 0
	}
	if s.Baseline {
		streams = 0
	}
	what := []string{p.label(t, streams)}
	if s.Baseline {
		what = nil
	}
	what = append(what, direction(t, plan.Step{Label: x.kind}))
	s.Axes = p.axes
	if t.Direction() == plan.BothDirections && t.Traffic == measure.Bulk && !s.Baseline {
		s.Axes = append(slices.Clip(p.axes), measure.Axis{Name: directionAxis, Value: x.kind})
	}
	if s.Baseline {
		s.Axes = nil
	}
	var many []string
	if pairs > 1 {
		many = append(many, unit.Plural(pairs, "pair"), b.round)
	}
	if t.EndPoints > 1 && len(b.axes) == 0 && !s.Baseline {
		many = append(many, unit.Plural(t.EndPoints, "end point")+" a host")
	}
	s.Label = cmp.Or(joined(append(many, what...)...), x.kind)
	alone := pairs == 1 && b.many
	if s.Independent || alone {
		s.Labels = flowLabels(x, s, cmp.Or(joined(what...), s.Label))
	}
	if alone {
		s.Label = joined(s.Specs[0].From+" -> "+s.Specs[0].To, s.Label)
	}
	return s
}

// isTwo reports whether a step has two independent data flows. Their sum covers only the time in which both
// run, so they need a common start as the flows of many pairs do.
func isTwo(s plan.Step) bool {
	n := 0
	for _, o := range s.Specs {
		if o.Duplex || o.Engine != measure.Native {
			return false
		}
		if o.Traffic == measure.Bulk {
			n++
		}
	}
	return n > 1
}

// flowLabels returns the label of each flow of a step with many flows.
func flowLabels(x *flowSet, s plan.Step, label string) []string {
	out := make([]string, len(s.Specs))
	for i, o := range s.Specs {
		name := label
		switch {
		case o.Traffic != measure.Bulk && !s.Baseline && s.Specs[0].Traffic == measure.Bulk:
			name = plan.LoadedLatency
		case i > 0 && o.From == s.Specs[i-1].To && o.To == s.Specs[i-1].From && x.of[i] == x.of[i-1] && strings.HasPrefix(x.kind, "both"):
			name = joined(label, "back")
		}
		if x.all[i] > 1 {
			name = joined(name, fmt.Sprintf("end point %d of %d", x.of[i], x.all[i]))
		}
		out[i] = name
	}
	return out
}

// joined joins the parts that are not empty.
func joined(parts ...string) string {
	return strings.Join(slices.DeleteFunc(slices.Clone(parts), func(s string) bool { return s == "" }), ", ")
}

// collide refuses simultaneous flows to a program that is no agent: it runs one test at a time.
func (b *builder) collide(s plan.Step, p point) error {
	if !s.Independent {
		return nil
	}
	busy := map[string]bool{}
	for i, o := range s.Specs {
		far := o.From
		if b.byName[o.To].engine != measure.Native {
			far = o.To
		}
		back := i > 0 && s.Specs[i-1].From == o.To // reverse of the previous flow, and one test with it
		if o.Engine != measure.Native && busy[far] && !back {
			return b.File.errorf(b.axisValue(p, "end_points"), "`order: sequential` without at_once measures one pair at a time", "%s takes one test at a time: several flows at once cannot use it", clip(far))
		}
		busy[far] = busy[far] || o.Engine != measure.Native
	}
	return nil
}

// repeats returns how often to measure the plan.
func (f *File) repeats() plan.Repeat {
	t := f.base
	if f.hasten > 0 {
		t.Repeat, t.PrecisionPct = 1, 0
	}
	return t.Repeats()
}

// measured returns the end points that are part of a pair.
func (h *hosts) measured() []plan.EndPoint {
	var list []plan.EndPoint
	if x := h.byName[Local]; x.used && !slices.Contains(h.list, x) {
		list = append(list, x.EndPoint)
	}
	for _, x := range h.list {
		if x.used {
			list = append(list, x.EndPoint)
		}
	}
	return list
}

// warnings returns what the author of the plan should know.
func (f *File) warnings(h *hosts, p plan.Plan) []string {
	var out, idle []string
	for _, x := range h.list {
		if !x.used {
			idle = append(idle, clip(x.Name))
		}
	}
	if n := len(idle); n > 0 {
		out = append(out, fmt.Sprintf("in no pair: %s", strings.Join(idle[:min(n, 10)], ", ")+map[bool]string{true: " ..."}[n > 10]))
	}
	own, unknown := map[string]bool{}, false
	for _, s := range p.Steps {
		for _, o := range s.Specs {
			if o.From == o.To && o.From != Local && s.Rung == "" && !own[o.From] {
				own[o.From] = true
				out = append(out, clip(o.From)+" against itself is a path within the host")
			}
			known := func(name string) bool { return h.byName[name].cpus > 0 || h.byName[name].engine != measure.Native }
			unknown = unknown || s.Rung == "" && !(known(o.From) && known(o.To))
		}
	}
	if f.hasten > 0 {
		out = append(out, "shortened by -t: the runs are too short for valid figures")
	} else if (f.order == plan.OrderInterleaved || f.inBlocks()) && f.base.Repeat < usualBlocks {
		out = append(out, fmt.Sprintf("fewer than %d repeats cannot separate variants with 95%% confidence", usualBlocks))
	}
	if unknown && f.streamsOpen() {
		out = append(out, "streams: the number depends on the CPUs of the ends, which are not known yet")
	}
	return out
}

// streamsOpen reports whether the number of streams of some traffic depends on the CPUs.
func (f *File) streamsOpen() bool {
	for _, p := range f.points() {
		if t, err := f.traffic(p); err == nil && t.Streams == 0 && t.CPUs == 0 && t.Traffic == measure.Bulk && t.Protocol != measure.UDP {
			return true
		}
	}
	return false
}
