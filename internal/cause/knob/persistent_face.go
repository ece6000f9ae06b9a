package knob

import (
	"cmp"
	"slices"
	"strings"

	"thru/internal/measure"
)

// face makes the settings of one interface persistent: each manager takes the remaining settings that it supports.
type face struct {
	host  Host
	name  string
	left  []measure.Setting
	rules []string // of udev
}

// persistent returns what managers with files of their own do; udev rules go to f.rules, and unsupported settings
// stay in f.left.
func (f *face) persistent() []measure.Persistence {
	var list []measure.Persistence
	if f.host.has("NetworkManager") {
		list = append(list, f.networkManager()...)
	} else if f.host.has("netplan") {
		list = append(list, f.netplan()...)
	}
	if f.host.has("systemd-udevd") {
		list = append(list, f.linkFile()...)
	}
	if f.host.has("systemd-udevd") || f.host.has("udev") {
		f.udev()
	}
	return list
}

// take removes the settings that a manager supports from those left.
func (f *face) take(words func(measure.Setting) []pair) []pair {
	var all []pair
	f.left = slices.DeleteFunc(slices.Clone(f.left), func(s measure.Setting) bool {
		p := words(s)
		all = append(all, p...)
		return len(p) > 0
	})
	return all
}

// word returns the interface's name, or INTERFACE if it is no plain word.
func (f *face) word() string { return Interface("linux", f.name) }

// Short returns the name of an offload for ethtool -K and NetworkManager; "" if there is none.
func Short(id string) string {
	for _, k := range offloadKnobs() {
		if k.ID == id {
			return strings.TrimPrefix(k.Linux, "ethtool -K ")
		}
	}
	return ""
}

// state returns whether an offload is on, "" if the value says neither.
func state(value string) string {
	word, _, _ := strings.Cut(value, " ")
	if word != "on" && word != "off" {
		return ""
	}
	return word
}

// networkManager changes the connection that is active on the interface (nm-settings-nmcli(5)): MTU, offloads,
// rings, moderation.
func (f *face) networkManager() []measure.Persistence {
	p := f.take(func(s measure.Setting) []pair {
		switch {
		case s.Knob == MTU:
			return []pair{{"802-3-ethernet.mtu", plainWords(s.Value)}}
		case Short(s.Knob) != "" && state(s.Value) != "":
			return []pair{{"ethtool.feature-" + Short(s.Knob), state(s.Value)}}
		case s.Knob == RXRing || s.Knob == TXRing:
			return []pair{{"ethtool.ring-" + strings.TrimSuffix(s.Knob, "-ring"), plainWords(s.Value)}}
		case s.Knob == Coalescing:
			list := pairs(s.Value)
			for i := range list {
				list[i] = pair{"ethtool.coalesce-" + list[i].name, strings.NewReplacer("on", "1", "off", "0").Replace(list[i].value)}
			}
			return list
		}
		return nil
	})
	if len(p) == 0 {
		return nil
	}
	modify := `nmcli connection modify "$(nmcli -g GENERAL.CONNECTION device show ` + f.word() + `)"`
	set, undo := modify, modify
	for _, x := range p {
		none := "''"
		switch {
		case strings.HasSuffix(x.name, ".mtu"):
			none = "0"
		case strings.Contains(x.name, ".feature-"):
			none = "ignore"
		}
		set += " " + x.name + " " + x.value
		undo += " " + x.name + " " + none
	}
	return []measure.Persistence{f.host.entry("NetworkManager", measure.Persistence{Commands: []string{set}, Undo: []string{undo},
		Words: "for the active connection of " + f.word() + "; no effect if NetworkManager does not manage it (nmcli device status)"})}
}

