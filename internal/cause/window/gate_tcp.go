package window

import (
	"slices"

	"thru/internal/cause/gate"
	"thru/internal/measure"
	"thru/internal/stat"
)

// TcpGates judge the options of TCP: as each host is set, and as they arrive.
func TcpGates() []gate.Rule {
	return []gate.Rule{
		{ID: "window-scaling", Title: "Window scaling of the host", About: "whether the host offers TCP windows above 64 KiB",
			Fails:  "it is off and the path needs a window above 64 KiB",
			Warns:  "it is off",
			Why:    "without it a connection carries at most 65535 bytes a round trip: 26 Mb/s at 20 ms",
			Source: "RFC 7323", Remedy: "switch it on", Cause: "window-scaling-off", Checklist: []string{"C-16", "C-32"}, Host: scalingOfHost},
		{ID: "window-scaling-path", Title: "Window scaling on the way", About: "the option as it was sent and as it arrived",
			Fails:  "the option is taken out or changed on the way, and the path needs a window above 64 KiB",
			Warns:  "the same where it needs less, or what it needs is not known",
			Why:    "without it a connection carries at most 65535 bytes a round trip: 26 Mb/s at 20 ms",
			Source: "RFC 7323, section 2.2", Remedy: "the box between must leave TCP options alone", Cause: "window-scaling-off", Checklist: []string{"C-16"}, Way: scalingOnPath},
		{ID: "sack", Title: "SACK of the host", About: "whether the host offers selective acknowledgement",
			Warns:  "it is off",
			Why:    "without it each loss in a window costs a round trip of its own, or a timeout of 200 ms",
			Source: "RFC 2018", Remedy: "switch it on", Cause: "sack-off", Checklist: []string{"C-16"}, Host: sackOfHost},
		{ID: "sack-path", Title: "SACK on the way", About: "the option as it was sent and as it arrived", Warns: "it is taken out on the way",
			Why:    "without it each loss in a window costs a round trip of its own, or a timeout of 200 ms",
			Source: "RFC 2018", Remedy: "the box between must leave TCP options alone", Cause: "sack-off", Checklist: []string{"C-16"}, Way: sackOnPath},
		{ID: "timestamps", Title: "Timestamps of the host", About: "whether the host offers TCP timestamps (Windows does not by itself)",
			Warns:  "they are off on Linux or FreeBSD",
			Why:    "without them the RTT is sampled once a window, and above 4 GiB a window no old segment is told from a new one",
			Source: "RFC 7323, sections 4 and 5", Remedy: "switch them on", Cause: "timestamps-off", Checklist: []string{"C-16"}, Host: timestampsOfHost},
		{ID: "timestamps-path", Title: "Timestamps on the way", About: "the option as it was sent and as it arrived", Warns: "it is taken out on the way",
			Why:    "without them the RTT is sampled once a window: slower to notice queues and losses",
			Source: "RFC 7323", Remedy: "the box between must leave TCP options alone", Cause: "timestamps-off", Checklist: []string{"C-16"}, Way: timestampsOnPath},
		{ID: "mss", Title: "MSS on the way", About: "the MSS as it was sent and as it arrived, against the largest packet that passes",
			Warns:  "it arrives smaller than sent, and below what the path takes by more than 20 bytes",
			Why:    "smaller segments mean more packets and more headers for the same data",
			Source: "RFC 9293, section 3.7.1; RFC 6691", Remedy: "raise the clamp of the router or VPN between", Cause: "mss-clamp", Checklist: []string{"C-16", "C-21"}, Way: mssOnPath},
	}
}

func scalingOfHost(h *gate.Host) *gate.Finding {
	if l := h.Limits(); (h.System == "solaris" || h.System == "illumos") && l.Window > gate.PlainWindow {
		return gate.Pass("on: window scaling, by a buffer of %s", gate.Size(l.Window))
	}
	return switched(h, gate.WindowScaling(), func() *gate.Finding {
		need, _ := h.BDP()
		return gate.FailIf(need > gate.PlainWindow, "window scaling is off").Because("%s", capped(h.Scene)).Do(gate.SwitchOn(h, gate.WindowScaling()))
	})
}

func sackOfHost(h *gate.Host) *gate.Finding {
	return switched(h, gate.SackSetting(), func() *gate.Finding { return gate.Warn("SACK is off").Do(gate.SwitchOn(h, gate.SackSetting())) })
}

func timestampsOfHost(h *gate.Host) *gate.Finding {
	return switched(h, gate.TimestampsSetting(), func() *gate.Finding {
		return gate.Warn("TCP timestamps are off").Do(gate.SwitchOn(h, gate.TimestampsSetting()))
	})
}

