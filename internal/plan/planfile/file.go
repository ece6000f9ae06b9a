// Package planfile reads plan files (docs/plan.md): YAML that names the end points to measure, the traffic,
// and the order. Parse checks all that needs no network, and reports mistakes with their position; Expand
// returns the list of steps. The same file gives the same plan on every machine.
package planfile

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/plan"
	"thru/internal/plan/option"
)

// Version is the version of the format: the value of the key `thru`.
const Version = 1

// Local is this machine's name in a plan.
const Local = "local"

// usualBlocks is the default of repeats for variants: the fewest blocks from which an A/B comparison can
// detect a change with 95% confidence (methods.md).
const usualBlocks = 6

// File is a parsed plan file. Expand makes a plan of it.
type File struct {
	Name string // of the plan

	*source
	root        *node
	controller  string
	endPoints   []endPoint
	pairs       []pairs
	base        plan.Request
	axes        []axis
	variants    []variant
	order       string
	atOnce      int
	gates       string
	targets     []target
	hypervisors []string // hypervisors
	rungs       []rung
	watch       Watch
	hasten      time.Duration
}

// endPoint is an entry of `end_points`: one end point by its name, or the controller's hosts with some
// labels.
type endPoint struct {
	*node
	plan.EndPoint
	controller string // where to look it up
	match      selector
}

// variant is one of the alternatives that a plan compares.
type variant struct {
	name     string
	settings *node
	manual   *plan.ManualStep // nil: nothing to do
}

// axis is a varied setting and its values.
type axis struct {
	key    string
	values []*node
}

// rung is one path of a ladder.
type rung struct {
	*node
	name     string
	from, to *node
	listen   string
	link     plan.Link
}

// fileKeys returns the keys of the file.
func fileKeys() []string {
	return []string{"thru", "name", "controller", "end_points", "pairs", "traffic", "axes", "variants", "order", "at_once",
		"repeat", "precision", "gates", "link_rate", "targets", "rungs", "hypervisors", "watch"}
}

// Parse reads a plan file. Its errors are usage errors that begin with NAME:LINE:COLUMN and have a hint. It
// reports all independent mistakes, joined.
func Parse(name string, text []byte) (*File, error) {
	f := &File{source: &source{name, "plan"}, base: plan.Request{OneWay: true, EndPoints: 1}}
	root, err := f.parseTree(trimMark(string(text)))
	if err != nil {
		return nil, err
	}
	if root == nil {
		return nil, f.errorf(&node{line: 1, col: 1}, starterHint, "the plan is empty")
	}
	f.root = root
	unknown := f.keysOf(root, "the plan", fileKeys()...)
	if root.kind != mapNode {
		return nil, unknown
	}
	if err := errors.Join(unknown, f.readHead(), f.readEndPoints(), f.readHypervisors(), f.readSteps(), f.readWatch()); err != nil {
		return nil, err
	}
	if err := f.try(); err != nil {
		return nil, err
	}
	return f, nil
}

// readSteps reads what to measure between which ends, and how often.
func (f *File) readSteps() error {
	if err := f.readRungs(); err != nil {
		return err // the rest depends on them
	}
	what, how := errors.Join(f.readPairs(), f.readTraffic()), errors.Join(f.readAxes(), f.readVariants())
	if how == nil {
		how = f.countPoints()
	}
	if how == nil {
		how = errors.Join(f.readOrder(), f.readRepeat(), f.readTargets())
	}
	return errors.Join(what, how)
}

// trimMark removes the UTF-8 byte order mark that some editors write.
func trimMark(text string) string {
	if len(text) >= 3 && text[:3] == "\xef\xbb\xbf" {
		return text[3:]
	}
	return text
}

// at returns the value of a key, and whether the file has it.
func (f *File) at(key string) (*node, bool) {
	n := f.root.get(key)
	return n, n != nil
}

func (f *File) readHead() error {
	n, ok := f.at("thru")
	if !ok {
		return f.errorf(f.root, "begin the file with `thru: 1`", "the version of the format is missing")
	}
	if n.kind == textNode && n.text == "1" {
		return f.errorf(n, "write it without quotes: `thru: 1`", "thru is a text, not a number")
	}
	if n.kind != numberNode || n.text != "1" {
		return f.errorf(n, "this version of thru reads `thru: 1`", "thru is %s: a format that is not known", n.value())
	}
	f.Name = "plan"
	for _, x := range []field{
		{"name", into(&f.Name, f.planName)},
		{"controller", into(&f.controller, func(n *node) (string, error) { return f.nameOf(n, "controller") })},
		{"gates", f.choose(&f.gates, "gates", "on", plan.GatesOff, plan.GatesForce)},
	} {
		if n, ok := f.at(x.key); ok {
			if err := x.read(n); err != nil {
				return err
			}
		}
	}
	f.gates = strings.TrimPrefix(f.gates, "on")
	return nil
}

