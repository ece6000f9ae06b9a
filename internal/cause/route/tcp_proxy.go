package route

import (
	"thru/internal/cause/diagnose"
	"thru/internal/cause/gate"
	"thru/internal/cause/rule"
	"thru/internal/cause/scene"
	"thru/internal/measure"
	"thru/internal/unit"
)

// TCPProxy is the cause `tcp-proxy`.
func TCPProxy() rule.Cause {
	return rule.Cause{
		Rule: diagnose.Rule{
			Cause: "tcp-proxy", TCP: true, Title: "a proxy on the path terminates TCP", Judge: judgeTCPProxy, Packets: diagnose.PacketsProxy,
			Seen:        "the handshake takes less than half the round trip of data, and 3 ms less; in captures of both ends: sequence numbers and options differ; in one capture: the answer to the SYN comes far sooner than that to data, or with another TTL (possible)",
			Distinction: "the options of the SYN differ at the two ends", Fix: "bypass it", Effect: "the test measures the buffers and the CPU of the proxy",
			Source: "RFC 3135 (split connections)", Tests: []string{diagnose.Captured}, Brings: []string{"window-scaling-off", "sack-off", "timestamps-off", "mss-clamp"},
		},
		Gates: []gate.Rule{
			{ID: "tcp-proxy", Words: "proxy middlebox", Title: "TCP proxy", About: "the round trip of the handshake, compared with that of data",
				Warns:  "the handshake takes less than half of it, and 1 ms less: a nearer device answers for the other end",
				Why:    "the test then measures the proxy, with its buffers and its CPU",
				Source: "RFC 3135 (split connections)", Fix: "bypass it", Checklist: []string{"C-16"}, Path: gateTCPProxy},
		},
	}
}

func judgeTCPProxy(f *diagnose.Flow) *diagnose.Outcome {
	p := f.Path()
	switch {
	case f.OnOneMachine():
		return diagnose.No("both ends are on one host")
	case p == nil || p.Handshake == nil || p.Handshake.RTTNs == nil || *p.Handshake.RTTNs <= 0 || p.RTT == nil || p.RTT.Min <= 0:
		return diagnose.Missing("round trips of the handshake and of data", "the path was not probed, or a kernel does not report them")
	}
	hs, data := float64(*p.Handshake.RTTNs), quickest(f, float64(p.RTT.Min))
	if hs > data/2 || data-hs < diagnose.ProxyBar {
		return diagnose.No("the handshake took %s, data at least %s", unit.Duration(int64(hs)), unit.Duration(int64(data)))
	}
	o := diagnose.Possible("a nearer device answers for %s: the handshake took %s, data takes at least %s", p.To, unit.Duration(int64(hs)), unit.Duration(int64(data))).
		By(diagnose.UnderBar(measure.Proof{EndPoint: p.From, Counter: "round trip of the handshake", Value: hs, Unit: "ns"}, data/2)).
		AddFix(diagnose.Advise(nil, "find the accelerator, load balancer or firewall that terminates TCP, and let these ports bypass it"))
	changed := diagnose.Rewritten(p.Handshake.SYNSent, p.Handshake.SYNSeen) || diagnose.Rewritten(p.Handshake.SYNACKSent, p.Handshake.SYNACKSeen)
	kernel, ok := kernelRTT(f)
	switch {
	case changed:
		o.Confidence = measure.Certain
		o.By(measure.Proof{EndPoint: p.To, Counter: "SYN options that differ between the ends", Value: 1})
	case ok && kernel < data/2 && data-kernel > diagnose.ProxyBar:
		o.Confidence = measure.Likely
		o.By(diagnose.UnderBar(f.Sender.Proof("tcp_info.min_rtt_ns", kernel, "ns"), data/2))
	default:
		o.MarkNotBinding()
	}
	return o
}

// quickest returns the shortest round trip between the programs: that of the probe, or of the test's own
// connection if that was shorter. A guest with little CPU time answers some probes late, without any box in
// between.
func quickest(f *diagnose.Flow, probed float64) float64 {
	for _, e := range f.Ends() {
		if e.Seen != nil && e.Seen.RTTIdle != nil && e.Seen.RTTIdle.Min > 0 {
			probed = min(probed, float64(e.Seen.RTTIdle.Min))
		}
	}
	return probed
}

// kernelRTT returns the minimum round-trip time that the sender's kernel saw, in ns.
func kernelRTT(f *diagnose.Flow) (float64, bool) {
	for _, s := range f.Sender.Streams() {
		if s.TCP != nil && s.TCP.MinRTT != nil && *s.TCP.MinRTT > 0 {
			return float64(*s.TCP.MinRTT), true
		}
	}
	return 0, false
}

func gateTCPProxy(sc *scene.Scene) *gate.Finding {
	p := sc.Subject.Path
	if p.Handshake == nil || p.Handshake.RTTNs == nil || p.RTT == nil || p.RTT.Min <= 0 || *p.Handshake.RTTNs <= 0 {
		return nil
	}
	hs := *p.Handshake.RTTNs
	if hs < p.RTT.Min/2 && p.RTT.Min-hs > 1e6 {
		return gate.Warn("the handshake took %s, data takes at least %s", gate.Span(hs), gate.Span(p.RTT.Min))
	}
	return gate.Pass("the handshake took %s, data takes at least %s", gate.Span(hs), gate.Span(p.RTT.Min))
}
