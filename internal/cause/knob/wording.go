package knob

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"thru/internal/measure"
)

// Words are the commands with which a person makes a Setting manually at a host. Each line is one command for a
// shell of that system. Placeholders for the reader are in capitals: PEER, VALUE, INTERFACE.
type Words struct {
	Set    []string // in order
	Undo   []string // restores the value before, in order
	Verify []string // shows that it is set
	Cuts   string   // what it may interrupt
	Lasts  string   // how long it persists, and where to make it persistent
	Words  string   // if no command does it, or what to do first
}

// How long changes persist.
const (
	untilBoot   = "lasts until the next boot"
	afterBoot   = "in force after the next boot"
	ipadmKeeps  = "persistent (ipadm)"
	dladmKeeps  = "persistent (dladm)"
	adapterKeep = "persistent; the adapter restarts"
	netshKeeps  = "persistent"
	esxcliKeeps = "persistent"
)

// Placeholders for what is not known, or is no plain word.
const (
	unknownValue     = "VALUE"
	unknownInterface = "INTERFACE"
)

// wording collects the commands for one setting.
type wording struct {
	os     string
	facts  *measure.Facts
	knob   Knob
	set    measure.Setting
	before string   // "" if it is not known
	undo   []string // in the order of the commands that they undo
	unread []string // commands that show a value that is not known
	lasts  string   // how long it persists
	cuts   string   // what it interrupts, if that is not the link
	out    Words
}

// words ends the collection: it reverses the undo commands.
func (w *wording) words() Words {
	slices.Reverse(w.undo)
	w.out.Undo = w.undo
	if len(w.unread) > 0 {
		w.add("the current value is not known: read it first (" + strings.Join(w.unread, "; ") + "), and use it for " + unknownValue + " in the undo command")
	}
	if len(w.out.Set) == 0 && w.out.Words == "" {
		w.add("no command of " + systemName(w.os) + " is known for it")
	}
	if len(w.out.Set) > 0 {
		w.out.Lasts, w.out.Cuts = w.howLong(), w.cuts
	}
	if w.knob.Cuts && w.cuts == "" && w.lasts != adapterKeep && w.lasts != dladmKeeps && !strings.HasPrefix(w.lasts, afterBoot) {
		w.out.Cuts = MayFlap
	}
	return w.out
}

// howLong returns how long the setting persists, and where to make it persistent.
func (w *wording) howLong() string {
	unix := w.os == "linux" || w.os == "freebsd" || w.os == "darwin"
	switch {
	case w.lasts != untilBoot:
		return w.lasts
	case unix && Sysctl(w.set.Knob) != "":
		return SysctlLasts(w.os)
	case unix && w.knob.Scope == OfInterface && w.set.Knob != IRQAffinity:
		return untilBoot + "; to keep it, put it into the network configuration"
	}
	return untilBoot
}

// SysctlLasts returns how long a kernel setting persists, and where to make it persistent.
func SysctlLasts(os string) string {
	if os == "linux" {
		return untilBoot + "; to keep it, put it into /etc/sysctl.d/90-thru.conf"
	}
	return untilBoot + "; to keep it, put it into /etc/sysctl.conf"
}

// systemName returns the system's name if it is a known one, which is safe in a sentence.
func systemName(os string) string {
	if slices.Contains(Systems(), os) {
		return os
	}
	return "this system"
}

// option words an option of a test, as a person gives it.
func (w *wording) option(k Knob) Words {
	switch {
	case k.ID == Lean:
		w.add("give the test " + k.Linux)
	case w.set.Value == "":
		w.add("leave " + k.Linux + " out")
	default:
		w.add("give the test " + k.Linux + " " + w.word(w.set.Value))
	}
	return w.out
}

// do adds a command, what undoes it and what shows it, "" for none.
func (w *wording) do(set, undo, verify string) {
	w.out.Set = append(w.out.Set, set)
	if undo != "" {
		w.undo = append(w.undo, undo)
	}
	w.verify(verify)
}

// change adds a command that sets a value; the same command with the value before undoes it. If old is "", the
// reader has to fill that in, with read.
func (w *wording) change(command func(value string) string, value, old, read string) {
	if old == "" {
		old = unknownValue
		w.readFirst(read)
	}
	w.do(command(value), command(old), read)
}

// sets words a knob by one command that takes its value; {nic} and {value} stand for the interface and the value.
func sets(lasts, command, show string) func(*wording) {
	return func(w *wording) {
		w.lasts = lasts
		command, show := w.named(command), w.named(show)
		w.change(func(value string) string { return strings.Replace(command, "{value}", value, 1) }, w.value(), w.old(), show)
	}
}

// toggles words a knob that is on or off by one command each.
func toggles(lasts, on, off, show string) func(*wording) {
	return func(w *wording) {
		w.lasts = lasts
		w.toggle(w.named(on), w.named(off), w.named(show))
	}
}

// named returns a command with the interface in place of {nic}.
func (w *wording) named(command string) string { return strings.ReplaceAll(command, "{nic}", w.nic()) }

// readFirst adds a command that shows a value that is not known.
func (w *wording) readFirst(command string) {
	if command != "" && !slices.Contains(w.unread, command) {
		w.unread = append(w.unread, command)
	}
}

// verify adds a command that shows the setting, once.
func (w *wording) verify(command string) {
	if command != "" && !slices.Contains(w.out.Verify, command) {
		w.out.Verify = append(w.out.Verify, command)
	}
}

