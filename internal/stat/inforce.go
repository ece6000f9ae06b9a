package stat

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"thru/internal/measure"
	"thru/internal/unit"
)

// noTest returns why two variants are no A/B test; "" if they are: their figures are of different things, or the
// setting that distinguishes them was not in force.
func noTest(base, v variant) string {
	a, b := base.team.main(), v.team.main()
	x, y := a[0].Spec, b[0].Spec
	switch {
	case x.Traffic != y.Traffic || x.Protocol != y.Protocol:
		return "they are different kinds of traffic"
	case x.Rate != y.Rate || x.PerSecond != y.PerSecond:
		return "they request different rates, and each carries what was requested"
	}
	for _, t := range []variant{base, v} {
		for _, c := range t.team.main() {
			if used := otherControl(c); used != "" {
				return fmt.Sprintf("%s requested %s, but the kernel of %s used %s (congctl of its route takes precedence)", t.name, c.Spec.Congestion, c.From, used)
			}
		}
	}
	return sameInForce(a, b)
}

// main returns the flows whose figure is compared: those of data, else all.
func (t *team) main() []*measure.Cell {
	if len(t.bulk) > 0 {
		return t.bulk
	}
	return t.cells
}

// otherControl returns the congestion control that a sender's kernel used instead of the requested one; "" if it
// used that one, or does not report it.
func otherControl(c *measure.Cell) string {
	if c.Spec.Congestion == "" {
		return ""
	}
	for _, used := range inForce(c, CongestionOf) {
		if used != c.Spec.Congestion {
			return used
		}
	}
	return ""
}

// setting is one that kernels may apply differently from the request.
type setting struct {
	words string                                 // "both used %s"
	equal func(x *measure.Spec, of measure.Spec) // makes x request what of requests
	used  func(*measure.Evidence) string         // what was in force at an end; "" if that is not known
}

func settings() []setting {
	return []setting{
		{"both used %s", func(x *measure.Spec, of measure.Spec) { x.Congestion = of.Congestion }, CongestionOf},
		{"both used the data path %s", func(x *measure.Spec, of measure.Spec) { x.IO, x.IOForced = of.IO, of.IOForced }, func(e *measure.Evidence) string { return e.IO }},
		{"the kernels cut the windows of both to %s", func(x *measure.Spec, of measure.Spec) { x.Window = of.Window }, CutWindow},
	}
}

// sameInForce returns what two variants had in common if nothing that was in force differs; "" if something does,
// or if nothing was meant to differ.
func sameInForce(a, b []*measure.Cell) string {
	x, y := a[0].Spec, b[0].Spec
	why := ""
	for _, s := range settings() {
		sameSettings := y
		if s.equal(&sameSettings, x); reflect.DeepEqual(sameSettings, y) {
			continue
		}
		used := inForce(a[0], s.used)
		for _, c := range slices.Concat(a, b) {
			if len(used) == 0 || !slices.Equal(inForce(c, s.used), used) {
				return ""
			}
		}
		y = sameSettings
		why = cmp.Or(why, fmt.Sprintf(s.words, strings.Join(used, " and ")))
	}
	if why != "" && !reflect.DeepEqual(x, y) { // another setting distinguishes them
		return ""
	}
	return why
}

// inForce returns what the ends of a cell used in all its runs that have a rate, each once; none if an end that
// should report it does not.
func inForce(c *measure.Cell, used func(*measure.Evidence) string) []string {
	var all []string
	for i := range c.Runs {
		p := pairOf(c, &c.Runs[i])
		if _, ok := p.rate(); !ok {
			continue
		}
		for _, e := range []*measure.Evidence{p.sender, p.receiver} {
			if e == nil {
				continue
			}
			if text := used(e); text != "" {
				all = append(all, text)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// CongestionOf returns the congestion control of a sender; a receiver's has no effect.
func CongestionOf(e *measure.Evidence) string {
	for _, s := range streams(e) {
		if e.Sends && s.Congestion != "" {
			return s.Congestion
		}
	}
	return ""
}

// CutWindow returns the window that a kernel granted instead of a larger requested one. A default window grows as
// the kernel decides, so its initial size is not reported.
func CutWindow(e *measure.Evidence) string {
	for _, s := range streams(e) {
		if s.Window.Cut {
			return unit.Size(s.Window.Usable)
		}
	}
	return ""
}
