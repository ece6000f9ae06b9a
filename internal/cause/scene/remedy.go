package scene

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"thru/internal/cause/knob"
	"thru/internal/measure"
)

// Fix is what to do on a host: in words, by commands of its system, or both.
type Fix struct {
	Lines  []string // commands, each as a shell takes it, without other words
	Risk   string   // what the commands, or the advice, may cost
	Advice string   // if no command does it, or to be done first
	End    string   // end point to run the commands at, for a gate that belongs to none
}

// OnTheHost names who does what a guest cannot.
const OnTheHost = "only the administrator of the hypervisor can do this"

// Command fills a command template. Text from a host is inserted only if it is a plain word: a name such as `eth0;
// reboot` is replaced by a placeholder in capitals, which the reader fills in.
func Command(format string, args ...any) string {
	for i, a := range args {
		switch a := a.(type) {
		case NIC:
			args[i] = a.word()
		case EndName:
			args[i] = "HOST"
			if Plain(string(a), "") {
				args[i] = string(a)
			}
		case string:
			args[i] = "VALUE"
			if Plain(a, "") {
				args[i] = a
			}
		}
	}
	return fmt.Sprintf(format, args...)
}

// Commands returns a fix of commands for one system, with their risk.
func Commands(risk string, lines ...string) Fix { return Fix{Lines: lines, Risk: risk} }

// Advise returns a fix in words only. Insert names from a host with Command.
func Advise(text string) Fix { return Fix{Advice: text} }

// WithAdvice adds words to the commands.
func (r Fix) WithAdvice(advice string) Fix { r.Advice = advice; return r }

// Risking adds the risk.
func (r Fix) Risking(risk string) Fix { r.Risk = risk; return r }

// At names the end point at which to run the commands, for gates that belong to none.
func At(h *Host, r Fix) Fix { r.End = h.Name; return r }

// EndName is the name of an end point, to be inserted into a command.
type EndName string

// NIC is the name of an interface, to be inserted into a command.
type NIC struct{ Name, os string }

// NIC returns the name of the interface.
func (f *Face) NIC() NIC { return NIC{f.Name, f.Host.System} }

// word returns the name quoted for a shell of its system.
func (n NIC) word() string {
	return knob.Interface(n.os, n.Name)
}

// Set sets a knob of the host with the command of its system; the fix is empty if there is none.
func (h *Host) Set(id, iface, value string) Fix {
	w := knob.By(h.System, h.Facts, measure.Setting{Knob: id, Interface: iface, Value: value}, "")
	if len(w.Set) == 0 {
		return Fix{}
	}
	return Fix{Lines: w.Set, Risk: strings.TrimPrefix(w.Cuts+"; "+w.Lasts, "; ")}
}

// Set sets a knob of this interface.
func (f *Face) Set(id, value string) Fix { return f.Host.Set(id, f.Name, value) }

// And appends another fix to this one. All ethtool settings of one interface become one command.
func (r Fix) And(o Fix) Fix {
	for _, line := range o.Lines {
		last := len(r.Lines) - 1
		words := strings.SplitN(line, " ", 4)
		switch {
		case slices.Contains(r.Lines, line):
		case last >= 0 && words[0] == "ethtool" && len(words) == 4 && strings.HasPrefix(r.Lines[last], strings.Join(words[:3], " ")+" "):
			r.Lines[last] += " " + words[3]
		default:
			r.Lines = append(r.Lines, line)
		}
	}
	r.Risk = cmp.Or(r.Risk, o.Risk)
	return r
}

// Or is the advice if no command of the system does it.
func (r Fix) Or(advice string) Fix {
	if len(r.Lines) == 0 && r.Advice == "" {
		return Advise(advice)
	}
	return r
}

// Costing puts the cost before the text about persistence.
func (r Fix) Costing(text string) Fix {
	if len(r.Lines) > 0 {
		r.Risk = strings.TrimSuffix(text+"; "+r.Risk, "; ")
	}
	return r
}

// Sysctls sets settings that are not knobs of thru.
func Sysctls(h *Host, settings ...string) Fix {
	r := Fix{Risk: knob.SysctlLasts(h.System)}
	for _, s := range settings {
		if h.System == "freebsd" {
			r.Lines = append(r.Lines, "sysctl "+s)
		} else {
			r.Lines = append(r.Lines, "sysctl -w "+s)
		}
	}
	return r
}

// Plain reports whether text is one word in which a shell finds nothing to interpret, and that no program takes
// for an option.
func Plain(text, more string) bool { return knob.Plain(text, more) }