// netplan sets the MTU (netplan-set(8)), in a file of its own.
func (f *face) netplan() []measure.Persistence {
	if strings.Contains(f.name, ".") {
		return nil // netplan set reads dots as the path to a key
	}
	p := f.take(func(s measure.Setting) []pair {
		if s.Knob != MTU {
			return nil
		}
		return []pair{{"mtu", plainWords(s.Value)}}
	})
	if len(p) == 0 {
		return nil
	}
	section := cmp.Or(map[string]string{"bond": "bonds", "bridge": "bridges", "vlan": "vlans"}[f.kind()], "ethernets")
	command := "netplan set --origin-hint 90-thru " + section + "." + f.word() + ".mtu="
	return []measure.Persistence{f.host.entry("netplan", measure.Persistence{Commands: []string{command + p[0].value}, Undo: []string{command + "null"},
		Words: "it writes /etc/netplan/90-thru.yaml; if /etc/netplan has the interface under another id (`match:`), use that instead of " + f.word()})}
}

func (f *face) kind() string {
	if i := f.known(); i != nil {
		return measure.Value(i.Kind)
	}
	return ""
}

// known returns the interface from the facts, or nil.
func (f *face) known() *measure.Interface {
	return (&measure.Facts{Interfaces: f.host.Interfaces}).Interface(f.name)
}

// address returns that of a device, "" for a software interface, which may share or change it.
func (f *face) address() string {
	i := f.known()
	if !i.IsDevice() || i.MAC == nil || !hardware().MatchString(*i.MAC) || i.Master != nil {
		return ""
	}
	return *i.MAC
}

// linkFile is a file of systemd-udevd for the interface (systemd.link(5)). Only the first matching file is read,
// so it repeats the naming policy of the default file, before which it sorts.
func (f *face) linkFile() []measure.Persistence {
	keys := f.take(linkKeys)
	if len(keys) == 0 {
		return nil
	}
	match, note := "OriginalName="+f.word(), "; OriginalName= is the name before any renaming"
	if mac := f.address(); mac != "" {
		match, note = "PermanentMACAddress="+mac, ""
	}
	content := header + "[Match]\n" + match + "\n\n[Link]\n"
	for _, k := range keys {
		content += k.name + "=" + k.value + "\n"
	}
	content += "# As in 99-default.link, which this file overrides: interface names stay the same.\n" +
		"NamePolicy=keep kernel database onboard slot path\nAlternativeNamesPolicy=database onboard slot path mac\nMACAddressPolicy=persistent\n"
	file := "/etc/systemd/network/90-thru-" + f.word() + ".link"
	return []measure.Persistence{f.host.entry("systemd.link", measure.Persistence{File: file, Content: content,
		Commands: []string{"udevadm control --reload", "udevadm test-builtin net_setup_link /sys/class/net/" + f.word()}, Undo: []string{"rm " + file, "udevadm control --reload"},
		Words: "applied at the next boot; only the first matching .link file by name counts: if the second command names another file, put the lines under [Link] there" + note})}
}

// LinkKeys returns the keys by which systemd.link(5) sets a setting; none if it cannot.
func LinkKeys(s measure.Setting) (names []string) {
	for _, k := range linkKeys(s) {
		names = append(names, k.name)
	}
	return names
}

// linkKeys returns these keys with their values.
func linkKeys(s measure.Setting) []pair {
	value := plainWords(s.Value)
	yes := map[string]string{"on": "yes", "off": "no"}
	offloads := map[string][]string{TSO: {"TCPSegmentationOffload", "TCP6SegmentationOffload"}, GSO: {"GenericSegmentationOffload"}, GRO: {"GenericReceiveOffload"},
		LRO: {"LargeReceiveOffload"}, TXChecksum: {"TransmitChecksumOffload"}, RXChecksum: {"ReceiveChecksumOffload"}}
	var list []pair
	switch s.Knob {
	case MTU:
		list = []pair{{"MTUBytes", value}}
	case TxQueueLen:
		list = []pair{{"TransmitQueueLength", value}}
	case RXRing:
		list = []pair{{"RxBufferSize", value}}
	case TXRing:
		list = []pair{{"TxBufferSize", value}}
	case Channels:
		names := map[string]string{"combined": "CombinedChannels", "rx": "RxChannels", "tx": "TxChannels", "other": "OtherChannels"}
		list = renamed(pairs(s.Value), names, nil)
	case Pause:
		list = renamed(pairs(s.Value), map[string]string{"autoneg": "AutoNegotiationFlowControl", "rx": "RxFlowControl", "tx": "TxFlowControl"}, yes)
	case Coalescing:
		list = coalesceKeys(pairs(s.Value), yes)
	default:
		for _, name := range offloads[s.Knob] {
			if on := yes[state(s.Value)]; on != "" {
				list = append(list, pair{name, on})
			}
		}
	}
	return list
}

