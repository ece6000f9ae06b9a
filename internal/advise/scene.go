package advise

import (
	"cmp"
	"math"
	"net/netip"
	"slices"
	"strings"

	"thru/internal/measure"
	"thru/internal/stat"
)

// scene is a document with what several rules ask of it.
type scene struct {
	doc   *measure.Document
	hosts []*host
	kept  []string // ids of the proposals that were kept
	ways  []*way   // directions, what needs help most first
}

// way is one direction of the data.
type way struct {
	*scene
	from, to *host
	cell     *measure.Cell // its last measurement; nil: none
	path     *measure.Path // that was probed; nil: none
	there    *measure.OneWay
	back     *measure.OneWay
}

func newScene(doc *measure.Document) *scene {
	sc := &scene{doc: doc}
	for i := range doc.EndPoints {
		if e := &doc.EndPoints[i]; sc.host(e.Name) == nil {
			sc.hosts = append(sc.hosts, newHost(e))
		}
	}
	for i := range doc.Cells {
		if c := &doc.Cells[i]; isMain(c) {
			sc.way(c.From, c.To).cell = c
		}
	}
	for i := range doc.Paths {
		p := &doc.Paths[i]
		sc.way(p.From, p.To).probed(p, &p.Forward, &p.Back)
		sc.way(p.To, p.From).probed(p, &p.Back, &p.Forward)
	}
	slices.SortStableFunc(sc.ways, func(a, b *way) int {
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), cmp.Compare(a.goodput(), b.goodput()))
	})
	return sc
}

// isMain tells of a cell that says what a direction carries: no experiment, no
// run of a comparison, and no short figure beside the main one.
func isMain(c *measure.Cell) bool {
	return !c.Beside && (c.Experiment == "" || c.Experiment == "base") && c.Spec.Traffic == measure.Bulk
}

// rank puts what is held back before what is well, and both before what was not measured.
func (w *way) rank() int {
	switch {
	case w.cell == nil || len(w.cell.Findings) == 0:
		return 2
	case w.cell.Findings[0].Healthy:
		return 1
	}
	return 0
}

// way between two end points; a new one where there is none.
func (sc *scene) way(from, to string) *way {
	for _, w := range sc.ways {
		if w.from.name == from && w.to.name == to {
			return w
		}
	}
	w := &way{scene: sc, from: sc.named(from), to: sc.named(to)}
	sc.ways = append(sc.ways, w)
	return w
}

// probed adds what a probe of the path saw.
func (w *way) probed(p *measure.Path, there, back *measure.OneWay) {
	w.path, w.there, w.back = p, there, back
}

// host of that name; nil where the document has none.
func (sc *scene) host(name string) *host {
	i := slices.IndexFunc(sc.hosts, func(h *host) bool { return h.name == name })
	if i < 0 {
		return nil
	}
	return sc.hosts[i]
}

// named is never nil: of an end point that the document does not describe only
// the name is known.
func (sc *scene) named(name string) *host {
	h := sc.host(name)
	if h == nil {
		h = newHost(&measure.EndPoint{Name: name})
		sc.hosts = append(sc.hosts, h)
	}
	return h
}

// isOurs tells whether a host is the one that the command runs at: a document
// names that first.
func (sc *scene) isOurs(h *host) bool {
	return len(sc.hosts) > 0 && sc.hosts[0] == h
}

// full tells that the link is full for certain in every direction that was measured.
func (sc *scene) full() bool {
	return sc.isMeasured() && !slices.ContainsFunc(sc.ways, func(w *way) bool { return w.isMeasured() && !w.full() })
}

// isMeasured tells whether any direction was.
func (sc *scene) isMeasured() bool { return slices.ContainsFunc(sc.ways, (*way).isMeasured) }

// isMeasured tells whether the direction was measured, and diagnosed.
func (w *way) isMeasured() bool { return w.cell != nil && len(w.cell.Findings) > 0 }

// full tells that the link is full for certain in this direction.
func (w *way) full() bool {
	return w.isMeasured() && w.cell.Findings[0].Cause == "link-rate" && w.cell.Findings[0].Confidence == measure.Certain
}

// mayBeHeld tells of a direction that a setting may hold back: not of one that is full,
// nor of one that carries no data where others do.
func (w *way) mayBeHeld() bool { return !w.full() && (w.cell != nil || !w.scene.isMeasured()) }

// goodput of the direction in bit/s; 0 where it is not known.
func (w *way) goodput() float64 {
	if w.cell == nil || w.cell.Goodput == nil {
		return 0
	}
	return sane(w.cell.Goodput.Value)
}

// mostRate bounds what a figure may say, in bit/s: more is a damaged document.
const mostRate = 1e14

// sane is a rate that arithmetic can be done with; else 0.
func sane(bps float64) float64 {
	if math.IsNaN(bps) || bps < 0 || bps > mostRate {
		return 0
	}
	return bps
}

