package knob

import (
	"cmp"
	"fmt"
	"strings"
)

// linux words each knob by the commands that do what package tune does.
func linux() map[string]func(*wording) {
	all := map[string]func(*wording){
		RouteCongestion: linuxRoute, Qdisc: linuxQdisc, MTU: linuxMTU,
		RXRing:     sets(untilBoot, "ethtool -G {nic} rx {value}", "ethtool -g {nic}"),
		TXRing:     sets(untilBoot, "ethtool -G {nic} tx {value}", "ethtool -g {nic}"),
		Channels:   linuxPairs("ethtool -L %s", "ethtool -l %s", true),
		Coalescing: linuxPairs("ethtool -C %s", "ethtool -c %s", true),
		Pause:      linuxPairs("ethtool -A %s", "ethtool -a %s", true),
		RSSHash:    linuxPairs("ethtool -N %s rx-flow-hash", "", false),
		RSSTable:   linuxTable,
		RPS:        linuxMasks("rps_cpus"), XPS: linuxMasks("xps_cpus"),
		IRQAffinity: linuxInterrupts, Governor: linuxGovernor,
		TxQueueLen: sets(untilBoot, "ip link set dev {nic} txqueuelen {value}", "ip link show dev {nic}"),
	}
	for _, k := range append(tcpKnobs(), stackKnobs()...) {
		if strings.HasPrefix(k.Linux, "net.") {
			all[k.ID] = sets(untilBoot, "sysctl -w "+k.Linux+"={value}", "sysctl "+k.Linux)
		}
	}
	for _, k := range offloadKnobs() {
		all[k.ID] = linuxFeature(strings.TrimPrefix(k.Linux, "ethtool -K "))
	}
	return all
}

// linuxRoute words the congestion control of a route. A route is replaced as a whole, so the command copies the
// rest of it from the current one.
func linuxRoute(w *wording) {
	w.lasts = untilBoot
	to, rest, ok := routeWords(w.set.Interface)
	if !ok {
		w.add("replace the route with the line that `ip route show` prints, and add `congctl`")
		return
	}
	ip := "ip route"
	if strings.Contains(to, ":") {
		ip = "ip -6 route"
	}
	show := strings.TrimSpace(ip + " show exact " + to + " " + rest)
	command := func(value string) string {
		// The shown route lacks its selectors, so they are given again.
		c := fmt.Sprintf("%s replace $(%s | %s) %s", ip, show, routeText, rest)
		if value != "" {
			c = strings.TrimSpace(c) + " congctl " + value
		}
		return strings.TrimSpace(c)
	}
	value := ""
	if w.set.Value != "" {
		value = w.value()
	}
	w.do(command(value), command(w.old()), show)
	if ip != "ip route" {
		w.add("the change removes the lifetime of a route that a router advertised")
	}
}

// routeText removes from a shown route the part to change, and what ip shows but does not accept (iproute2 6.1):
// flags of a link that is down, and a lifetime in seconds. If the route is gone it returns a word that ip refuses,
// since without a destination ip would replace the default route.
const routeText = `sed 's/$/ /; s/ congctl [^ ]*//; s/ expires [^ ]*//; s/ linkdown / /; s/ dead / /' | grep . || echo gone`

// routeWords splits a route's name ("10.0.0.0/24 dev eth0 table main metric 0") into its destination and its other
// selectors.
func routeWords(name string) (to, rest string, ok bool) {
	fields := strings.Fields(name)
	if len(fields)%2 != 1 || !Plain(fields[0], "/") {
		return "", "", false
	}
	for i := 1; i < len(fields); i += 2 {
		known := strings.Contains(" dev via table metric proto scope src tos ", " "+fields[i]+" ")
		if !known || !Plain(fields[i+1], "") {
			return "", "", false
		}
	}
	return fields[0], strings.Join(fields[1:], " "), true
}

func linuxQdisc(w *wording) {
	w.lasts = untilBoot
	root := func(name string) string {
		switch name {
		case "", "noqueue", "mq": // the kernel's default comes back
			return fmt.Sprintf("tc qdisc del dev %s root", w.nic())
		}
		return fmt.Sprintf("tc qdisc replace dev %s root %s", w.nic(), name)
	}
	show := fmt.Sprintf("tc -s qdisc show dev %s", w.nic())
	value, _, _ := strings.Cut(w.set.Value, " ")
	before, handle, _ := strings.Cut(w.before, " ")
	if handle != "" {
		w.add("change the queueing discipline where it is configured: replacing it here loses its options")
		w.verify(show)
		return
	}
	if before == "" {
		w.do(root(w.word(value)), root(unknownValue), show)
		w.readFirst(show)
		return
	}
	w.do(root(w.word(value)), root(w.word(before)), show)
}

func linuxMTU(w *wording) {
	w.lasts = untilBoot
	w.change(format("ip link set dev %s mtu %s", w.nic()), w.value(), w.old(), "ip link show dev "+w.nic())
	w.verifyPath("ping -M do -c 3 -s %d PEER")
}

// linuxFeature words an offload. Its value is "on" or "off", and may name the dependent features ("off
// tx-tcp-segmentation=off ..."): the command names those that differ, so that undoing is exact.
func linuxFeature(option string) func(*wording) {
	return func(w *wording) {
		w.lasts = untilBoot
		show := "ethtool -k " + w.nic()
		value, old := features(option, w.set.Value, w.before), features(option, w.before, w.set.Value)
		if old == "" {
			old = option + " " + unknownValue
			w.readFirst(show)
		}
		value = cmp.Or(value, option+" "+unknownValue)
		w.do("ethtool -K "+w.nic()+" "+value, "ethtool -K "+w.nic()+" "+old, show)
	}
}

// features returns the arguments of ethtool -K for a value of an offload, without the features that are the same
// in another value.
func features(option, value, other string) string {
	fields := strings.Fields(value)
	if len(fields) == 0 {
		return ""
	}
	same := " " + other + " "
	var list []string
	for _, f := range fields {
		name, state, part := strings.Cut(f, "=")
		if !part {
			name, state = option, f
		}
		if state != "on" && state != "off" || !Plain(name, "") {
			return ""
		}
		if part && !strings.Contains(same, " "+f+" ") {
			list = append(list, name, state)
		}
	}
	if on := fields[0]; len(list) == 0 && !strings.Contains(on, "=") {
		return option + " " + on
	}
	return strings.Join(list, " ")
}

// linuxPairs words a value of names and values: those that differ from before, in one command or in one each.
func linuxPairs(set, show string, together bool) func(*wording) {
	return func(w *wording) {
		w.lasts = untilBoot
		set, shown := fmt.Sprintf(set, w.nic()), ""
		if show != "" {
			shown = fmt.Sprintf(show, w.nic())
		}
		old := pairs(w.before)
		var do, undo string
		for _, p := range differing(w.set.Value, w.before) {
			if !together { // rx-flow-hash is read by the kind of flow
				shown = fmt.Sprintf("ethtool -n %s rx-flow-hash %s", w.nic(), p.name)
				w.pairUnread(old, shown)
				w.do(set+" "+p.name+" "+p.value, set+" "+p.name+" "+named(old, p.name), shown)
				continue
			}
			do += " " + p.name + " " + p.value
			undo += " " + p.name + " " + named(old, p.name)
		}
		if do != "" {
			w.pairUnread(old, shown)
			w.do(set+do, set+undo, shown)
		}
	}
}

func (w *wording) pairUnread(old []pair, show string) {
	if len(old) == 0 {
		w.readFirst(show)
	}
}
