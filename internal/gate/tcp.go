package gate

import (
	"slices"

	"thru/internal/measure"
	"thru/internal/stat"
)

// tcpRules judge the options of TCP: as each host is set, and as they arrive.
func tcpRules() []Rule {
	return []Rule{
		{ID: "window-scaling", Title: "Window scaling of the host", About: "whether the host offers TCP windows above 64 KiB",
			Fails:  "it is off and the path needs a window above 64 KiB",
			Warns:  "it is off",
			Why:    "without it a connection carries at most 65535 bytes a round trip: 26 Mb/s at 20 ms",
			Source: "RFC 7323", Remedy: "switch it on", Cause: "window-scaling-off", Checklist: []string{"C-16", "C-32"}, host: scalingOfHost},
		{ID: "window-scaling-path", Title: "Window scaling on the way", About: "the option as it was sent and as it arrived",
			Fails:  "the option is taken out or changed on the way, and the path needs a window above 64 KiB",
			Warns:  "the same where it needs less, or what it needs is not known",
			Why:    "without it a connection carries at most 65535 bytes a round trip: 26 Mb/s at 20 ms",
			Source: "RFC 7323, section 2.2", Remedy: "the box between must leave TCP options alone", Cause: "window-scaling-off", Checklist: []string{"C-16"}, way: scalingOnPath},
		{ID: "sack", Title: "SACK of the host", About: "whether the host offers selective acknowledgement",
			Warns:  "it is off",
			Why:    "without it each loss in a window costs a round trip of its own, or a timeout of 200 ms",
			Source: "RFC 2018", Remedy: "switch it on", Cause: "sack-off", Checklist: []string{"C-16"}, host: sackOfHost},
		{ID: "sack-path", Title: "SACK on the way", About: "the option as it was sent and as it arrived", Warns: "it is taken out on the way",
			Why:    "without it each loss in a window costs a round trip of its own, or a timeout of 200 ms",
			Source: "RFC 2018", Remedy: "the box between must leave TCP options alone", Cause: "sack-off", Checklist: []string{"C-16"}, way: sackOnPath},
		{ID: "timestamps", Title: "Timestamps of the host", About: "whether the host offers TCP timestamps (Windows does not by itself)",
			Warns:  "they are off on Linux or FreeBSD",
			Why:    "without them the RTT is sampled once a window, and above 4 GiB a window no old segment is told from a new one",
			Source: "RFC 7323, sections 4 and 5", Remedy: "switch them on", Cause: "timestamps-off", Checklist: []string{"C-16"}, host: timestampsOfHost},
		{ID: "timestamps-path", Title: "Timestamps on the way", About: "the option as it was sent and as it arrived", Warns: "it is taken out on the way",
			Why:    "without them the RTT is sampled once a window: slower to notice queues and losses",
			Source: "RFC 7323", Remedy: "the box between must leave TCP options alone", Cause: "timestamps-off", Checklist: []string{"C-16"}, way: timestampsOnPath},
		{ID: "mss", Title: "MSS on the way", About: "the MSS as it was sent and as it arrived, against the largest packet that passes",
			Warns:  "it arrives smaller than sent, and below what the path takes by more than 20 bytes",
			Why:    "smaller segments mean more packets and more headers for the same data",
			Source: "RFC 9293, section 3.7.1; RFC 6691", Remedy: "raise the clamp of the router or VPN between", Cause: "mss-clamp", Checklist: []string{"C-16", "C-21"}, way: mssOnPath},
	}
}

func scalingOfHost(h *host) *finding {
	if l := h.limits(); (h.os == "solaris" || h.os == "illumos") && l.window > plainWindow {
		return pass("on: window scaling, by a buffer of %s", size(l.window))
	}
	return h.switched(windowScaling(), func() *finding {
		need, _ := h.bdp()
		return failIf(need > plainWindow, "window scaling is off").because("%s", h.capped()).do(switchOn(h, windowScaling()))
	})
}

func sackOfHost(h *host) *finding {
	return h.switched(sackSetting(), func() *finding { return warn("SACK is off").do(switchOn(h, sackSetting())) })
}

func timestampsOfHost(h *host) *finding {
	return h.switched(timestampsSetting(), func() *finding {
		return warn("TCP timestamps are off").do(switchOn(h, timestampsSetting()))
	})
}

