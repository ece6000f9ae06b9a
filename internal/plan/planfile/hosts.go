package planfile

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/plan"
)

// Host is a host that a controller knows.
type Host struct {
	Name   string
	Labels map[string]string
	CPUs   int // 0: not known
}

// Limits of names and labels.
const (
	mostName   = 255
	mostLabels = 64
	mostHosts  = 5000
)

// nameOf reads a name: a text without spaces.
func (s *source) nameOf(n *node, what string) (string, error) {
	const hint = "a name has no spaces; one that looks like a number needs quotes"
	bad := func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }
	switch {
	case n.kind != textNode || n.text == "":
		return "", s.errorf(n, hint, "the %s is %s", what, n.value())
	case len(n.text) > mostName || strings.ContainsFunc(n.text, bad):
		return "", s.errorf(n, hint, "the %s %q is not a name", what, clip(n.text))
	}
	return n.text, nil
}

// mostTitle limits the name of a rung or a variant, since labels show it whole.
const mostTitle = 60

// titleOf reads the name of a rung or a variant, which may have spaces.
func (s *source) titleOf(n *node, what, example string) (string, error) {
	if n.kind != textNode || strings.TrimSpace(n.text) == "" || clip(n.text) != n.text {
		return "", s.errorf(n, fmt.Sprintf("%s; a name has at most %d letters", example, mostTitle), "the name of a %s is %s", what, n.value())
	}
	return n.text, nil
}

// selector selects hosts by labels: each label must have one of the values.
type selector map[string][]string

// fits reports whether a host has all labels of the selector.
func (x selector) fits(labels map[string]string) bool {
	for key, values := range x {
		if have, ok := labels[key]; !ok || !slices.Contains(values, have) {
			return false
		}
	}
	return true
}

// String returns the selector as written.
func (x selector) String() string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(x)) {
		v := strings.Join(x[k], ", ")
		if len(x[k]) > 1 {
			v = "[" + v + "]"
		}
		parts = append(parts, k+": "+v)
	}
	return clip("{" + strings.Join(parts, ", ") + "}")
}

// all is the word for all hosts.
const all = "all"

// selectorOf reads {role: web, site: [east, west]}, or all.
func (s *source) selectorOf(n *node, what string) (selector, error) {
	const hint = "such as {role: web} or {site: [east, west]}"
	if n.kind == textNode && n.text == all {
		return selector{}, nil
	}
	if n.kind != mapNode || len(n.keys) == 0 || len(n.keys) > mostLabels {
		return nil, s.errorf(n, what+" takes labels "+hint+", or "+all, "%s is %s", what, n.value())
	}
	x := selector{}
	for i, k := range n.keys {
		values := []*node{n.items[i]}
		if n.items[i].kind == listNode {
			values = n.items[i].items
		}
		for _, v := range values {
			text, err := s.words(v, "the label "+clip(k.text), "web")
			if err != nil {
				return nil, err
			}
			x[k.text] = append(x[k.text], text)
		}
		if len(values) == 0 {
			return nil, s.errorf(n.items[i], hint, "the label %q has no value", clip(k.text))
		}
	}
	return x, nil
}

func (f *File) readEndPoints() (err error) {
	name := func(e endPoint) string {
		if e.match != nil {
			return "" // it stands for several hosts
		}
		return e.Name
	}
	f.endPoints, err = entries(f, "end_points", "[a, {name: b, at: 10.0.0.2}]", mostHosts, name, once{"end point", "give each end point its own name"}, f.readEndPoint)
	return err
}

func (f *File) readEndPoint(x *node) (endPoint, error) {
	e := endPoint{node: x}
	var err error
	if x.kind != mapNode {
		e.Name, err = f.nameOf(x, "end point")
		if err != nil {
			return e, err
		}
		return e, f.reach(&e)
	}
	name := func(place *string, key string) field {
		return field{key, into(place, func(n *node) (string, error) { return f.nameOf(n, key) })}
	}
	err = f.fields(x, "an end point", "", 0, []field{
		name(&e.controller, "controller"), {"match", func(n *node) error { return f.readMatch(&e, n) }},
		name(&e.Name, "name"), name(&e.At, "at"), name(&e.DataAddr, "data"), {"labels", into(&e.Labels, f.labels)},
	})
	if err != nil || e.match != nil {
		return e, err
	}
	if e.Name = cmp.Or(e.Name, e.At); e.Name == "" {
		return e, f.errorf(x, "such as {name: a, at: ssh://root@10.0.0.1}", "an end point has no name")
	}
	return e, f.reach(&e)
}

