package knob

import (
	"slices"
	"strings"

	"thru/internal/measure"
	"thru/internal/unit"
)

// Host is what Persistent needs to know of a host.
type Host struct {
	EndPoint   string              // its name
	OS         string              // "linux"
	Managers   []string            // the software that configures its interfaces (Facts.Managers)
	Interfaces []measure.Interface // their kinds and addresses
}

// HostOf takes from the facts of an end point what Persistent needs. An unknown system counts as Linux, the only
// one that thru changes.
func HostOf(endPoint string, f *measure.Facts) Host {
	h := Host{EndPoint: endPoint, OS: "linux"}
	if f != nil {
		h.Managers, h.Interfaces = f.Managers, f.Interfaces
		if f.OS != nil && *f.OS != "" {
			h.OS = *f.OS
		}
	}
	return h
}

// Persistent returns how to make kept settings survive a reboot of their host: which file its managers read, and
// which commands to run. It uses only this host's settings; of a knob that was set more than once, the last. Names
// and values go into files and commands only if they are plain words.
func Persistent(h Host, kept []measure.Setting) []measure.Persistence {
	own := latest(h.EndPoint, kept)
	switch {
	case len(own) == 0:
		return nil
	case h.OS == "linux":
		return h.linux(own)
	case h.OS == "freebsd":
		return h.freebsd(own)
	}
	return []measure.Persistence{h.entry(h.OS, measure.Persistence{Words: keepsItself(h.OS)})}
}

// latest returns the settings of one host in order, each knob once.
func latest(endPoint string, kept []measure.Setting) []measure.Setting {
	var own []measure.Setting
	for _, s := range kept {
		if k, ok := Find(s.Knob); !ok || k.Scope == OfTest || s.EndPoint != "" && s.EndPoint != endPoint {
			continue
		}
		own = slices.DeleteFunc(own, func(o measure.Setting) bool { return o.Knob == s.Knob && o.Interface == s.Interface })
		own = append(own, s)
	}
	return Ordered(own)
}

// entry fills in the host and the manager.
func (h Host) entry(manager string, l measure.Persistence) measure.Persistence {
	l.EndPoint, l.Platform, l.Manager = h.EndPoint, h.OS, manager
	return l
}

func (h Host) has(manager string) bool { return slices.Contains(h.Managers, manager) }

// header begins each file.
const header = "# Kept by thru tune.\n"

// linux assigns the settings to the managers that make them persistent.
func (h Host) linux(own []measure.Setting) []measure.Persistence {
	var sysctls, manualCommands []measure.Setting
	faces, names := map[string][]measure.Setting{}, []string(nil)
	var governor []measure.Setting
	for _, s := range own {
		switch {
		case Sysctl(s.Knob) != "" || s.Knob == Qdisc:
			sysctls = append(sysctls, s)
		case s.Knob == Governor:
			governor = append(governor, s)
		case s.Knob == RouteCongestion || s.Knob == IRQAffinity:
			manualCommands = append(manualCommands, s)
		default:
			if _, known := faces[s.Interface]; !known {
				names = append(names, s.Interface)
			}
			faces[s.Interface] = append(faces[s.Interface], s)
		}
	}
	list := h.sysctlFile(sysctls)
	var rules []string
	for _, name := range names {
		f := face{host: h, name: name, left: faces[name]}
		list = append(list, f.persistent()...)
		rules = append(rules, f.rules...)
		manualCommands = append(manualCommands, f.left...)
	}
	list = append(list, h.ruleFile(rules)...)
	list = append(list, h.governor(governor)...)
	return append(list, h.manualCommands(manualCommands)...)
}

// sysctlFile has all kernel settings: one file per host (sysctl.d(5)).
func (h Host) sysctlFile(settings []measure.Setting) []measure.Persistence {
	const file = "/etc/sysctl.d/90-thru.conf"
	if len(settings) == 0 {
		return nil
	}
	content, words := header, ""
	for _, s := range settings {
		name, value := Sysctl(s.Knob), plainWords(s.Value)
		if s.Knob == Qdisc {
			if slices.ContainsFunc(settings, func(o measure.Setting) bool {
				return o.Knob == DefaultQdisc || o.Knob == Qdisc && o.Value == s.Value && o.Interface < s.Interface
			}) {
				continue // said already
			}
			name, words = "net.core.default_qdisc", "net.core.default_qdisc applies to every interface that comes up, not only to those that were changed"
		}
		content += name + " = " + value + "\n"
	}
	return []measure.Persistence{h.entry("sysctl.d", measure.Persistence{File: file, Content: content, Commands: []string{"sysctl -p " + file}, Undo: []string{"rm " + file}, Words: words})}
}

// plainWords returns a value as it is written in a file.
func plainWords(value string) string {
	fields := strings.Fields(value)
	if len(fields) == 0 || slices.ContainsFunc(fields, func(f string) bool { return !Plain(f, "+") }) {
		return unknownValue
	}
	return strings.Join(fields, " ")
}