// switched judges a switch of the host. A system without such a switch has
// nothing that could be wrong.
func (h *host) switched(s setting, off func() *finding) *finding {
	if h.known && h.os != "" && len(s.names[h.os]) == 0 {
		return nil
	}
	on, known := h.state(s)
	switch {
	case !known:
		return h.missing(s.what, h.key(s))
	case !on:
		return off()
	}
	return pass("on: %s", s.what)
}

// capped words what 64 KiB a round trip come to.
func (sc *scene) capped() string {
	if sc.rtt() == 0 {
		return "a connection carries at most 65535 bytes a round trip: 26 Mb/s at 20 ms"
	}
	return "a connection carries at most " + rate(stat.WindowRate(plainWindow, sc.rtt())) + " at the RTT of " + span(sc.rtt())
}

// option judges one option of a segment as it was sent and as it arrived. An
// option that was not sent cannot be lost: the sending host's gate tells of it.
func (w *way) option(what string, has func(*measure.SYN) *bool, gone func() *finding) *finding {
	if w.sent == nil || w.seen == nil || has(w.sent) == nil || has(w.seen) == nil {
		return w.missingOption(what)
	}
	switch {
	case !*has(w.sent):
		return pass("the option %s was not offered by %s", what, w.from)
	case !*has(w.seen):
		return gone()
	}
	return pass("the option %s of %s arrives at %s", what, w.from, w.to)
}

// missingOption names what could not be seen of a segment.
func (w *way) missingOption(what string) *finding {
	parts := []string{"handshake.syn_sent", "handshake.syn_seen", "handshake"}
	if w.back {
		parts = []string{"handshake.synack_sent", "handshake.synack_seen", "handshake"}
	}
	for _, m := range w.subject.Path.Missing {
		if slices.Contains(parts, m.Fact) { // what is below them is of one option alone
			return notChecked(what+" of "+w.from+" at both ends", m.Why)
		}
	}
	return notChecked(what+" of "+w.from+" at both ends", "this end's system does not tell what it sent")
}

// leaveAlone is for the box between.
func leaveAlone() remedy {
	return advise("find the firewall, VPN or accelerator between that rewrites TCP, and have it leave the options alone")
}

func scalingOnPath(w *way) *finding {
	need, _ := w.bdp()
	f := w.option("window scaling", func(s *measure.SYN) *bool { return s.HasScale }, func() *finding {
		return failIf(need > plainWindow, "window scaling of %s is taken out before %s", w.from, w.to).because("%s", w.capped()).do(leaveAlone())
	})
	if f.status == measure.GatePass && w.sent.WindowScale != nil && w.seen.WindowScale != nil && *w.sent.WindowScale != *w.seen.WindowScale {
		return failIf(need > plainWindow, "window scale %d of %s arrives as %d", *w.sent.WindowScale, w.from, *w.seen.WindowScale).
			because("the ends disagree on every window that they tell each other").do(leaveAlone())
	}
	return f
}

func sackOnPath(w *way) *finding {
	return w.option("SACK", func(s *measure.SYN) *bool { return s.SACK }, func() *finding {
		return warn("SACK of %s is taken out before %s", w.from, w.to).do(leaveAlone())
	})
}

func timestampsOnPath(w *way) *finding {
	return w.option("timestamps", func(s *measure.SYN) *bool { return s.Timestamps }, func() *finding {
		return warn("TCP timestamps of %s are taken out before %s", w.from, w.to).do(leaveAlone())
	})
}

// mssOnPath compares with the packets of the other direction: an MSS is what
// its sender wants to receive.
func mssOnPath(w *way) *finding {
	if w.sent == nil || w.seen == nil || w.sent.MSS == nil || w.seen.MSS == nil {
		return w.missingOption("MSS")
	}
	sent, seen := *w.sent.MSS, *w.seen.MSS
	fits := sent
	if m := w.other().MTU; m != nil && m.Bytes > w.headers() {
		fits = min(sent, m.Bytes-w.headers())
	}
	if seen < sent && seen < fits-20 {
		return warn("MSS %d of %s arrives at %s as %d; the path takes %d", sent, w.from, w.to, seen, fits).
			because("%.3g%% more packets for the same data", 100*(float64(fits)/float64(max(seen, 1))-1)).
			do(advise(command("find the clamp between (nft: tcp option maxseg size set) and raise it to %d", fits)))
	}
	if seen < sent {
		return pass("MSS %d of %s arrives as %d, which fits the path", sent, w.from, seen)
	}
	return pass("MSS %d of %s arrives at %s", seen, w.from, w.to)
}