// rtt of the idle path in ns; 0 where it is not known.
func (w *way) rtt() int64 {
	const most = 100e9
	switch {
	case w.path != nil && w.path.RTT != nil && w.path.RTT.P50 > 0 && w.path.RTT.P50 < most:
		return w.path.RTT.P50
	case w.cell != nil && w.cell.RTTIdle != nil && *w.cell.RTTIdle > 0 && *w.cell.RTTIdle < most:
		return *w.cell.RTTIdle
	}
	return 0
}

// ceiling is the most that TCP can carry over the link, in bit/s; 0 where its rate is not known.
func (w *way) ceiling() float64 {
	if w.cell == nil || w.cell.Ceiling == nil {
		return 0
	}
	return sane(w.cell.Ceiling.Bps)
}

// atMost is a rate that is expected, but no more than the link carries.
func (w *way) atMost(bps float64) float64 {
	if c := w.ceiling(); c > 0 {
		return min(bps, c)
	}
	return bps
}

// rate that a window is to hold, with the words for it: that of the link, else
// twice the best that was measured between the two.
func (w *way) rate() (bps float64, of string) {
	if w.cell != nil && w.cell.Ceiling != nil && w.cell.Ceiling.LinkBps > 0 && w.cell.Ceiling.LinkBps < mostRate {
		return float64(w.cell.Ceiling.LinkBps), "the link's rate"
	}
	if a, b := w.from.speed(w.face(w.from)), w.to.speed(w.face(w.to)); a > 0 && b > 0 {
		return float64(min(a, b)), "the interfaces' rate"
	}
	best := 0.0
	for i := range w.doc.Cells {
		c := &w.doc.Cells[i]
		if c.Goodput != nil && (c.From == w.from.name && c.To == w.to.name || c.From == w.to.name && c.To == w.from.name) {
			best = max(best, sane(c.Goodput.Value))
		}
	}
	if t := w.doc.Tuning; t != nil && sane(t.TargetBps) > best {
		return t.TargetBps, "the target"
	}
	return 2 * best, "twice the best that was measured"
}

// window is what one connection needs under way, in bytes: the product of rate
// and round trip in an even number of segments; 0 where one of them is not known.
func (w *way) window() int64 {
	bps, _ := w.rate()
	if bps <= 0 || w.rtt() <= 0 {
		return 0
	}
	streams := 1
	if w.cell != nil {
		streams = min(max(1, w.cell.Streams), measure.MaxStreams)
	}
	return int64(min(stat.WindowEven(stat.BDPBytes(bps, w.rtt())/float64(streams), usualMSS), measure.MaxWindow))
}

// usualMSS is that of MTU 1500 with timestamps.
const usualMSS = 1448

// carries is the most that a window carries in the direction, in bit/s; 0 where
// the round trip is not known.
func (w *way) carries(window int64) float64 {
	if w.rtt() <= 0 {
		return 0
	}
	return w.atMost(stat.WindowRate(float64(window), w.rtt()))
}

// hope is what a direction that carries next to nothing may carry: what the link
// does, else as much as the other direction; 0 where neither is known.
func (w *way) hope() float64 {
	if c := w.ceiling(); c > 0 {
		return c
	}
	if back := w.way(w.to.name, w.from.name).goodput(); back > w.goodput() {
		return back
	}
	return 0
}

// face is the interface by which a host of the direction reaches the other; "" not known.
func (w *way) face(h *host) string {
	leaves := w.there
	if h == w.to && h != w.from {
		leaves = w.back
	}
	if leaves == nil || leaves.Route == nil {
		return ""
	}
	return leaves.Route.Interface
}

// peer is the address by which a host of the direction reaches the other; invalid where it is not known.
func (w *way) peer(h *host) netip.Addr {
	if w.path == nil {
		return netip.Addr{}
	}
	text := w.path.FromAddr
	if h.name == w.path.From {
		text = w.path.ToAddr
	}
	if a, err := netip.ParseAddrPort(text); err == nil {
		return a.Addr().Unmap()
	}
	a, _ := netip.ParseAddr(text)
	return a.Unmap()
}

// routed tells that a router lies between.
func (w *way) routed() bool {
	for _, o := range []*measure.OneWay{w.there, w.back} {
		if o != nil && o.Route != nil && o.Route.Gateway != "" {
			return true
		}
	}
	return false
}

// local tells that both ends are one machine.
func (w *way) local() bool { return w.from == w.to }

// best is the fastest measurement of the same traffic in this direction that
// fits; nil where there is none. What a tuning measured before is of another
// state of the hosts.
func (w *way) best(fits func(*measure.Cell) bool) *measure.Cell {
	var best *measure.Cell
	for i := range w.doc.Cells {
		c := &w.doc.Cells[i]
		if w.cell == nil || c == w.cell || c.From != w.from.name || c.To != w.to.name || c.Protocol != w.cell.Protocol || c.Goodput == nil || strings.HasPrefix(c.Experiment, "tune-") || !fits(c) {
			continue
		}
		if sane(c.Goodput.Value) > 0 && (best == nil || c.Goodput.Value > best.Goodput.Value) {
			best = c
		}
	}
	return best
}
