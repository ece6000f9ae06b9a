package place

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/unit"
)

// named finds the machine that the user names: by its own name, its host name, or an address.
func named(word string, all []measure.Inventory, reached func(string) bool) (lain, error) {
	host := hostPart(word)
	addr := addresses([]string{host})
	var fits []candidate
	consider := func(c candidate, v *measure.Inventory) {
		c.in = v
		byAddr := shareAny(addr, c.addrs)
		if c.runs() && (byAddr || len(addr) == 0 && slices.ContainsFunc(c.called(), func(n string) bool { return sameName(n, host) })) {
			fits = append(fits, c)
		}
	}
	for n := range all {
		for i := range all[n].Guests {
			consider(ofGuest(&all[n].Guests[i]), &all[n])
		}
	}
	for n := range all {
		for i := range all[n].Hosts {
			consider(ofHost(&all[n].Hosts[i]), &all[n])
		}
	}
	fits = once(fits)
	switch {
	case len(fits) == 0:
		return lain{}, fault.Usagef("use its name or address from `thru inventory "+sources(all)[0]+"`",
			"%s is not a running virtual machine of %s", word, strings.Join(sources(all), ", "))
	case len(fits) > 1:
		hint := "use an address that only one of them has"
		if len(addr) > 0 {
			hint = "use its name in the hypervisor"
		}
		return lain{}, fault.Usagef(hint, "%s matches several machines: %s", word, places(fits))
	}
	c := fits[0]
	at := ""
	if len(addr) == 0 && !reached(word) && !strings.Contains(word, "://") && len(c.addrs) > 0 {
		at = c.addrs[0].String()
	}
	return c.lie(word, at), nil
}

// hostPart returns the host of an end point in one of the usual forms: SCHEME://[USER@]HOST, CONTROLLER/NAME,
// HOST:PORT, [V6]:PORT.
func hostPart(word string) string {
	if _, rest, ok := strings.Cut(word, "://"); ok {
		word = rest
		word = word[strings.LastIndexByte(word, '@')+1:]
	} else if i := strings.LastIndexByte(word, '/'); i >= 0 {
		word = word[i+1:]
	}
	if p, err := netip.ParseAddrPort(word); err == nil {
		return p.Addr().String()
	}
	if _, err := netip.ParseAddr(strings.Trim(word, "[]")); err == nil {
		return strings.Trim(word, "[]")
	}
	host, _, _ := strings.Cut(word, ":")
	return host
}

// called returns the names of a machine.
func (c candidate) called() []string {
	if c.guest == nil {
		return []string{c.host.Name}
	}
	names := []string{c.guest.Name}
	if h := c.guest.Hostname; h != nil {
		names = append(names, *h)
	}
	return names
}

// sameName compares names of machines; one may lack its domain.
func sameName(a, b string) bool {
	if a == "" || b == "" {
		return false
	}
	if strings.EqualFold(a, b) {
		return true
	}
	x, _, longX := strings.Cut(strings.ToLower(a), ".")
	y, _, longY := strings.Cut(strings.ToLower(b), ".")
	return x == y && longX != longY
}

// once removes duplicates of machines that two sources report.
func once(all []candidate) (out []candidate) {
	for _, c := range all {
		if !slices.ContainsFunc(out, func(o candidate) bool { return same(found{candidate: o}, found{candidate: c}) }) {
			out = append(out, c)
		}
	}
	return out
}

func sources(all []measure.Inventory) (names []string) {
	for _, v := range all {
		names = append(names, v.Source)
	}
	if len(names) == 0 {
		names = []string{"no inventory"}
	}
	return names
}

func places(all []candidate) string {
	return names(unit.Mapped(all, func(c candidate) found { return found{candidate: c} }))
}

// lie returns the placement of a machine that the user chose.
func (c candidate) lie(name, at string) lain {
	s := Subject{Name: name}
	if at != "" {
		s.Addrs = []string{at}
	} else if len(c.addrs) > 0 {
		s.Addrs = []string{c.addrs[0].String()}
	}
	var nic *measure.GuestNIC
	if c.guest != nil {
		if nic = s.adapter(c.guest); nic != nil {
			s.ViaAddrs = nic.Addrs
		}
	}
	p := s.placement(found{candidate: c})
	what := "VM " + c.name() + " on " + hostOf(p)
	if c.guest == nil {
		what = c.name()
	}
	if n := network(p); n != "" {
		what += ", " + n
	}
	if nic != nil && nic.Model != nil {
		what += ", " + *nic.Model
	}
	if p.Site != "" {
		what += fmt.Sprintf(", data center %s", p.Site)
	}
	return lain{end: End{Name: name, At: at, What: what}, Placed: Placed{s, p}, guest: c.guest}
}
