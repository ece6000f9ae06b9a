package compare

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"thru/internal/measure"
)

// ends are the end points that are compared: the name in before for each name in after.
type ends struct {
	names  []string // in after, in the order of its documents
	before map[string]string
}

// endPoints follows the paired flows; it pairs other end points by their names. Without paired flows no hosts are
// compared.
func endPoints(a, b *side, pairs []matched) ends {
	e := ends{before: map[string]string{}}
	if len(pairs) == 0 {
		return e
	}
	for _, p := range pairs {
		e.before[p.after.from], e.before[p.after.to] = p.before.from, p.before.to
	}
	for _, d := range slices.Backward(b.docs) {
		for _, x := range d.EndPoints {
			if slices.Contains(e.names, x.Name) {
				continue
			}
			e.names = append(e.names, x.Name)
			if _, known := e.before[x.Name]; !known && a.has(x.Name) {
				e.before[x.Name] = x.Name
			}
		}
	}
	return e
}

func (s *side) has(name string) bool {
	return slices.ContainsFunc(s.docs, func(d *measure.Document) bool { return d.FactsOf(name) != nil })
}

// leaves are the facts of a host: values by key, as text.
type leaves map[string]string

// factChanges returns the changed facts of hosts.
func factChanges(a, b *side, e ends, pairs []matched) (all []measure.FactChange) {
	for _, name := range e.names {
		was, known := e.before[name]
		if !known {
			continue
		}
		before, after := a.interfacesUsed(was), b.interfacesUsed(name)
		roles := rolesOf(before, after)
		x, gapsA := a.leavesOf(was, func(r role) string { return r.before }, roles)
		y, gapsB := b.leavesOf(name, func(r role) string { return r.after }, roles)
		for _, c := range differingFacts(x, y, slices.Concat(gapsA, gapsB)) {
			c.Of = name
			if named := roles.name(&c, after); named && !repeats(all, &c) {
				all = append(all, c)
			}
		}
		all = append(all, versionChanges(a, b, was, name)...)
		all = append(all, placementChanges(a, b, was, name)...)
		if i, k := strings.Join(before, ", "), strings.Join(after, ", "); i != k && i != "" && k != "" {
			all = append(all, measure.FactChange{Of: name, Fact: "end_points.route.interface", Name: "interface that the traffic takes", Before: i, After: k})
		}
	}
	return all
}

// versionChanges compares the programs at an end point: thru, or another one.
func versionChanges(a, b *side, was, name string) (all []measure.FactChange) {
	x, y := measure.Value(a.last().EndPoint(was)), measure.Value(b.last().EndPoint(name))
	if x.Thru != "" && y.Thru != "" && x.Thru != y.Thru {
		all = append(all, measure.FactChange{Of: name, Fact: "end_points.thru_version", Name: "thru", Before: x.Thru, After: y.Thru})
	}
	if x.Speaks != y.Speaks {
		all = append(all, measure.FactChange{Of: name, Fact: "end_points.program", Name: "program", Before: cmp.Or(x.Speaks, "thru"), After: cmp.Or(y.Speaks, "thru")})
	}
	return all
}

// placementChanges compares where hypervisors run an end point: a machine that was moved (vMotion, live migration) has another host.
func placementChanges(a, b *side, was, name string) (all []measure.FactChange) {
	x, y := measure.Value(a.last().EndPoint(was)).Placement, measure.Value(b.last().EndPoint(name)).Placement
	if x == nil || y == nil || x.Guest == "" || y.Guest == "" {
		return nil
	}
	facts := measure.NewVocabulary()
	for _, c := range []measure.FactChange{
		{Fact: "end_points.placement.host_name", Before: x.HostName, After: y.HostName}, {Fact: "end_points.placement.network", Before: x.Network, After: y.Network},
	} {
		if c.Before != c.After && c.Before != "" && c.After != "" {
			c.Of, c.Name = name, facts[c.Fact].Title
			all = append(all, c)
		}
	}
	return all
}

// leavesOf returns all values of each fact of an end point in a side's results, and the facts that some could not
// read.
func (s *side) leavesOf(name string, of func(role) string, roles roles) (all map[string][]string, gaps []string) {
	all = map[string][]string{}
	called := map[string]string{}
	for _, r := range roles {
		called[of(r)] = r.id
	}
	for _, d := range s.docs {
		f := d.FactsOf(name)
		if f == nil {
			continue
		}
		for _, m := range f.NotChecked {
			gaps = append(gaps, m.Fact)
		}
		for key, value := range flatten(f, called) {
			if !slices.Contains(all[key], value) {
				all[key] = append(all[key], value)
			}
		}
	}
	return all, gaps
}

// differingFacts returns the keys whose values differ between the sides. A fact that one side lacks may only not
// have been read, so it is reported only if its absence is meaningful.
func differingFacts(x, y map[string][]string, gaps []string) (all []measure.FactChange) {
	keys := slices.Sorted(maps.Keys(x))
	for k := range y {
		if _, known := x[k]; !known {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	facts := measure.NewVocabulary()
	for _, key := range keys {
		was, is := x[key], y[key]
		if len(x) == 0 || len(y) == 0 || sameSet(was, is) || ofGone(key, x, y) {
			continue
		}
		if len(was) == 0 || len(is) == 0 {
			if !facts[KindOfFact(key)].Is(measure.ByAbsence) || slices.ContainsFunc(gaps, func(g string) bool { return covers(g, key) }) {
				continue
			}
		}
		all = append(all, measure.FactChange{Fact: key, Before: valuesText(was), After: valuesText(is)})
	}
	return all
}

// ofGone reports whether a fact belongs to an interface that one side does not have: its absence is reported once.
func ofGone(key string, x, y map[string][]string) bool {
	if !strings.HasPrefix(key, "interfaces[") || KindOfFact(key) == "interfaces.name" {
		return false
	}
	there := "interfaces[" + nameIn(key) + "].name"
	return (len(x[there]) == 0) != (len(y[there]) == 0)
}

func sameSet(a, b []string) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(s string) bool { return !slices.Contains(b, s) })
}

