package gate

import (
	"fmt"

	"thru/internal/knob"
	"thru/internal/measure"
)

// remedy is what to do on a host: in words, by commands of its system, or both.
type remedy struct {
	lines  []string // commands, each as a shell takes it: no words beside them
	risk   string   // what the commands, or the advice, may cost
	advice string   // where no command does it, or to be done before
	at     string   // end point to run the commands at, where the gate belongs to none
}

// How long changes last, by system.
const (
	sysctlLasts  = "lasts until the next boot; to keep it, put it into /etc/sysctl.d/90-thru.conf"
	sysctlConf   = "lasts until the next boot; to keep it, put it into /etc/sysctl.conf"
	linkLasts    = "lasts until the next boot; to keep it, put it into the network configuration"
	linkMayFlap  = "the link may go down for some seconds: not over the only connection to the host"
	ipadmLasts   = "ipadm keeps it over a boot"
	dladmLasts   = "dladm keeps it over a boot"
	cmdletLasts  = "Windows keeps it over a boot; the adapter restarts"
	netshLasts   = "Windows keeps it over a boot"
	esxcliLasts  = "ESXi keeps it over a boot"
	onTheHost    = "by the administrator of the hypervisor"
	kernelPlaced = "VALUE"
)

// command fills a template of a command. Text that comes from a host gets in
// only where it is a plain word: a name such as `eth0; reboot` is replaced by
// a word in capitals, which the reader has to fill in.
func command(format string, args ...any) string {
	for i, a := range args {
		switch a := a.(type) {
		case nic:
			args[i] = a.word()
		case endName:
			args[i] = "HOST"
			if plain(string(a), "") {
				args[i] = string(a)
			}
		case string:
			args[i] = kernelPlaced
			if plain(a, "") {
				args[i] = a
			}
		}
	}
	return fmt.Sprintf(format, args...)
}

// commands of one system, with what they risk.
func commands(risk string, lines ...string) remedy { return remedy{lines: lines, risk: risk} }

// advise is a remedy in words only. Names of a host get in by command.
func advise(text string) remedy { return remedy{advice: text} }

// saying adds words to commands.
func (r remedy) saying(advice string) remedy { r.advice = advice; return r }

// risking adds what it may cost.
func (r remedy) risking(risk string) remedy { r.risk = risk; return r }

// at says at which end point to run the commands, for gates that belong to none.
func at(h *host, r remedy) remedy { r.at = h.name; return r }

// endName is the name of an end point on its way into a command.
type endName string

// nic is the name of an interface on its way into a command.
type nic struct{ name, os string }

// nic of the face.
func (f *face) nic() nic { return nic{f.Name, f.host.os} }

// word is the name as a shell of its system takes it.
func (n nic) word() string {
	return knob.Interface(n.os, n.name)
}

// typed are the commands of a knob on this host, none where its system has
// none: package knob has them for every system.
func (h *host) typed(id, iface, value string) []string {
	return knob.By(h.os, h.Facts, measure.Setting{Knob: id, Interface: iface, Value: value}, "").Set
}

// typed are the commands of a knob of this interface.
func (f *face) typed(id, value string) []string { return f.host.typed(id, f.Name, value) }

// lasts tells how long a setting of an interface lasts, by the system.
func (h *host) lasts() string {
	switch h.os {
	case "windows":
		return cmdletLasts
	case "solaris":
		return "lasts until the next boot"
	case "illumos":
		return ipadmLasts
	case "esxi":
		return esxcliLasts
	}
	return linkLasts
}

// plain tells whether text is one word that no shell reads anything into, and
// that no program takes for an option.
func plain(text, more string) bool { return knob.Plain(text, more) }