// readMatch reads an entry that selects several hosts.
func (f *File) readMatch(e *endPoint, n *node) (err error) {
	for _, k := range e.keys {
		if k.text != "match" && k.text != "controller" {
			return f.errorf(k, "leave it out: the hosts of the controller have their names and labels", "%s does not go with match", k.text)
		}
	}
	if e.match, err = f.selectorOf(n, "match"); err != nil {
		return err
	}
	if e.controller = cmp.Or(e.controller, f.controller); e.controller == "" {
		return f.errorf(n, "name it: `controller: NAME` (stored by `thru join`)", "match needs a controller that knows the hosts")
	}
	return nil
}

// labels reads a mapping of labels.
func (f *File) labels(n *node) (map[string]string, error) {
	if n.kind != mapNode || len(n.keys) == 0 || len(n.keys) > mostLabels {
		return nil, f.errorf(n, "labels take a mapping such as {site: east}", "labels is %s", n.value())
	}
	labels := map[string]string{}
	for i, k := range n.keys {
		text, err := f.words(n.items[i], "the label "+clip(k.text), "east")
		if err != nil {
			return nil, err
		}
		labels[k.text] = text
	}
	return labels, nil
}

// reach sets where to look up an end point, and refuses addresses that cannot be reached.
func (f *File) reach(e *endPoint) error {
	where := e.node
	if n := e.get("at"); n != nil {
		where = n
	}
	at := cmp.Or(e.At, e.Name)
	scheme, _, url := strings.Cut(at, "://")
	engine := engineOf(at)
	switch {
	case e.Name == Local && (e.At != "" && e.At != Local || e.controller != ""):
		return f.errorf(where, "leave `at` out, or take another name", "%s is this machine", Local)
	case e.Name != Local && at == Local:
		return f.errorf(where, "its name is `local`, and it needs no entry", "this machine has another name here: %q", clip(e.Name))
	case e.Name == all:
		return f.errorf(where, "take another name", "%s stands for every end point", all)
	case e.Name == Local:
		return nil
	case url && !slices.Contains([]string{"ssh", measure.IPerf3, measure.IPerf2}, scheme):
		return f.errorf(where, "an end point is at a joined name, HOST[:PORT], CONTROLLER/NAME, ssh://USER@HOST, iperf3://HOST or iperf2://HOST", "end points of the form %s:// are not known", clip(scheme))
	case engine != measure.Native && e.DataAddr != "":
		return f.errorf(e.get("data"), "the address is in `at`", "data does not go with an %s end point", engine)
	}
	if why := badAddress(scheme, at, url); why != "" {
		return f.errorf(where, "such as 10.0.0.1, 10.0.0.1:5201, '[fd00::1]:5201', ssh://root@10.0.0.1", "%q is not an address: %s", clip(at), why)
	}
	if url {
		return nil
	}
	if controller, name, ok := strings.Cut(at, "/"); ok {
		if controller == "" || name == "" || e.controller != "" && e.controller != controller {
			return f.errorf(where, "at: CONTROLLER/NAME", "%q names no host of a controller", clip(at))
		}
		e.controller = controller
		return nil
	}
	e.controller = cmp.Or(e.controller, f.controller)
	return nil
}

// badAddress returns what is wrong with SCHEME://[USER@]HOST[:PORT], HOST[:PORT] or an IPv6 address; "" if it
// is valid. A name without a colon is always valid.
func badAddress(scheme, at string, url bool) string {
	if !url {
		if controller, _, ok := strings.Cut(at, "/"); ok && !strings.Contains(controller, ":") {
			return ""
		}
	}
	host := at
	if url {
		host = strings.TrimPrefix(at, scheme+"://")
		if user, rest, ok := strings.Cut(host, "@"); ok {
			if host = rest; user == "" || strings.HasPrefix(user, "-") {
				return "the user is missing"
			}
		}
	}
	if _, err := netip.ParseAddr(host); err == nil { // IPv6 without a port
		return ""
	}
	bracketed := strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]")
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !bracketed {
		if n, err := strconv.ParseUint(host[i+1:], 10, 16); err != nil || n == 0 {
			return fmt.Sprintf("a port is 1 to 65535, not %q", clip(host[i+1:]))
		}
		host = host[:i]
	}
	inner, opened := strings.CutPrefix(host, "[")
	inner, closed := strings.CutSuffix(inner, "]")
	_, err := netip.ParseAddr(inner)
	switch {
	case inner == "" || strings.HasPrefix(inner, "-"):
		return "the host is missing"
	case opened != closed || opened && err != nil || !opened && strings.Contains(inner, ":"):
		return "an IPv6 address with a port needs brackets"
	}
	return ""
}