// most is how many values of one fact are named.
const most = 4

func valuesText(values []string) string {
	switch {
	case len(values) == 0:
		return "none"
	case len(values) > most:
		return strings.Join(values[:most], " / ") + " / ..."
	}
	return strings.Join(values, " / ")
}

// covers reports whether an unchecked fact covers a key: its name, or the beginning of it.
func covers(gap, key string) bool {
	plain := strings.NewReplacer("[", ".", "]", "").Replace(key)
	gap = strings.TrimSuffix(strings.TrimPrefix(gap, "facts."), ".*")
	return gap != "" && measure.IsPart(plain, gap)
}

// flatten names each fact by its key: "interfaces[eth0].mtu_bytes". Interfaces with a role are also listed under
// it.
func flatten(f *measure.Facts, roles map[string]string) leaves {
	text, err := json.Marshal(f)
	if err != nil { // JSON cannot encode a figure: nothing is known of it
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var root map[string]any
	if decoder.Decode(&root) != nil {
		return nil
	}
	all := leaves{}
	w := walker{all, roles, measure.NewVocabulary()}
	w.object("", root)
	return all
}

type walker struct {
	leaves
	roles map[string]string // by interface name
	facts measure.Vocabulary
}

func (w walker) object(path string, fields map[string]any) {
	named := w.facts[KindOfFact(path)].Is(measure.Names)
	for name, value := range fields {
		key := name
		switch {
		case named:
			key = path + "[" + name + "]"
		case path != "":
			key = path + "." + name
		}
		w.value(key, value)
	}
}

func (w walker) value(key string, value any) {
	if w.facts[KindOfFact(key)].Is(measure.Noise) {
		return
	}
	switch v := value.(type) {
	case map[string]any:
		w.object(key, v)
	case []any:
		w.list(key, v)
	case nil:
	default:
		w.leaves[key] = valueText(key, v)
	}
}

// list names the objects of a list by their own names; plain values are one fact.
func (w walker) list(key string, all []any) {
	var words []string
	for i, v := range all {
		fields, isObject := v.(map[string]any)
		if !isObject {
			words = append(words, valueText(key, v))
			continue
		}
		id := idOf(fields, i)
		if key == "interfaces" {
			w.leaves[key+"["+id+"].name"] = "there"
			delete(fields, "name")
			if role := w.roles[id]; role != "" {
				w.object(key+"["+role+"]", fields)
			}
		}
		w.object(key+"["+id+"]", fields)
	}
	if len(words) > 0 {
		w.leaves[key] = listText(words)
	}
}

// idOf returns the name of an object of a list, else its position.
func idOf(fields map[string]any, place int) string {
	for _, name := range []string{"name", "path", "queue", "node"} {
		switch v := fields[name].(type) {
		case string:
			return v
		case json.Number:
			return v.String()
		}
	}
	return strconv.Itoa(place)
}

// KindOfFact returns a key without the names of things: "interfaces.mtu_bytes".
func KindOfFact(key string) string {
	if !strings.ContainsRune(key, '[') {
		return key
	}
	var kind strings.Builder
	depth := 0
	for _, r := range key {
		switch {
		case r == '[':
			depth++
		case r == ']':
			depth = max(0, depth-1)
		case depth == 0:
			kind.WriteRune(r)
		}
	}
	return kind.String()
}

// renamed returns a key with another name of its thing.
func renamed(key, from, to string) string { return strings.Replace(key, "["+from+"]", "["+to+"]", 1) }

// nameIn returns the thing that a key is about: "eth0" of "interfaces[eth0].mtu_bytes".
func nameIn(key string) string {
	_, rest, found := strings.Cut(key, "[")
	if !found {
		return ""
	}
	if i := strings.Index(rest, "]."); i >= 0 {
		return rest[:i]
	}
	return strings.TrimSuffix(rest, "]")
}

// interfacesUsed returns the interfaces that an end point's traffic uses, with those under them, in the order of
// the newest result.
func (s *side) interfacesUsed(name string) (all []string) {
	add := func(i string) {
		if i != "" && !slices.Contains(all, i) {
			all = append(all, i)
		}
	}
	d := s.last()
	for _, p := range d.Paths {
		if p.From == name && p.Forward.Route != nil {
			add(p.Forward.Route.Interface)
		}
		if p.To == name && p.Back.Route != nil {
			add(p.Back.Route.Interface)
		}
	}
	for _, c := range resultCells(d) {
		if f := flowOf(c); f != nil {
			for _, e := range []*measure.Evidence{f.Sender, f.Receiver} {
				if e != nil && e.EndPoint == name && e.Route != nil {
					add(e.Route.Interface)
				}
			}
		}
	}
	facts := d.FactsOf(name)
	for i := 0; i < len(all) && i < most*most; i++ {
		if x := facts.Interface(all[i]); x != nil {
			for _, lower := range x.Lower {
				add(lower)
			}
			if x.Tunnel != nil {
				add(x.Tunnel.Lower)
			}
		}
	}
	return all
}
