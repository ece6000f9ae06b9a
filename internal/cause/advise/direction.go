package advise

import (
	"cmp"
	"math"
	"net/netip"
	"slices"
	"strings"

	"thru/internal/cause/scene"
	"thru/internal/measure"
	"thru/internal/stat"
)

// advice is a document with the data that several rules need.
type advice struct {
	*scene.Scene
	doc        *measure.Document
	rules      []Rule
	kept       []string     // ids of the kept proposals
	directions []*Direction // the one most in need of help first
}

// Direction is one direction of the data.
type Direction struct {
	*advice
	From, To *scene.Host
	Cell     *measure.Cell // its last measurement; nil: none
	path     *measure.Path // the probed path; nil: none
	There    *measure.DirectionFacts
	Back     *measure.DirectionFacts
}

func newAdvice(doc *measure.Document) *advice {
	sc := &advice{Scene: scene.OfDocument(doc), doc: doc}
	for i := range doc.Cells {
		if c := &doc.Cells[i]; isMain(c) {
			sc.direction(c.From, c.To).Cell = c
		}
	}
	for i := range doc.Paths {
		p := &doc.Paths[i]
		sc.direction(p.From, p.To).probed(p, &p.Forward, &p.Back)
		sc.direction(p.To, p.From).probed(p, &p.Back, &p.Forward)
	}
	slices.SortStableFunc(sc.directions, func(a, b *Direction) int {
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), cmp.Compare(a.Goodput(), b.Goodput()))
	})
	return sc
}

// isMain reports whether a cell shows what a direction carries: no experiment, no run of a comparison, and no
// short baseline.
func isMain(c *measure.Cell) bool {
	return !c.Baseline && (c.Experiment == "" || c.Experiment == "base") && c.Spec.Traffic == measure.Bulk
}

// rank sorts limited directions before healthy ones, and both before unmeasured ones.
func (w *Direction) rank() int {
	switch {
	case w.Cell == nil || len(w.Cell.Findings) == 0:
		return 2
	case w.Cell.Findings[0].Healthy:
		return 1
	}
	return 0
}

// direction returns the one between two end points, a new one if there is none.
func (sc *advice) direction(from, to string) *Direction {
	for _, w := range sc.directions {
		if w.From.Name == from && w.To.Name == to {
			return w
		}
	}
	w := &Direction{advice: sc, From: sc.Named(from), To: sc.Named(to)}
	sc.directions = append(sc.directions, w)
	return w
}

// probed adds what a probe of the path saw.
func (w *Direction) probed(p *measure.Path, there, back *measure.DirectionFacts) {
	w.path, w.There, w.Back = p, there, back
}

// full reports whether the link is certainly full in every measured direction.
func (sc *advice) full() bool {
	return sc.isMeasured() && !slices.ContainsFunc(sc.directions, func(w *Direction) bool { return w.isMeasured() && !w.full() })
}

// isMeasured reports whether any direction was measured.
func (sc *advice) isMeasured() bool {
	return slices.ContainsFunc(sc.directions, (*Direction).isMeasured)
}

// isMeasured reports whether the direction was measured and diagnosed.
func (w *Direction) isMeasured() bool { return w.Cell != nil && len(w.Cell.Findings) > 0 }

// full reports whether the link is certainly full in this direction.
func (w *Direction) full() bool {
	return w.isMeasured() && w.Cell.Findings[0].Cause == "link-rate" && w.Cell.Findings[0].Confidence == measure.Certain
}

// MayBeLimited reports whether a setting may limit the direction: it is neither full, nor without data while
// others carry some.
func (w *Direction) MayBeLimited() bool {
	return !w.full() && (w.Cell != nil || !w.advice.isMeasured())
}

// Goodput returns the direction's goodput in bit/s; 0 if it is not known.
func (w *Direction) Goodput() float64 {
	if w.Cell == nil || w.Cell.Goodput == nil {
		return 0
	}
	return sane(w.Cell.Goodput.Value)
}

// sane returns a rate that is safe for arithmetic; else 0.
func sane(bps float64) float64 {
	if math.IsNaN(bps) || bps < 0 || bps > scene.MostRate {
		return 0
	}
	return bps
}

// RTT returns the round-trip time of the idle path in ns; 0 if it is not known.
func (w *Direction) RTT() int64 {
	const most = 100e9
	switch {
	case w.path != nil && w.path.RTT != nil && w.path.RTT.P50 > 0 && w.path.RTT.P50 < most:
		return w.path.RTT.P50
	case w.Cell != nil && w.Cell.RTTIdle != nil && *w.Cell.RTTIdle > 0 && *w.Cell.RTTIdle < most:
		return *w.Cell.RTTIdle
	}
	return 0
}

// Ceiling returns the most that TCP can carry over the link, in bit/s; 0 if its rate is not known.
func (w *Direction) Ceiling() float64 {
	if w.Cell == nil || w.Cell.Ceiling == nil {
		return 0
	}
	return sane(w.Cell.Ceiling.Bps)
}

