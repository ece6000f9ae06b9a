package esx

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"thru/internal/host/platform"
)

// Door is a TCP port of an ESXi host at which a thru program can be reached.
type Door struct {
	Port    int
	Ruleset string // rule set of the firewall that lets it pass; "": the firewall is off
	From    int    // port range of the rule
	To      int
	Closed  bool // the rule set is disabled and must be enabled
}

// String returns the rule for people: "gdbserver (TCP 1000-9999)".
func (d Door) String() string {
	if d.Ruleset == "" {
		return "no rule: the firewall is off"
	}
	return fmt.Sprintf("%s (TCP %d-%d)", d.Ruleset, d.From, d.To)
}

// Enable returns the command that opens the port.
func (d Door) Enable() string { return setRuleset(d.Ruleset, true) }

// Disable returns the command that undoes Enable.
func (d Door) Disable() string { return setRuleset(d.Ruleset, false) }

func setRuleset(name string, on bool) string {
	return fmt.Sprintf("esxcli network firewall ruleset set -r %s -e %t", name, on)
}

// Walls holds the outputs of the commands that describe a host's firewall.
type Walls struct {
	State   string // esxcli network firewall get
	Sets    string // esxcli network firewall ruleset list
	Rules   string // esxcli network firewall ruleset rule list
	Allowed string // esxcli network firewall ruleset allowedip list
	Sockets string // esxcli network ip connection list
}

// wideRule is the least number of ports of a rule that Doors uses: a rule of
// one port belongs to a service, which may need it any time (vMotion 8000).
const wideRule = 16

// Doors returns the ports at which a client can reach a program, the best
// first: open ones, and among those the wanted port. Each rule yields one
// port without a listener. An empty result is no error.
func Doors(w Walls, client netip.Addr, wanted int) ([]Door, error) {
	state, err := platform.Blocks(w.State)
	if err != nil {
		return nil, fmt.Errorf("esx: reading the firewall: %w", err)
	}
	taken := listening(w.Sockets)
	on, known := platform.Flag(state[0]["enabled"])
	if !known {
		return nil, fmt.Errorf("esx: reading the firewall: the output does not report whether it is enabled")
	}
	if !on || strings.EqualFold(state[0]["defaultaction"], "PASS") {
		if port := freePort(wanted, 65535, wanted, taken); port > 0 {
			return []Door{{Port: port}}, nil
		}
		return nil, nil
	}
	rules, err := platform.Table(w.Rules)
	if err != nil {
		return nil, fmt.Errorf("esx: reading the firewall's rules: %w", err)
	}
	enabled, allowed := rulesets(w.Sets), allowances(w.Allowed)
	var doors []Door
	for _, r := range rules {
		d, ok := doorOf(r, wanted, taken)
		open, listed := enabled[d.Ruleset]
		if !ok || !listed || !allows(allowed[d.Ruleset], client) {
			continue
		}
		d.Closed = !open
		doors = append(doors, d)
	}
	slices.SortStableFunc(doors, func(a, b Door) int {
		order := cmp.Or(far(a.Port, wanted)-far(b.Port, wanted), (a.To-a.From)-(b.To-b.From))
		switch {
		case a.Closed && !b.Closed:
			return 1
		case !a.Closed && b.Closed:
			return -1
		}
		return order
	})
	return slices.Compact(doors), nil
}

func far(port, wanted int) int { return max(port-wanted, wanted-port) }

// doorOf returns what a rule admits, if it is one for incoming TCP over many
// ports.
func doorOf(r platform.Row, wanted int, taken map[int]bool) (Door, bool) {
	from, err1 := strconv.Atoi(r["portbegin"])
	to, err2 := strconv.Atoi(r["portend"])
	d := Door{Ruleset: r["ruleset"], From: from, To: to}
	narrow := to-from < wideRule && (from > wanted || to < wanted)
	if err1 != nil || err2 != nil || from < 0 || to > 65535 || narrow || !platform.Plain(d.Ruleset) ||
		!strings.EqualFold(r["direction"], "Inbound") || !strings.EqualFold(r["protocol"], "TCP") || !strings.EqualFold(r["porttype"], "Dst") {
		return d, false
	}
	d.Port = freePort(max(from, 1024), to, wanted, taken)
	return d, d.Port > 0
}

// freePort returns the wanted port, or else the first port of a range without
// a listener; 0: there is none.
func freePort(from, to, wanted int, taken map[int]bool) int {
	if from <= wanted && wanted <= to {
		for port := wanted; port <= to; port++ {
			if !taken[port] {
				return port
			}
		}
	}
	for port := from; port <= to; port++ {
		if !taken[port] {
			return port
		}
	}
	return 0
}

// listening returns the ports in state LISTEN in "esxcli network ip
// connection list". Without that list none is known, and the program finds
// out when it binds.
func listening(text string) map[int]bool {
	taken := map[int]bool{}
	rows, _ := platform.Table(text)
	for _, r := range rows {
		at := r["localaddress"]
		if port, err := strconv.Atoi(at[strings.LastIndexByte(at, ':')+1:]); err == nil && strings.EqualFold(r["state"], "LISTEN") {
			taken[port] = true
		}
	}
	return taken
}

// rulesets returns for each rule set whether it is enabled; it leaves out
// disabled ones that cannot be enabled.
func rulesets(text string) map[string]bool {
	all := map[string]bool{}
	rows, _ := platform.Table(text)
	for _, r := range rows {
		on, known := platform.Flag(r["enabled"])
		fixed, said := platform.Flag(r["enabledisableconfigurable"]) // on ESXi 8
		if known && (on || !said || fixed) {
			all[r["name"]] = on
		}
	}
	return all
}

// allowances returns the addresses that each rule set admits, as listed.
func allowances(text string) map[string]string {
	all := map[string]string{}
	rows, _ := platform.Table(text)
	for _, r := range rows {
		if list := r["allowedipaddresses"]; list != "" {
			all[r["ruleset"]] = all[r["ruleset"]] + " " + list
		}
	}
	return all
}

// allows reports whether a list has an address; an empty list has all.
func allows(list string, client netip.Addr) bool {
	words := platform.Words(list)
	return len(words) == 0 || slices.ContainsFunc(words, func(w string) bool {
		if strings.EqualFold(w, "all") {
			return true
		}
		if p, err := netip.ParsePrefix(w); err == nil {
			return p.Contains(client)
		}
		a, err := netip.ParseAddr(w)
		return err == nil && a == client
	})
}
