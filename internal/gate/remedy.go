package gate

import (
	"fmt"
	"strings"
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
	sysctlLasts    = "lasts until the next boot; to keep it, put it into /etc/sysctl.d/90-thru.conf"
	sysctlConf     = "lasts until the next boot; to keep it, put it into /etc/sysctl.conf"
	linkLasts      = "lasts until the next boot; to keep it, put it into the network configuration"
	linkMayFlap    = "the link may go down for some seconds: not over the only connection to the host"
	ipadmLasts     = "ipadm keeps it over a boot"
	dladmLasts     = "dladm keeps it over a boot"
	cmdletLasts    = "Windows keeps it over a boot; the adapter restarts"
	netshLasts     = "Windows keeps it over a boot"
	esxcliLasts    = "ESXi keeps it over a boot"
	onTheHost      = "by the administrator of the hypervisor"
	placeholder    = "INTERFACE"
	kernelPlaced   = "VALUE"
	powershellName = " #()" // characters that a name in quotes may hold beside those of a plain word
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
	switch {
	case n.os == "windows" && plain(n.name, powershellName):
		return "'" + n.name + "'" // PowerShell takes everything in single quotes as it is
	case plain(n.name, ""):
		return n.name
	}
	return placeholder
}

// plain tells whether text is one word that no shell reads anything into, and
// that no program takes for an option.
func plain(text, more string) bool {
	for _, c := range text {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && !strings.ContainsRune("._:@-"+more, c) {
			return false
		}
	}
	return text != "" && len(text) <= 64 && text[0] != '-' && text[0] != ' '
}