// mostPlanName limits the name of a plan, in letters.
const mostPlanName = 120

// planName reads the name of the plan, a title.
func (f *File) planName(n *node) (string, error) {
	control := func(r rune) bool { return !unicode.IsPrint(r) }
	if n.kind != textNode || strings.TrimSpace(n.text) == "" || utf8.RuneCountInString(n.text) > mostPlanName || strings.ContainsFunc(n.text, control) {
		return "", f.errorf(n, fmt.Sprintf("such as `name: two sites`, of at most %d letters; one that looks like a number needs quotes", mostPlanName), "the name is %s", n.value())
	}
	return n.text, nil
}

// linkRate reads the rate of a path.
func (f *File) linkRate(n *node) (plan.Link, error) {
	var r plan.Request
	err := f.apply(&r, "link_rate", n)
	return r.Link, err
}

func (f *File) readTraffic() error {
	f.base.Duration, f.base.Interval = plan.TestTime, time.Second
	if f.rungs != nil {
		f.base.Duration = plan.LadderTime
	}
	n, ok := f.at("traffic")
	if !ok {
		return nil
	}
	unknown := f.keysOf(n, "traffic", option.Keys(option.OfTraffic)...)
	if err := f.clash(n); err != nil {
		return err
	}
	if f.rungs != nil {
		for i, k := range n.keys {
			if slices.Contains([]string{"streams", "window", "end_points"}, k.text) {
				return f.errorf(k, "leave it out; for other cells take pairs and axes", "a rung has 1, 2, 4 and 8 streams with the default window and with 800K: %s does not go with rungs", k.text)
			}
			if k.text == "direction" && n.items[i].text != plan.Forward && n.items[i].text != plan.Reverse {
				return f.errorf(n.items[i], "take forward or reverse", "a rung is measured in one direction")
			}
		}
	}
	return errors.Join(unknown, f.settle(&f.base, n))
}

// mostValues limits the values of an axis, and the variants.
const mostValues = 256

func (f *File) readAxes() error {
	n, ok := f.at("axes")
	if !ok {
		return nil
	}
	if f.rungs != nil {
		return f.errorf(n, "a rung has its own cells; for a sweep take pairs instead of rungs", "axes do not go with rungs")
	}
	if err := f.keysOf(n, "axes", option.Keys(option.OfTraffic)...); err != nil {
		return err
	}
	if len(n.keys) == 0 {
		return f.errorf(n, "such as `axes: {streams: [1, 2, 4, 8]}`; leave the key out for none", "axes is empty")
	}
	for i, k := range n.keys {
		values, err := f.list(n.items[i], k.text, "[1, 2, 4]")
		if err != nil {
			return err
		}
		if k.text == "direction" && slices.ContainsFunc(values, func(v *node) bool { return v.text == plan.BothDirections }) {
			return f.errorf(n.items[i], "as values: forward, reverse and bidir", "both is forward and reverse already")
		}
		if len(values) > mostValues {
			return f.errorf(n.items[i], "take fewer", "an axis has at most %d values", mostValues)
		}
		for j, v := range values {
			if err := f.apply(&plan.Request{}, k.text, v); err != nil {
				return err
			}
			if slices.ContainsFunc(values[:j], func(o *node) bool { return o.text == v.text }) {
				return f.errorf(v, "remove it", "%s has %s twice", k.text, v.value())
			}
		}
		f.axes = append(f.axes, axis{k.text, values})
	}
	return nil
}

func (f *File) readVariants() error {
	n, ok := f.at("variants")
	if !ok {
		return nil
	}
	if f.rungs != nil {
		return f.errorf(n, "for variants take pairs instead of rungs", "variants do not go with rungs")
	}
	var err error
	f.variants, err = each(f.source, n, "variants", "[{name: cubic, congestion: cubic}, {name: bbr, congestion: bbr}]", mostValues, f.readVariant)
	names := map[string]bool{}
	for i, v := range f.variants {
		if err == nil && names[v.name] {
			return f.errorf(n.items[i].get("name"), "give each variant its own name", "the variant %q exists twice", clip(v.name))
		}
		names[v.name] = true
	}
	if err == nil && len(f.variants) < 2 {
		return f.errorf(n, "name the variants to compare", "there must be 2 to %d variants, not %d", mostValues, len(f.variants))
	}
	return err
}