// add adds words.
func (w *wording) add(text string) {
	w.out.Words = strings.TrimPrefix(w.out.Words+"; "+text, "; ")
}

// fact returns the facts' value of a setting by its own name, "" if they lack it.
func (w *wording) fact(name string) string {
	if w.facts == nil {
		return ""
	}
	return strings.Join(strings.Fields(w.facts.Sysctls[name]), " ")
}

// old returns the value before as a word of a command; "" if it is not known.
func (w *wording) old() string {
	return w.wordOr(w.before)
}

// now returns the value before of a setting with this name on the system.
func (w *wording) now(name string) string {
	if w.before != "" {
		return w.old()
	}
	return w.known(name)
}

// wordOr returns text as a word of a command, "" if there is none.
func (w *wording) wordOr(text string) string {
	if text == "" {
		return ""
	}
	return w.word(text)
}

// known returns the facts' value as a word of a command; "" if they lack it.
func (w *wording) known(name string) string {
	if v := w.fact(name); v != "" {
		return w.word(v)
	}
	return ""
}

// value returns the new value as a word of a command.
func (w *wording) value() string { return w.word(w.set.Value) }

// word returns text as one word of a command: plain words as they are, several in single quotes, and VALUE for
// anything that a shell could interpret.
func (w *wording) word(text string) string {
	fields := strings.Fields(text)
	for _, f := range fields {
		if !Plain(f, "+,") {
			return unknownValue
		}
	}
	switch len(fields) {
	case 0:
		return unknownValue
	case 1:
		return fields[0]
	}
	return "'" + strings.Join(fields, " ") + "'"
}

// nic returns the setting's interface as a word of a command.
func (w *wording) nic() string { return Interface(w.os, w.set.Interface) }

// Interface returns the name of an interface for the shell of a system. A name that a shell would interpret
// becomes INTERFACE, which the reader fills in.
func Interface(os, name string) string {
	switch {
	case Plain(name, ""):
		return name
	case os == "windows" && Plain(name, " #()"):
		return "'" + name + "'" // PowerShell takes everything in single quotes literally
	}
	return unknownInterface
}

// Plain reports whether text is one word that no shell interprets, and that no program takes for an option. more
// are characters allowed besides letters, digits and "._:@-".
func Plain(text, more string) bool {
	for _, c := range text {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && !strings.ContainsRune("._:@-"+more, c) {
			return false
		}
	}
	return text != "" && len(text) <= 64 && text[0] != '-' && text[0] != ' '
}

// format returns a command with one place for its value.
func format(text string, args ...any) func(string) string {
	return func(value string) string { return fmt.Sprintf(text, append(slices.Clone(args), value)...) }
}

// third returns the maximum of the three numbers of a TCP buffer.
func third(value string) string {
	fields := strings.Fields(value)
	if len(fields) != 3 {
		return ""
	}
	return fields[2]
}

// pair is one element of a value that covers several: "rx-usecs" "50".
type pair struct{ name, value string }

// pairs parses a value of alternating names and values; it takes only plain ones.
func pairs(value string) []pair {
	fields := strings.Fields(value)
	var list []pair
	for i := 0; i+1 < len(fields); i += 2 {
		if Plain(fields[i], "") && Plain(fields[i+1], ",") {
			list = append(list, pair{fields[i], fields[i+1]})
		}
	}
	return list
}

// queues returns how many receive queues a value of Channels has: "combined 4" or "rx 4 tx 1"; "" if it has none.
func queues(value string) string {
	for _, name := range []string{"combined", "rx"} {
		if n := named(pairs(value), name); n != unknownValue && n != "0" {
			return n
		}
	}
	return ""
}

// differing returns the pairs of a value that differ in another.
func differing(value, other string) []pair {
	have := pairs(other)
	return slices.DeleteFunc(pairs(value), func(p pair) bool { return slices.Contains(have, p) })
}

// named returns the value of the pair of that name, VALUE if there is none.
func named(list []pair, name string) string {
	for _, p := range list {
		if p.name == name {
			return p.value
		}
	}
	return unknownValue
}

// toggle words what is on or off: one command each. An unknown state before counts as the opposite one.
func (w *wording) toggle(on, off, show string) {
	state, _, _ := strings.Cut(w.set.Value, " ")
	before, _, _ := strings.Cut(w.before, " ")
	switch {
	case state != "on" && state != "off":
		w.add("set it to on or off")
		return
	case before == state:
		w.do(map[string]string{"on": on, "off": off}[state], map[string]string{"on": on, "off": off}[state], show)
		return
	case before == "":
		w.add("the undo command assumes that it was the opposite: check with " + show + " before")
	}
	if state == "on" {
		w.do(on, off, show)
		return
	}
	w.do(off, on, show)
}

// verifyPath adds a ping of a full packet that must not be fragmented: the MTU without the headers of IPv4 and
// ICMP.
func (w *wording) verifyPath(ping string) {
	if mtu, err := strconv.Atoi(w.set.Value); err == nil && mtu > 28 {
		w.verify(fmt.Sprintf(ping, mtu-28))
	}
}

// flowControl chooses of four words: for none, receive, send, both.
func flowControl(value, of string) string {
	p := pairs(value)
	i := 0
	if named(p, "rx") == "on" {
		i++
	}
	if named(p, "tx") == "on" {
		i += 2
	}
	return of[i : i+1]
}