// engineOf returns the engine of an address: iperf3, iperf2, or Native.
func engineOf(at string) string {
	scheme, _, _ := strings.Cut(at, "://")
	if scheme == measure.IPerf3 || scheme == measure.IPerf2 {
		return scheme
	}
	return measure.Native
}

// host is an end point of the plan to measure.
type host struct {
	plan.EndPoint
	engine string
	cpus   int
	used   bool
}

// hosts are all end points of the plan: named ones in the order of the file, matched ones by name. warnings
// holds each warning once.
type hosts struct {
	*source
	list     []*host
	byName   map[string]*host
	warnings []string
}

// resolve looks up all end points, first those with a name in the plan.
func (f *File) resolve(fleets map[string][]Host) (*hosts, error) {
	all := &hosts{source: f.source, byName: map[string]*host{}}
	for _, e := range f.endPoints {
		if _, ok := fleets[e.controller]; e.controller != "" && !ok {
			return nil, fault.Failf("`thru hosts "+clip(e.controller)+"` shows them", "planfile: the list of hosts of the controller %q is needed", clip(e.controller))
		}
		if e.match != nil {
			continue
		}
		h, err := f.lookUp(e, fleets[e.controller], all)
		if err != nil {
			return nil, err
		}
		all.add(h)
	}
	for _, e := range f.endPoints {
		if e.match == nil {
			continue
		}
		if err := f.matched(e, fleets[e.controller], all); err != nil {
			return nil, err
		}
	}
	if all.byName[Local] == nil { // it needs no entry, but then no selector includes it
		all.byName[Local] = &host{EndPoint: plan.EndPoint{Name: Local, At: Local}, engine: measure.Native}
	}
	return all, nil
}

func (h *hosts) add(x *host) { h.list, h.byName[x.Name] = append(h.list, x), x }

// lookUp returns a named end point with what its controller knows of it.
func (f *File) lookUp(e endPoint, known []Host, all *hosts) (*host, error) {
	h := &host{EndPoint: e.EndPoint}
	h.At = cmp.Or(h.At, h.Name)
	h.engine = engineOf(h.At)
	if e.controller == "" {
		return h, nil
	}
	_, name, explicit := strings.Cut(h.At, "/")
	if !explicit {
		name = h.At
	}
	i := slices.IndexFunc(known, func(k Host) bool { return k.Name == name })
	switch {
	case i < 0 && explicit:
		return nil, f.errorf(e.node, meant(name, names(known)), "the controller %s has no host %q", e.controller, clip(name))
	case i < 0:
		all.warnings = append(all.warnings, "the controller "+e.controller+" has no host "+clip(name)+": taken as an address or a joined name")
		return h, nil
	}
	h.At, h.cpus = e.controller+"/"+name, known[i].CPUs
	h.Labels = merged(known[i].Labels, h.Labels)
	return h, nil
}

// names returns some names of hosts for a hint.
func names(known []Host) (list []string) {
	for _, k := range known[:min(len(known), 30)] {
		list = append(list, k.Name)
	}
	return list
}

// merged merges labels: those of the plan override the agent's own.
func merged(own, plan map[string]string) map[string]string {
	out := maps.Clone(own)
	if out == nil {
		out = map[string]string{}
	}
	maps.Copy(out, plan)
	if len(out) == 0 {
		return nil
	}
	return out
}

// matched adds the hosts of a controller that have the labels.
func (f *File) matched(e endPoint, known []Host, all *hosts) error {
	found := 0
	for _, k := range slices.SortedFunc(slices.Values(known), func(a, b Host) int { return cmp.Compare(a.Name, b.Name) }) {
		if !e.match.fits(k.Labels) {
			continue
		}
		found++
		at := e.controller + "/" + k.Name
		if slices.ContainsFunc(all.list, func(h *host) bool { return h.At == at }) {
			continue // named by the plan, or matched before
		}
		if other, taken := all.byName[k.Name]; taken || k.Name == Local {
			where := "this machine"
			if other != nil {
				where = other.At
			}
			return f.errorf(e.get("match"), "give the end point of the plan another name", "the host %s and %s have the same name", clip(at), clip(where))
		}
		if all.add(&host{EndPoint: plan.EndPoint{Name: k.Name, At: at, Labels: maps.Clone(k.Labels)}, engine: measure.Native, cpus: k.CPUs}); len(all.list) > mostHosts {
			return f.errorf(e.get("match"), "match fewer", "there are more than %d end points", mostHosts)
		}
	}
	if found == 0 {
		return f.errorf(e.get("match"), "`thru hosts "+e.controller+"` shows the labels that there are", "no host of the controller %s has %s", clip(e.controller), e.match)
	}
	return nil
}