func (f *File) readVariant(x *node) (variant, error) {
	v := variant{settings: &node{kind: mapNode, line: x.line, col: x.col}}
	if err := f.keysOf(x, "a variant", append([]string{"name", manualKey}, option.Keys(option.OfTraffic)...)...); err != nil {
		return v, err
	}
	for i, k := range x.keys {
		value := x.items[i]
		if k.text == "name" {
			var err error
			if v.name, err = f.titleOf(value, "variant", "such as {name: bbr, congestion: bbr}"); err != nil {
				return v, err
			}
			continue
		}
		if k.text == manualKey {
			var err error
			if v.manual, err = f.readManual(value); err != nil {
				return v, err
			}
			continue
		}
		if slices.ContainsFunc(f.axes, func(a axis) bool { return a.key == k.text }) {
			return v, f.errorf(k, "vary it in one place", "%s is an axis too", k.text)
		}
		if k.text == "direction" && value.text == plan.BothDirections {
			return v, f.errorf(value, "take forward, reverse or bidir", "a variant has one direction")
		}
		if err := f.apply(&plan.Request{}, k.text, value); err != nil {
			return v, err
		}
		v.settings.keys, v.settings.items = append(v.settings.keys, k), append(v.settings.items, value)
	}
	if v.name == "" {
		return v, f.errorf(x, "such as {name: bbr, congestion: bbr}", "a variant has no name")
	}
	return v, nil
}

func (f *File) readOrder() error {
	f.order, f.atOnce = plan.OrderSequential, 1
	if err := f.checkManual(); err != nil {
		return err
	}
	if n, ok := f.at("order"); ok {
		word, err := f.oneOf(n, "order", plan.OrderSequential, plan.OrderSimultaneous, plan.OrderInterleaved, plan.OrderBlocks, plan.OrderThereAndBack)
		if err != nil {
			return err
		}
		f.order = word
		switch {
		case f.rungs != nil && word != plan.OrderSequential:
			return f.errorf(n, "leave it out: rungs are measured one after the other", "the order %s does not go with rungs", word)
		case word == plan.OrderInterleaved && len(f.variants) == 0 && len(f.axes) == 0:
			return f.errorf(n, "name variants, such as variants: [{name: cubic, congestion: cubic}, {name: bbr, congestion: bbr}]", "interleaved: there is nothing to compare")
		}
		if err := f.checkBlocks(n); err != nil {
			return err
		}
	}
	if n, ok := f.at("at_once"); ok {
		var err error
		if f.atOnce, err = strconv.Atoi(n.text); err != nil || n.kind != numberNode || f.atOnce < 1 {
			return f.errorf(n, "at_once takes a whole number such as 16", "at_once is %s", n.value())
		}
		if f.order == plan.OrderSimultaneous || f.rungs != nil {
			return f.errorf(n, "leave it out, or take `order: sequential`", "at_once does not go with %s", map[bool]string{true: "rungs", false: "simultaneous: all pairs run at once"}[f.rungs != nil])
		}
	}
	return nil
}

func (f *File) readRepeat() error {
	if f.order == plan.OrderInterleaved || f.inBlocks() {
		f.base.Repeat = usualBlocks
	}
	precision, ok := f.at("precision")
	if ok && f.inBlocks() {
		return f.errorf(precision, "give the number of repeats: repeat: 10", "precision does not go with blocks: each block is measured once")
	}
	var all []error
	for _, key := range option.Keys(option.OfPlan) {
		if n, ok := f.at(key); ok {
			all = append(all, f.apply(&f.base, key, n))
		}
	}
	return errors.Join(all...)
}

// Hasten limits every run to d, without a ramp, and runs as few repeats as possible: to try out a plan.
func (f *File) Hasten(d time.Duration) { f.hasten = d }

// Controllers returns the names of the controllers whose hosts Expand needs.
func (f *File) Controllers() []string {
	var names []string
	for _, e := range f.endPoints {
		if e.controller != "" && !slices.Contains(names, e.controller) {
			names = append(names, e.controller)
		}
	}
	return names
}

// try finds contradictions in the traffic, and if the plan needs no controller, in all the rest.
func (f *File) try() error {
	for _, p := range f.points() {
		t, err := f.traffic(p)
		if err != nil {
			return err
		}
		t.LocalCPUs, t.PeerCPUs = 2, 2
		if f.rungs != nil {
			t.Streams = 1
		}
		if _, err := (plan.Pair{From: Local, To: "there"}).Steps(t); err != nil {
			return f.contradiction(err, p)
		}
	}
	if len(f.Controllers()) > 0 {
		return nil
	}
	_, err := f.Expand(nil, nil)
	return err
}

// contradiction converts an error of package plan about the traffic at a point of the axes.
func (f *File) contradiction(err error, p point) error {
	traffic, _ := f.at("traffic")
	axes, _ := f.at("axes")
	var variant *node
	if p.variant != nil {
		variant = p.variant.settings
	}
	where := f.root
	if traffic != nil {
		where = traffic
	}
	err = f.spelled(err, where, traffic, variant, axes)
	if len(p.axes) > 0 {
		err = fault.Usagef(fault.Hint(err), "%w (with %s)", err, describeAxes(p.axes))
	}
	return err
}

// describeAxes returns "streams 8, window 800K".
func describeAxes(axes []measure.Axis) string {
	text := ""
	for i, a := range axes {
		if i > 0 {
			text += ", "
		}
		text += a.Name + " " + clip(a.Value)
	}
	return text
}
