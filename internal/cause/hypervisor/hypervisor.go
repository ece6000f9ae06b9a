// Package hypervisor holds the causes in the hypervisor of a virtual machine: its virtual switch, queues and
// limits.
package hypervisor

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"thru/internal/cause/diagnose"
	"thru/internal/cause/scene"
	"thru/internal/measure"
)

// HypervisorHost returns the host that the end's guest is on, or that the end is.
func HypervisorHost(e *diagnose.End) *measure.GuestHost {
	for _, b := range e.Placements {
		if b.Host != nil {
			return b.Host
		}
	}
	return nil
}

// HostName returns that host's name for a sentence.
func HostName(e *diagnose.End) string {
	if h := HypervisorHost(e); h != nil && h.Name != "" {
		return diagnose.Line(h.Name)
	}
	return "its host"
}

// GuestName returns the virtual machine's name for a sentence.
func GuestName(e *diagnose.End) string {
	if g := e.Guest(); g != nil && g.Name != "" {
		return diagnose.Line(g.Name)
	}
	return "the " + e.Place + "'s guest"
}

// AtHost returns the place of a cause at the hypervisor of the end.
func AtHost(e *diagnose.End, name string) measure.Where {
	w := e.Where()
	w.Below = name
	return w
}

// NoPlacement returns the outcome of a rule that needs the host placement of an end if that is not known; nil if
// no hypervisor was queried.
func NoPlacement(e *diagnose.End, fact string) *diagnose.Outcome {
	switch {
	case e.Guest() != nil:
		return nil
	case len(e.Placements) > 0:
		return nil // a host itself
	case e.NoPlace != "":
		return diagnose.Missing(fact+" of the "+e.Place, e.NoPlace)
	case e.HidesSteal():
		return diagnose.Missing(fact+" of the "+e.Place, "it is a guest; `--hypervisor URL` reads its host")
	}
	return nil
}

// HostCounter returns a counter of the host that the end is on.
func HostCounter(e *diagnose.End, counter string) diagnose.Gauges {
	return e.Read(counter, func(b *measure.HostPlacement) string {
		if b.Host == nil {
			return ""
		}
		return b.Host.ID
	})
}

// GaugeEvidence words a gauge as evidence: its subject, its name, and its source's own name for it.
func GaugeEvidence(x diagnose.Gauge, of string, value float64, unit string) measure.Proof {
	name := cmp.Or(x.Native, x.Counter)
	if plain := plainName(x.Counter); plain != "" {
		name = plain + " (" + name + ")"
	}
	switch isNumbered := IsNumber10(x.Instance); {
	case isNumbered && strings.HasPrefix(x.Counter, "cpu."):
		name += " of virtual CPU " + x.Instance
	case isNumbered:
		name += " of port " + x.Instance
	case x.Instance != "":
		name += " of " + x.Instance
	}
	return measure.Proof{EndPoint: of, Counter: diagnose.Line(name), Value: value, Unit: unit, SpanNs: x.SpanNs}
}

// plainName words a counter in two words or more, unlike some sources' own names: "cpu.ready.summation", "% Used".
func plainName(counter string) string {
	return map[string]string{
		measure.CounterReady: "ready time", measure.CounterCoStop: "co-stop time", measure.CounterLimited: "limited by a CPU limit", measure.CounterSwapWait: "waiting for swap",
		measure.CounterUsage: "CPU load", measure.CounterBalloon: "ballooned memory", measure.CounterSwapped: "swapped memory", measure.CounterSwapIn: "swapped in per second",
		measure.CounterMemWait: "waiting for memory", measure.CounterRxBps: "received rate", measure.CounterTxBps: "sent rate",
		measure.CounterRxDropped: "dropped received packets", measure.CounterTxDropped: "dropped sent packets", measure.CounterRxDropPct: "dropped received packets", measure.CounterTxDropPct: "dropped sent packets",
		measure.CounterRingFull: "receive ring full", measure.CounterNoBuffer: "no buffer in the ring", measure.CounterQueueRx: "received packets", measure.CounterThread: "CPU time",
	}[counter]
}

// Seconded joins what an end saw with what its hypervisor reports, which knows more.
func Seconded(own, below *diagnose.Outcome) *diagnose.Outcome {
	switch {
	case below == nil:
		return own
	case own == nil:
		return below
	case own.State == diagnose.Holds && below.State == diagnose.Holds:
		return diagnose.Both(own, below)
	case own.State == diagnose.Holds && below.State == diagnose.Excluded:
		return diagnose.Doubted(own, below)
	case own.State == diagnose.Holds:
		return own
	case below.State == diagnose.Unknown && own.State == diagnose.Excluded:
		return own
	case below.State == diagnose.Excluded && own.State == diagnose.Excluded && own.Text != below.Text:
		return diagnose.No("%s; %s", own.Text, below.Text)
	}
	return below
}

// Best returns the most certain of several outcomes, the first among equals.
func Best(all ...*diagnose.Outcome) *diagnose.Outcome {
	var o *diagnose.Outcome
	for _, x := range all {
		if x != nil && (o == nil || diagnose.Sureness(x) > diagnose.Sureness(o)) {
			o = x
		}
	}
	return o
}

// IsNumber10 reports whether text is a decimal number.
func IsNumber10(text string) bool { _, err := strconv.ParseUint(text, 10, 32); return err == nil }

// Domain returns a guest's name quoted for a shell.
func Domain(g *measure.Guest) string {
	if w := diagnose.Word(g.Name); w != "INTERFACE" {
		return w
	}
	return "GUEST"
}

// Setting returns a host setting by the end of its name, whose prefix differs between a command and a web service:
// "netNetqueueEnabled", "VMkernel.Boot.netNetqueueEnabled".
func Setting(f *measure.Facts, name string) (string, bool) {
	if f == nil {
		return "", false
	}
	for _, all := range []map[string]string{f.Sysctls, f.Changed} {
		for _, key := range slices.Sorted(maps.Keys(all)) {
			if key == name || strings.HasSuffix(key, "."+name) || strings.HasSuffix(key, "/"+name) {
				return all[key], true
			}
		}
	}
	return "", false
}

// IsOff reports whether a switch is off: "FALSE", "0", "false (default TRUE, configured FALSE)".
func IsOff(value string) bool {
	first, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(value)), " ")
	return first == "false" || first == "0" || first == "no" || first == "off"
}

// Uplinks returns the host's NICs that may carry the guest's traffic: the reported one, else all of its switch.
func Uplinks(e *diagnose.End) (all []string) {
	for _, b := range e.Placements {
		if b.NIC != nil && b.NIC.Uplink != nil && *b.NIC.Uplink != "" {
			return []string{*b.NIC.Uplink}
		}
	}
	for _, b := range e.Placements {
		if b.Switch == nil || b.Host == nil {
			continue
		}
		for _, u := range b.Switch.Uplinks {
			if (u.Host == "" || u.Host == b.Host.ID) && !slices.Contains(all, u.NIC) {
				all = append(all, u.NIC)
			}
		}
		return all
	}
	return nil
}

// Verbatim escapes a name for a format string.
func Verbatim(name string) string { return strings.ReplaceAll(name, "%", "%%") }

// Placement returns the host placement of the end as a guest, from the first inventory that knows it; false if it
// is no guest, or no hypervisor was queried.
func Placement(h *scene.Host) (measure.HostPlacement, bool) {
	if len(h.End.Placements) == 0 || h.End.Placements[0].Guest == nil {
		return measure.HostPlacement{}, false
	}
	return h.End.Placements[0], true
}