// renamed translates the keys and, with words, the values of pairs.
func renamed(list []pair, names, words map[string]string) []pair {
	var out []pair
	for _, p := range list {
		value := p.value
		if words != nil {
			value = words[p.value]
		}
		if name := names[p.name]; name != "" && value != "" {
			out = append(out, pair{name, value})
		}
	}
	return out
}

// coalesceKeys adds the unit of time that systemd.link(5) expects.
func coalesceKeys(list []pair, yes map[string]string) []pair {
	out := renamed(list, map[string]string{"adaptive-rx": "UseAdaptiveRxCoalesce", "adaptive-tx": "UseAdaptiveTxCoalesce"}, yes)
	spans := renamed(list, map[string]string{"rx-usecs": "RxCoalesceSec", "tx-usecs": "TxCoalesceSec", "rx-usecs-irq": "RxCoalesceIrqSec", "tx-usecs-irq": "TxCoalesceIrqSec"}, nil)
	for _, s := range spans {
		out = append(out, pair{s.name, s.value + "us"})
	}
	return append(out, renamed(list, map[string]string{"rx-frames": "RxMaxCoalescedFrames", "tx-frames": "TxMaxCoalescedFrames",
		"rx-frames-irq": "RxMaxCoalescedIrqFrames", "tx-frames-irq": "TxMaxCoalescedIrqFrames"}, nil)...)
}

// udev handles the rest: rules that write attributes, or run ethtool, when the interface appears (udev(7)).
func (f *face) udev() {
	match := `ACTION=="add", SUBSYSTEM=="net", KERNEL=="` + f.word() + `", `
	if mac := f.address(); mac != "" {
		match = `ACTION=="add", SUBSYSTEM=="net", DRIVERS=="?*", ATTR{address}=="` + mac + `", `
	}
	f.left = slices.DeleteFunc(slices.Clone(f.left), func(s measure.Setting) bool {
		lines := f.udevLines(s)
		for _, line := range lines {
			f.rules = append(f.rules, match+line)
		}
		return len(lines) > 0
	})
}

// udevLines returns the assignments of a setting: an attribute below /sys/class/net/NAME, or the command of By if
// there is none.
func (f *face) udevLines(s measure.Setting) []string {
	switch s.Knob {
	case MTU:
		return []string{`ATTR{mtu}="` + plainWords(s.Value) + `"`}
	case TxQueueLen:
		return []string{`ATTR{tx_queue_len}="` + plainWords(s.Value) + `"`}
	}
	var lines []string
	for _, line := range By("linux", nil, bare(s), "").Set {
		if strings.HasPrefix(line, "ethtool ") {
			lines = append(lines, `RUN+="/usr/sbin/`+line+`"`)
		}
		value, file, ok := strings.Cut(strings.TrimPrefix(line, "echo "), " > /sys/class/net/"+f.word()+"/")
		if ok {
			lines = append(lines, "ATTR{"+file+`}="`+value+`"`)
		}
	}
	return lines
}

// ruleFile holds the rules of all interfaces.
func (h Host) ruleFile(rules []string) []measure.Persistence {
	const file = "/etc/udev/rules.d/90-thru.rules"
	if len(rules) == 0 {
		return nil
	}
	return []measure.Persistence{h.entry("udev", measure.Persistence{File: file, Content: header + strings.Join(rules, "\n") + "\n", Commands: []string{"udevadm control --reload"},
		Undo: []string{"rm " + file, "udevadm control --reload"}, Words: "applied when the interface appears the next time; ethtool must be at /usr/sbin/ethtool"})}
}
