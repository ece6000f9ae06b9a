package platform

import (
	"context"
	"encoding/json"
	"errors"
	"os/exec"
	"reflect"
	"slices"
	"strings"

	"thru/internal/host/pcie"
	"thru/internal/measure"
)

// reading holds what the commands have reported so far.
type reading struct {
	facts    measure.Facts
	nic      string            // interface that the present command was run for
	failed   map[string]string // fact: why its command failed
	seen     map[string]bool   // facts that were read although the document has no value: zero errors
	switches []string          // virtual switches, reported once the number of guests is known
	guests   *int              // running virtual machines
	rings    map[string]*measure.Rings
}

// Kinds of interfaces that several systems have.
const (
	physical = "physical"
	loopback = "loopback"
	bond     = "bond"
	bridge   = "bridge"
	vlan     = "vlan"
	tunnel   = "tunnel"
)

// at returns the target of a pointer field, which it allocates where it is
// nil.
func at[T any](field **T) *T {
	if *field == nil {
		*field = new(T)
	}
	return *field
}

// maxPorts limits the interfaces of a host: more means a broken output.
const maxPorts = 1024

// port returns the interface of that name, adding it if needed. Beyond
// maxPorts it is not kept.
func (r *reading) port(name string) *measure.Interface {
	if i := r.facts.Interface(name); i != nil {
		return i
	}
	if len(r.facts.Interfaces) == maxPorts {
		return &measure.Interface{}
	}
	r.facts.Interfaces = append(r.facts.Interfaces, measure.Interface{Name: name})
	return &r.facts.Interfaces[len(r.facts.Interfaces)-1]
}

// known returns the interface of that name if it exists, or nil.
func (r *reading) known(name string) *measure.Interface { return r.facts.Interface(name) }

// ringsOf returns where the halves of an interface's rings are collected.
func (r *reading) ringsOf(name string) *measure.Rings {
	if r.rings == nil {
		r.rings = map[string]*measure.Rings{}
	}
	if r.rings[name] == nil {
		r.rings[name] = &measure.Rings{}
	}
	return r.rings[name]
}

// seePorts marks a fact as read for all interfaces, though some have no
// value.
func (r *reading) seePorts(key string) {
	for i := range r.facts.Interfaces {
		r.seen[portFact(r.facts.Interfaces[i].Name, key)] = true
	}
}

// sysctl stores a setting under the system's own name.
func (r *reading) sysctl(name, value string) {
	measure.Put(&r.facts.Sysctls, name, value)
}

// offload stores whether an offload of an interface is on, under ethtool's
// name.
func offload(i *measure.Interface, name string, on bool) {
	measure.Put(&i.Offloads, name, on)
}

// firewall stores whether a firewall is on.
func (r *reading) firewall(name string, on bool) {
	f := at(&r.facts.Firewall)
	measure.Put(&f.On, name, on)
}

// fail stores why the facts of a command may be missing.
func (r *reading) fail(j job, err error) {
	reason := "`" + strings.Join(j.names(j.line), "`, `") + "`: " + Why(err)
	if len(j.shows) > 0 {
		reason = Why(err)
	}
	for _, f := range j.facts {
		r.blame(f, reason)
	}
	for i := range r.facts.Interfaces {
		if d := &r.facts.Interfaces[i]; j.nic == d.Name || j.nic == "" && j.covers(d) {
			for _, f := range j.ports {
				r.blame(portFact(d.Name, f), reason)
			}
		}
	}
}

// blame stores the first reason why a fact may be missing.
func (r *reading) blame(fact, reason string) {
	if _, ok := r.failed[fact]; !ok {
		r.failed[fact] = reason
	}
}

// onlyRoot is the reason for facts that need privileges, on every system.
const onlyRoot = "only root may read it"

// Why returns in a few words why a command failed.
func Why(err error) string {
	var exit *Exit
	text := err.Error()
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.As(err, &exit) && exit.Code == 127:
		return "this host has no such command"
	case errors.Is(err, context.DeadlineExceeded):
		return "the command timed out"
	}
	for _, refusal := range []string{"ermission denied", "not permitted", "ust be root", "uper-user", "ccess is denied", "ccess denied", "nsufficient privilege", "equires elevation"} {
		if strings.Contains(text, refusal) {
			return onlyRoot
		}
	}
	first, _, _ := strings.Cut(Clean(text), "\n")
	return first
}

// portFact returns the key of an interface's fact.
func portFact(name, key string) string { return "interfaces." + name + "." + key }