// governor is written by systemd-tmpfiles at boot, whose lines of type w write into existing files
// (tmpfiles.d(5)).
func (h Host) governor(settings []measure.Setting) []measure.Persistence {
	const file = "/etc/tmpfiles.d/90-thru.conf"
	if len(settings) == 0 {
		return nil
	}
	if !h.has("systemd-udevd") && !h.has("systemd-networkd") {
		return h.manualCommands(settings)
	}
	content := header
	if value := plainWords(settings[0].Value); !strings.Contains(value, " ") {
		content += "w /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor - - - - " + value + "\n"
	} else {
		for _, p := range pairs(value) {
			content += "w /sys/devices/system/cpu/" + p.name + "/cpufreq/scaling_governor - - - - " + p.value + "\n"
		}
	}
	return []measure.Persistence{h.entry("tmpfiles.d", measure.Persistence{File: file, Content: content, Commands: []string{"systemd-tmpfiles --create " + file}, Undo: []string{"rm " + file},
		Words: "a service that sets governors (power-profiles-daemon, tuned) starts later and overrides it"})}
}

// manualCommands returns the commands to run at boot for settings that no manager's file covers.
func (h Host) manualCommands(settings []measure.Setting) []measure.Persistence {
	var list []measure.Persistence
	script := measure.Persistence{Words: "no known network manager makes this persistent: run these commands at boot"}
	for _, s := range settings {
		words := By("linux", nil, bare(s), "")
		l := measure.Persistence{Commands: words.Set}
		switch s.Knob {
		case IRQAffinity:
			l.Words = "interrupt numbers may differ after a boot: leave them to irqbalance, or find them by name in /proc/interrupts with a boot script; irqbalance overwrites them if it runs"
			list = append(list, h.entry("boot script", l))
		case RouteCongestion:
			l.Words = "it is lost with the next boot: add `congctl` to the configuration of this route"
			list = append(list, h.entry("ip route", l))
		default:
			script.Commands = append(script.Commands, words.Set...)
			if len(words.Set) == 0 {
				script.Words += "; " + words.Words
			}
		}
	}
	if len(script.Commands) > 0 || strings.Contains(script.Words, ";") {
		list = append(list, h.entry("boot script", script))
	}
	return list
}

// bare returns a setting without the dependent features of an offload.
func bare(s measure.Setting) measure.Setting {
	if on := state(s.Value); on != "" && Short(s.Knob) != "" {
		s.Value = on
	}
	return s
}

// freebsd: sysctls go into sysctl.conf(5), options of an interface into rc.conf(5); settings in loader.conf are
// persistent already.
func (h Host) freebsd(own []measure.Setting) []measure.Persistence {
	files := []struct {
		file string
		l    measure.Persistence
	}{{"/etc/sysctl.conf", measure.Persistence{}}, {"/etc/rc.conf", measure.Persistence{}}, {"/boot/loader.conf", measure.Persistence{}}}
	sysctl, rc, loader := &files[0].l, &files[1].l, &files[2].l
	for _, s := range own {
		for _, line := range By("freebsd", nil, s, "").Set {
			switch program, rest, _ := strings.Cut(line, " "); program {
			case "sysctl":
				name, _, _ := strings.Cut(rest, "=")
				if add := "echo '" + rest + "' >> /etc/sysctl.conf"; !slices.Contains(sysctl.Commands, add) { // the ceiling is shared by both sides
					sysctl.Commands = append(sysctl.Commands, add)
					sysctl.Undo = append([]string{"sed -i '' '/^" + name + "=/d' /etc/sysctl.conf"}, sysctl.Undo...)
				}
			case "ifconfig":
				nic, option, _ := strings.Cut(rest, " ")
				name := "ifconfig_" + strings.NewReplacer(".", "_", "-", "_", ":", "_", "@", "_").Replace(nic) // rc.conf(5)
				rc.Commands = append(rc.Commands, "sysrc "+name+`+=" `+option+`"`)
				rc.Words = "to undo it, remove these words from " + name + " (sysrc " + name + " shows them)"
			default:
				loader.Words = "lines in /boot/loader.conf are persistent; a loaded module needs its line there (tcp_bbr_load=\"YES\"), powerd a line in /etc/rc.conf"
			}
		}
	}
	var list []measure.Persistence
	for _, f := range files {
		if len(f.l.Commands) > 0 || f.l.Words != "" {
			list = append(list, h.entry(f.file, f.l))
		}
	}
	return list
}

// keepsItself describes how a system keeps what its commands set.
func keepsItself(os string) string {
	switch os {
	case "windows":
		return "cmdlets and netsh settings are persistent: nothing to do"
	case "darwin":
		return "settings of sysctl and ifconfig last until the next boot: set them again with a launchd job"
	case "solaris", "illumos":
		return "settings of ipadm and dladm are persistent; those of ndd last until the next boot"
	case "esxi":
		return "esxcli settings are persistent, except rings, coalescing and pause: put these commands into /etc/rc.local.d/local.sh"
	}
	return "how to make it persistent on this system is not known"
}

// hardware matches an address as udev and systemd print it.
var hardware = unit.Pattern(`^([0-9a-f]{2}:){5}[0-9a-f]{2}$`)
