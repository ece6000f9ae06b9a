// Package hypervisor holds the causes of what lies below a virtual machine: its hypervisor's
// switch, queues and limits.
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

// HypervisorHost is the host that the end's guest is on, or that the end is.
func HypervisorHost(e *diagnose.End) *measure.GuestHost {
	for _, b := range e.Placements {
		if b.Host != nil {
			return b.Host
		}
	}
	return nil
}

// HostName is that host in the words of a sentence.
func HostName(e *diagnose.End) string {
	if h := HypervisorHost(e); h != nil && h.Name != "" {
		return diagnose.Line(h.Name)
	}
	return "its host"
}

// GuestName is the virtual machine in the words of a sentence.
func GuestName(e *diagnose.End) string {
	if g := e.Guest(); g != nil && g.Name != "" {
		return diagnose.Line(g.Name)
	}
	return "the " + e.Place + "'s guest"
}

// AtHost is the place of a cause at what lies below the end.
func AtHost(e *diagnose.End, name string) measure.Where {
	w := e.Where()
	w.Below = name
	return w
}

// NoPlacement is the outcome of a rule that asks for what lies below an end of
// which nobody knows where it is; nil where nobody was asked.
func NoPlacement(e *diagnose.End, fact string) *diagnose.Outcome {
	switch {
	case e.Guest() != nil:
		return nil
	case len(e.Placements) > 0:
		return nil // a host itself
	case e.NoPlace != "":
		return diagnose.Missing(fact+" of the "+e.Place, e.NoPlace)
	case e.HidesSteal():
		return diagnose.Missing(fact+" of the "+e.Place, "it is a guest: --hypervisor URL asks its host")
	}
	return nil
}

// HostCounter is a counter of the host below the end.
func HostCounter(e *diagnose.End, counter string) diagnose.Gauges {
	return e.Read(counter, func(b *measure.HostPlacement) string {
		if b.Host == nil {
			return ""
		}
		return b.Host.ID
	})
}

// GaugeEvidence words a gauge as evidence: who it is about, what it is, and what its
// source calls it.
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

// plainName is a counter in two words or more, which a source's own name for it
// is not always: "cpu.ready.summation", "% Used".
func plainName(counter string) string {
	return map[string]string{
		measure.CounterReady: "ready, not run", measure.CounterCoStop: "co-stop time", measure.CounterLimited: "held back by a limit", measure.CounterSwapWait: "waiting for swap",
		measure.CounterUsage: "CPU load", measure.CounterBalloon: "ballooned memory", measure.CounterSwapped: "swapped memory", measure.CounterSwapIn: "swapped in a second",
		measure.CounterMemWait: "waiting for memory", measure.CounterRxBps: "received rate", measure.CounterTxBps: "sent rate",
		measure.CounterRxDropped: "dropped on receiving", measure.CounterTxDropped: "dropped on sending", measure.CounterRxDropPct: "dropped on receiving", measure.CounterTxDropPct: "dropped on sending",
		measure.CounterRingFull: "ring found full", measure.CounterNoBuffer: "no buffer in the ring", measure.CounterQueueRx: "received packets", measure.CounterThread: "CPU time",
	}[counter]
}

// Seconded joins what an end saw itself with what its hypervisor says, which
// knows more of it.
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

// Best is the surest of several outcomes: the first where they are alike.
func Best(all ...*diagnose.Outcome) *diagnose.Outcome {
	var o *diagnose.Outcome
	for _, x := range all {
		if x != nil && (o == nil || diagnose.Sureness(x) > diagnose.Sureness(o)) {
			o = x
		}
	}
	return o
}

// IsNumber10 tells of text that is a decimal number.
func IsNumber10(text string) bool { _, err := strconv.ParseUint(text, 10, 32); return err == nil }

// Domain is a guest's name as a shell takes it.
func Domain(g *measure.Guest) string {
	if w := diagnose.Word(g.Name); w != "INTERFACE" {
		return w
	}
	return "GUEST"
}

// Setting is a setting of a host by the end of its name, as a command and a web
// service write it differently: "netNetqueueEnabled", "VMkernel.Boot.netNetqueueEnabled".
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

// IsOff reads a switch: "FALSE", "0", "false (default TRUE, configured FALSE)".
func IsOff(value string) bool {
	first, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(value)), " ")
	return first == "false" || first == "0" || first == "no" || first == "off"
}

// Uplinks are the NICs of the host that may carry the guest's traffic: the one
// that is told, else all of its switch.
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

// Verbatim is a name as a part of a format.
func Verbatim(name string) string { return strings.ReplaceAll(name, "%", "%%") }

// Placement is what the first inventory that knows the end says of it as a guest;
// false where it is none, or nobody was asked.
func Placement(h *scene.Host) (measure.HostPlacement, bool) {
	if len(h.End.Placements) == 0 || h.End.Placements[0].Guest == nil {
		return measure.HostPlacement{}, false
	}
	return h.End.Placements[0], true
}
