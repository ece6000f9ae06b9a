package planfile

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/plan"
	"thru/internal/plan/option"
	"thru/internal/unit"
)

// target is an entry of `targets`.
type target struct {
	*node
	plan.Target
}

// demand is a key of a target: which part of the result it judges, and how its value is read.
type demand struct {
	key, example string
	of           string
	read         func(text string) (figure string, wanted float64, err error)
}

// Figures of a target, as in stat.Goal.
const (
	figureGoodput  = "goodput_bps"
	figureShare    = "share_pct"
	figureRTT      = "rtt_loaded_ns"
	figureLoss     = "loss_pct"
	figureFairness = "jain_fairness"
)

func demands() []demand {
	return []demand{
		{"aggregate", `">= 9G"`, plan.TargetTotal, rateOrShare},
		{"pair", `">= 95%"`, plan.TargetPair, rateOrShare},
		{"host", `">= 9G"`, plan.TargetHost, rateOrShare},
		{"loss", `"<= 0.1%"`, plan.TargetPair, func(text string) (string, float64, error) {
			x, err := unit.ParsePercent(text)
			return figureLoss, x, err
		}},
		{"rtt_loaded", `"<= 5ms"`, plan.TargetPair, func(text string) (string, float64, error) {
			d, err := unit.ParseDuration(text)
			return figureRTT, float64(d), err
		}},
		{"fairness", `">= 0.9"`, plan.TargetTotal, func(text string) (string, float64, error) {
			x, err := strconv.ParseFloat(text, 64)
			if err != nil || !(x >= 0 && x <= 1) {
				err = fmt.Errorf("it is not between 0 and 1")
			}
			return figureFairness, x, err
		}},
	}
}

// rateOrShare reads a rate, or a share of the ceiling.
func rateOrShare(text string) (string, float64, error) {
	if strings.HasSuffix(text, "%") {
		x, err := unit.ParsePercent(text)
		return figureShare, x, err
	}
	n, err := unit.ParseRate(text)
	return figureGoodput, float64(n), err
}

// mostTargets limits the targets of a plan.
const mostTargets = 1000

func (f *File) readTargets() (err error) {
	f.targets, err = entries(f, "targets", `[{pair: ">= 95%"}]`, mostTargets, func(target) string { return "" }, once{}, f.readTarget)
	return err
}

func (f *File) readTarget(x *node) (target, error) {
	t := target{node: x}
	known := []string{}
	for _, d := range demands() {
		known = append(known, d.key)
	}
	if err := f.keysOf(x, "a target", append(slices.Clone(known), "where", "rung")...); err != nil {
		return t, err
	}
	for _, d := range demands() {
		n := x.get(d.key)
		if n == nil {
			continue
		}
		if t.Figure != "" {
			return t, f.errorf(n, "make it two targets", "a target has one figure")
		}
		t.Of = d.of
		if err := f.readDemand(&t, d, n); err != nil {
			return t, err
		}
	}
	if t.Figure == "" {
		return t, f.errorf(x, `such as {pair: ">= 95%"}; there is `+fault.Or(known), "a target names no figure")
	}
	if n := x.get("rung"); n != nil {
		if !slices.ContainsFunc(f.rungs, func(r rung) bool { return r.name == n.text }) {
			return t, f.errorf(n, "it names one of rungs", "there is no rung %s", n.value())
		}
		t.Rung = n.text
	}
	if n := x.get("where"); n != nil {
		return t, f.readWhere(&t, n)
	}
	return t, nil
}

// readDemand reads ">= VALUE" or "<= VALUE".
func (f *File) readDemand(t *target, d demand, n *node) error {
	hint := fmt.Sprintf("%s takes a bound such as %s", d.key, d.example)
	text := strings.TrimSpace(n.text)
	least, isLeast := strings.CutPrefix(text, ">=")
	most, isMost := strings.CutPrefix(text, "<=")
	if n.kind != textNode || !isLeast && !isMost {
		return f.errorf(n, hint, "%s is %s: a bound begins with >= or <=", d.key, n.value())
	}
	if t.AtMost = isMost; isMost {
		least = most
	}
	var err error
	if t.Figure, t.Wanted, err = d.read(strings.TrimSpace(least)); err != nil {
		return f.errorf(n, hint, "%s %q: %w", d.key, clip(text), err)
	}
	return nil
}

// readWhere reads the axis values that a target is for.
func (f *File) readWhere(t *target, n *node) error {
	known, values := f.varied()
	if n.kind != mapNode || len(n.keys) == 0 || len(known) == 0 {
		return f.errorf(n, "such as where: {streams: 8}, with a value of axes", "where is %s, and the plan varies %s", n.value(), map[bool]string{true: "nothing", false: fault.Or(known)}[len(known) == 0])
	}
	for i, k := range n.keys {
		v := n.items[i]
		switch {
		case values[k.text] == nil:
			return f.errorf(k, meant(k.text, known), "where: the plan does not vary %q", clip(k.text))
		case !slices.Contains(values[k.text], v.text):
			return f.errorf(v, k.text+" is "+clip(fault.Or(values[k.text])), "where: %s is never %s", k.text, v.value())
		}
		t.Where = append(t.Where, measure.Axis{Name: k.text, Value: v.text})
	}
	return nil
}

// varied returns the settings that the plan varies, and their values.
func (f *File) varied() (names []string, values map[string][]string) {
	values = map[string][]string{}
	add := func(name string, list ...string) { names, values[name] = append(names, name), list }
	for _, a := range f.axes {
		add(a.key)
		for _, v := range a.values {
			values[a.key] = append(values[a.key], v.text)
		}
	}
	if len(f.variants) > 0 {
		add(variantAxis)
		for _, v := range f.variants {
			values[variantAxis] = append(values[variantAxis], v.name)
		}
	}
	if f.rungs != nil { // plan.Rungs
		add("streams", "1", "2", "4", "8")
		add("window", option.Default, "800K")
	}
	if f.base.Direction() == plan.BothDirections && values[directionAxis] == nil {
		add(directionAxis, plan.Forward, plan.Reverse)
	}
	return names, values
}