// switched judges a switch of the host. A system without such a switch has
// nothing that could be wrong.
func switched(h *gate.Host, s gate.Setting, off func() *gate.Finding) *gate.Finding {
	if h.Known && h.System != "" && len(s.Names[h.System]) == 0 {
		return nil
	}
	on, known := h.State(s)
	switch {
	case !known:
		return h.Missing(s.What, h.Key(s))
	case !on:
		return off()
	}
	return gate.Pass("on: %s", s.What)
}

// capped words what 64 KiB a round trip come to.
func capped(sc *gate.Scene) string {
	if sc.RTT() == 0 {
		return "a connection carries at most 65535 bytes a round trip: 26 Mb/s at 20 ms"
	}
	return "a connection carries at most " + gate.Rate(stat.WindowRate(gate.PlainWindow, sc.RTT())) + " at the RTT of " + gate.Span(sc.RTT())
}

// option judges one option of a segment as it was sent and as it arrived. An
// option that was not sent cannot be lost: the sending host's gate tells of it.
func option(w *gate.Way, what string, has func(*measure.SYN) *bool, gone func() *gate.Finding) *gate.Finding {
	if w.Sent == nil || w.Seen == nil || has(w.Sent) == nil || has(w.Seen) == nil {
		return missingOption(w, what)
	}
	switch {
	case !*has(w.Sent):
		return gate.Pass("the option %s was not offered by %s", what, w.From)
	case !*has(w.Seen):
		return gone()
	}
	return gate.Pass("the option %s of %s arrives at %s", what, w.From, w.To)
}

// missingOption names what could not be seen of a segment.
func missingOption(w *gate.Way, what string) *gate.Finding {
	parts := []string{"handshake.syn_sent", "handshake.syn_seen", "handshake"}
	if w.Back {
		parts = []string{"handshake.synack_sent", "handshake.synack_seen", "handshake"}
	}
	for _, m := range w.Subject.Path.Missing {
		if slices.Contains(parts, m.Fact) { // what is below them is of one option alone
			return gate.NotChecked(what+" of "+w.From+" at both ends", m.Why)
		}
	}
	return gate.NotChecked(what+" of "+w.From+" at both ends", "this end's system does not tell what it sent")
}

// leaveAlone is for the box between.
func leaveAlone() gate.Remedy {
	return gate.Advise("find the firewall, VPN or accelerator between that rewrites TCP, and have it leave the options alone")
}

func scalingOnPath(w *gate.Way) *gate.Finding {
	need, _ := w.BDP()
	f := option(w, "window scaling", func(s *measure.SYN) *bool { return s.HasScale }, func() *gate.Finding {
		return gate.FailIf(need > gate.PlainWindow, "window scaling of %s is taken out before %s", w.From, w.To).Because("%s", capped(w.Scene)).Do(leaveAlone())
	})
	if f.Status == measure.GatePass && w.Sent.WindowScale != nil && w.Seen.WindowScale != nil && *w.Sent.WindowScale != *w.Seen.WindowScale {
		return gate.FailIf(need > gate.PlainWindow, "window scale %d of %s arrives as %d", *w.Sent.WindowScale, w.From, *w.Seen.WindowScale).
			Because("the ends disagree on every window that they tell each other").Do(leaveAlone())
	}
	return f
}

func sackOnPath(w *gate.Way) *gate.Finding {
	return option(w, "SACK", func(s *measure.SYN) *bool { return s.SACK }, func() *gate.Finding {
		return gate.Warn("SACK of %s is taken out before %s", w.From, w.To).Do(leaveAlone())
	})
}

func timestampsOnPath(w *gate.Way) *gate.Finding {
	return option(w, "timestamps", func(s *measure.SYN) *bool { return s.Timestamps }, func() *gate.Finding {
		return gate.Warn("TCP timestamps of %s are taken out before %s", w.From, w.To).Do(leaveAlone())
	})
}

// mssOnPath compares with the packets of the other direction: an MSS is what
// its sender wants to receive.
func mssOnPath(w *gate.Way) *gate.Finding {
	if w.Sent == nil || w.Seen == nil || w.Sent.MSS == nil || w.Seen.MSS == nil {
		return missingOption(w, "MSS")
	}
	sent, seen := *w.Sent.MSS, *w.Seen.MSS
	fits := sent
	if m := w.Other().MTU; m != nil && m.Bytes > w.Headers() {
		fits = min(sent, m.Bytes-w.Headers())
	}
	if seen < sent && seen < fits-20 {
		return gate.Warn("MSS %d of %s arrives at %s as %d; the path takes %d", sent, w.From, w.To, seen, fits).
			Because("%.3g%% more packets for the same data", 100*(float64(fits)/float64(max(seen, 1))-1)).
			Do(gate.Advise(gate.Command("find the clamp between (nft: tcp option maxseg size set) and raise it to %d", fits)))
	}
	if seen < sent {
		return gate.Pass("MSS %d of %s arrives as %d, which fits the path", sent, w.From, seen)
	}
	return gate.Pass("MSS %d of %s arrives at %s", seen, w.From, w.To)
}
