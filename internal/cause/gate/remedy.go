package gate

import (
	"fmt"

	"thru/internal/cause/knob"
	"thru/internal/measure"
)

// Remedy is what to do on a host: in words, by commands of its system, or both.
type Remedy struct {
	Lines  []string // commands, each as a shell takes it: no words beside them
	Risk   string   // what the commands, or the advice, may cost
	Advice string   // where no command does it, or to be done before
	at     string   // end point to run the commands at, where the gate belongs to none
}

// How long changes last, by system.
const (
	sysctlLasts  = "lasts until the next boot; to keep it, put it into /etc/sysctl.d/90-thru.conf"
	sysctlConf   = "lasts until the next boot; to keep it, put it into /etc/sysctl.conf"
	LinkLasts    = "lasts until the next boot; to keep it, put it into the network configuration"
	LinkMayFlap  = "the link may go down for some seconds: not over the only connection to the host"
	ipadmLasts   = "ipadm keeps it over a boot"
	dladmLasts   = "dladm keeps it over a boot"
	cmdletLasts  = "Windows keeps it over a boot; the adapter restarts"
	netshLasts   = "Windows keeps it over a boot"
	EsxcliLasts  = "ESXi keeps it over a boot"
	OnTheHost    = "by the administrator of the hypervisor"
	kernelPlaced = "VALUE"
)

// Command fills a template of a command. Text that comes from a host gets in
// only where it is a plain word: a name such as `eth0; reboot` is replaced by
// a word in capitals, which the reader has to fill in.
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
			args[i] = kernelPlaced
			if Plain(a, "") {
				args[i] = a
			}
		}
	}
	return fmt.Sprintf(format, args...)
}

// Commands of one system, with what they risk.
func Commands(risk string, lines ...string) Remedy { return Remedy{Lines: lines, Risk: risk} }

// Advise is a remedy in words only. Names of a host get in by command.
func Advise(text string) Remedy { return Remedy{Advice: text} }

// Saying adds words to commands.
func (r Remedy) Saying(advice string) Remedy { r.Advice = advice; return r }

// Risking adds what it may cost.
func (r Remedy) Risking(risk string) Remedy { r.Risk = risk; return r }

// At says at which end point to run the commands, for gates that belong to none.
func At(h *Host, r Remedy) Remedy { r.at = h.Name; return r }

// EndName is the name of an end point on its way into a command.
type EndName string

// NIC is the name of an interface on its way into a command.
type NIC struct{ Name, os string }

// NIC of the face.
func (f *Face) NIC() NIC { return NIC{f.Name, f.Host.System} }

// word is the name as a shell of its system takes it.
func (n NIC) word() string {
	return knob.Interface(n.os, n.Name)
}

// Typed are the commands of a knob on this host, none where its system has
// none: package knob has them for every system.
func (h *Host) Typed(id, iface, value string) []string {
	return knob.By(h.System, h.Facts, measure.Setting{Knob: id, Interface: iface, Value: value}, "").Set
}

// Typed are the commands of a knob of this interface.
func (f *Face) Typed(id, value string) []string { return f.Host.Typed(id, f.Name, value) }

// lasts tells how long a setting of an interface lasts, by the system.
func (h *Host) lasts() string {
	switch h.System {
	case "windows":
		return cmdletLasts
	case "solaris":
		return "lasts until the next boot"
	case "illumos":
		return ipadmLasts
	case "esxi":
		return EsxcliLasts
	}
	return LinkLasts
}

// Plain tells whether text is one word that no shell reads anything into, and
// that no program takes for an option.
func Plain(text, more string) bool { return knob.Plain(text, more) }