// wanted lists the facts that every host and every physical interface should
// have; not_checked also names those that no command of the system reports.
func wanted() (host, port []string) {
	return strings.Fields(`hostname distribution kernel arch cpu_model cores memory_bytes hypervisor
			congestion_control congestion_available sysctls machine cpu.sockets cpu.physical_cores cpu.threads cpu.governors
			ram.available_bytes numa_nodes firewall clock.source clock.synchronised disks hypervises load privileged`),
		strings.Fields(`mtu_bytes up addresses mac carrier driver driver_version firmware bus pci pci.usable_bps speed_bps duplex speed_is_nominal
			rx_queues tx_queues offloads rings coalescing pause rss interrupts queue_counters error_counters`)
}

// close drops empty parts and names the facts that are not known.
func (r *reading) close(commands []command) {
	r.count()
	r.weigh()
	r.prune()
	has := document(r.facts)
	host, port := wanted()
	for _, c := range commands {
		host = append(host, c.facts...)
	}
	r.note(has, "", host)
	for i := range r.facts.Interfaces {
		d := &r.facts.Interfaces[i]
		var keys []string
		if d.Kind != nil && *d.Kind == physical {
			keys = append(keys, port...)
		}
		for _, c := range commands {
			if c.covers(d) {
				keys = append(keys, c.ports...)
			}
		}
		r.note(has.port(d.Name), "interfaces."+d.Name+".", keys)
	}
	slices.SortFunc(r.facts.NotChecked, func(a, b measure.NotChecked) int { return strings.Compare(a.Fact, b.Fact) })
	slices.Sort(r.facts.RootAdds)
	r.facts.RootAdds = slices.Compact(r.facts.RootAdds)
}

// note names the wanted keys that a part of the document lacks.
func (r *reading) note(has keys, prefix string, wanted []string) {
	slices.Sort(wanted)
	for _, key := range slices.Compact(wanted) {
		fact := prefix + key
		if has.holds(key) || r.seen[fact] {
			continue
		}
		reason, ok := r.failed[fact]
		if !ok {
			reason = "the commands of this system do not report it"
		}
		if strings.HasSuffix(reason, onlyRoot) {
			reason = onlyRoot
			if r.facts.Privileged == nil || !*r.facts.Privileged {
				r.facts.RootAdds = append(r.facts.RootAdds, fact)
			}
		}
		r.facts.NotChecked = append(r.facts.NotChecked, measure.NotChecked{Fact: fact, Why: reason})
	}
}

// count sets what this host hypervises, only where its guests were counted,
// since otherwise it would report zero guests.
func (r *reading) count() {
	if r.guests != nil && (*r.guests > 0 || len(r.switches) > 0) {
		r.facts.Hypervises = &measure.Hypervises{Guests: *r.guests, Switch: r.switches}
	}
	if r.guests != nil {
		r.seen["hypervises"] = true
	}
}

// weigh sets what each slot with a known link carries.
func (r *reading) weigh() {
	for i := range r.facts.Interfaces {
		p := r.facts.Interfaces[i].PCI
		if p == nil || p.Gen == nil || p.Lanes == nil {
			continue
		}
		if bps := pcie.UsableBps(*p.Gen, *p.Lanes); bps > 0 {
			p.UsableBps = &bps
		}
	}
}

// prune removes empty parts.
func (r *reading) prune() {
	f := &r.facts
	drop(&f.Machine)
	drop(&f.CPU)
	drop(&f.RAM)
	drop(&f.Clock)
	drop(&f.Firewall)
	for i := range f.Interfaces {
		drop(&f.Interfaces[i].PCI)
	}
}

// drop sets a field to nil where all values in its target are empty.
func drop[T any](field **T) {
	if *field != nil && reflect.ValueOf(**field).IsZero() {
		*field = nil
	}
}

// keys holds the facts as in the JSON document.
type keys map[string]any

// document converts facts to JSON keys.
func document(f measure.Facts) keys {
	var k keys
	if b, err := json.Marshal(f); err != nil || json.Unmarshal(b, &k) != nil {
		return nil // cannot happen: facts hold no channels, functions or cycles
	}
	return k
}

// holds reports whether a key, with dots between its parts, has a value.
func (k keys) holds(key string) bool {
	first, rest, nested := strings.Cut(key, ".")
	v, ok := k[first]
	if !nested {
		return ok
	}
	part, _ := v.(map[string]any)
	return keys(part).holds(rest)
}

// port returns the keys of one interface.
func (k keys) port(name string) keys {
	list, _ := k["interfaces"].([]any)
	for _, v := range list {
		if part, _ := v.(map[string]any); part["name"] == name {
			return part
		}
	}
	return nil
}