// atMost limits an expected rate to the link's ceiling.
func (w *Direction) atMost(bps float64) float64 {
	if c := w.Ceiling(); c > 0 {
		return min(bps, c)
	}
	return bps
}

// Rate returns the rate for which a window is sized, with the words for it: that of the link, else twice the best
// measured between the two.
func (w *Direction) Rate() (bps float64, of string) {
	if w.Cell != nil && w.Cell.Ceiling != nil && w.Cell.Ceiling.LinkBps > 0 && w.Cell.Ceiling.LinkBps < scene.MostRate {
		return float64(w.Cell.Ceiling.LinkBps), "the link's rate"
	}
	if a, b := w.From.FaceOf(w.Face(w.From)).Speed(), w.To.FaceOf(w.Face(w.To)).Speed(); a > 0 && b > 0 {
		return float64(min(a, b)), "the interfaces' rate"
	}
	best := 0.0
	for i := range w.doc.Cells {
		c := &w.doc.Cells[i]
		if c.Goodput != nil && (c.From == w.From.Name && c.To == w.To.Name || c.From == w.To.Name && c.To == w.From.Name) {
			best = max(best, sane(c.Goodput.Value))
		}
	}
	if t := w.doc.Tuning; t != nil && sane(t.TargetBps) > best {
		return t.TargetBps, "the target"
	}
	return 2 * best, "twice the best measured rate"
}

// Window returns the window that each connection of the direction needs; 0 if rate or round-trip time is not known.
func (w *Direction) Window() int64 {
	bps, _ := w.Rate()
	streams := 1
	if w.Cell != nil {
		streams = w.Cell.Streams
	}
	return scene.NeededWindow(bps, w.RTT(), streams, scene.UsualMSS)
}

// Carries returns the highest rate of a window in the direction, in bit/s; 0 if the round-trip time is not known.
func (w *Direction) Carries(window int64) float64 {
	if w.RTT() <= 0 {
		return 0
	}
	return w.atMost(stat.WindowRate(float64(window), w.RTT()))
}

// Hope returns what a direction that carries almost nothing may carry: the link's ceiling, else the rate of the
// other direction; 0 if neither is known.
func (w *Direction) Hope() float64 {
	if c := w.Ceiling(); c > 0 {
		return c
	}
	if back := w.direction(w.To.Name, w.From.Name).Goodput(); back > w.Goodput() {
		return back
	}
	return 0
}

// Face returns the interface by which a host of the direction reaches the other; "" if not known.
func (w *Direction) Face(h *scene.Host) string {
	leaves := w.There
	if h == w.To && h != w.From {
		leaves = w.Back
	}
	if leaves == nil || leaves.Route == nil {
		return ""
	}
	return leaves.Route.Interface
}

// Peer returns the address by which a host of the direction reaches the other; invalid if not known.
func (w *Direction) Peer(h *scene.Host) netip.Addr {
	if w.path == nil {
		return netip.Addr{}
	}
	text := w.path.FromAddr
	if h.Name == w.path.From {
		text = w.path.ToAddr
	}
	if a, err := netip.ParseAddrPort(text); err == nil {
		return a.Addr().Unmap()
	}
	a, _ := netip.ParseAddr(text)
	return a.Unmap()
}

// Routed reports whether there is a router between the ends.
func (w *Direction) Routed() bool {
	for _, o := range []*measure.DirectionFacts{w.There, w.Back} {
		if o != nil && o.Route != nil && o.Route.Gateway != "" {
			return true
		}
	}
	return false
}

// Local reports whether both ends are one machine.
func (w *Direction) Local() bool { return w.From == w.To }

// Best returns the fastest measurement of the same traffic in this direction that fits; nil if there is none.
// Earlier measurements of a tuning are excluded: the hosts were in another state.
func (w *Direction) Best(fits func(*measure.Cell) bool) *measure.Cell {
	var best *measure.Cell
	for i := range w.doc.Cells {
		c := &w.doc.Cells[i]
		if w.Cell == nil || c == w.Cell || c.From != w.From.Name || c.To != w.To.Name || c.Protocol != w.Cell.Protocol || c.Goodput == nil || strings.HasPrefix(c.Experiment, "tune-") || !fits(c) {
			continue
		}
		if sane(c.Goodput.Value) > 0 && (best == nil || c.Goodput.Value > best.Goodput.Value) {
			best = c
		}
	}
	return best
}

// Both returns the ends of the direction, each once.
func Both(w *Direction) []*scene.Host {
	if w.Local() {
		return []*scene.Host{w.From}
	}
	return []*scene.Host{w.From, w.To}
}

// Receiving returns the host whose received packets a request is about: its own, else the receiver of the
// direction.
func (r Request) Receiving() *scene.Host {
	if r.At != nil {
		return r.At
	}
	return r.Direction.To
}
