package nic

import (
	"thru/internal/cause/diagnose"
	"thru/internal/cause/gate"
	"thru/internal/cause/loss"
	"thru/internal/cause/rule"
	"thru/internal/cause/scene"
	"thru/internal/stat"
)

// BadLink is the cause `bad-link`.
func BadLink() rule.Cause {
	return rule.Cause{
		Rule: diagnose.Rule{
			Cause: "bad-link", TCP: true, UDP: true, Title: "packets arrive damaged", Judge: judgeBadLink,
			Seen:        "counters of checksum, symbol or uncorrectable errors rose in this run",
			Distinction: "ten errors or more, about as many as retransmissions, and the rate is what TCP reaches with such a loss: a counter of the host covers all its traffic", Fix: "clean or replace cable and optics",
			Effect: "that of packet loss: 20 of 189 Mb/s at 0.1% and 20 ms", Source: "if_link.h, rx_crc_errors; ethtool -S", Brings: []string{"loss"},
		},
		Gates: []gate.Rule{
			{ID: "link-errors", Words: "crc fec errors", Title: "Errors on the wire",
				About:  "the largest counter of checksum, symbol and uncorrectable errors against the packets received; except on Linux and ESXi all receive errors",
				Warns:  "more than one in a million packets, or more than 100 if the number of packets is not known",
				Why:    "each damaged frame is lost: at 0.1% loss and 20 ms CUBIC carries 20 Mb/s",
				Source: "Mathis and others, 1997; measured", Fix: "clean or replace cable and optics", Checklist: []string{"C-24"}, Face: gateLinkErrors},
		},
	}
}

func judgeBadLink(f *diagnose.Flow) *diagnose.Outcome {
	var bad float64
	var name string
	var at *diagnose.End
	for _, e := range f.Ends() {
		n := e.NIC()
		if n == nil || e.HasFace() && len(e.Ports()) == 0 {
			continue
		}
		// Some drivers count packets without a free buffer in rx_errors.
		hits, counter := diagnose.Counted(n, wireErrors(), nil)
		if hits > bad {
			bad, name, at = hits, counter, e
		}
	}
	switch {
	case at == nil && f.Sender.NIC() == nil && f.Receiver.NIC() == nil:
		return f.Receiver.Lacks("counters of the interface")
	case at == nil && f.Sender.HasFace() && f.Receiver.HasFace() && len(f.Sender.Ports())+len(f.Receiver.Ports()) == 0:
		return nil // software has no wire
	case at == nil:
		return diagnose.No("no counter of damaged packets rose at either end")
	}
	packets := float64(at.NIC().RxPackets) + bad
	o := diagnose.Possible("packets arrive damaged at %s: %s of them", at.Name, loss.Rare(stat.Pct(bad, packets))).
		By(diagnose.Above(at.Proof(name, bad, "packets"), 0), at.Proof("damaged, of the packets received", stat.Pct(bad, packets), "pct"))
	switch {
	case f.LinkIsFull() || stat.Pct(bad, packets) < diagnose.AgainBar:
		o.MarkNotBinding()
	case !at.Sends():
		f.Blame(o, bad)
	}
	return o.At(at.OnFace()).
		AddFix(gateFix(f, "bad-link", at, "clean or replace cable and optics at this port and at its link partner"))
}

// wireErrors are parts of the names by which drivers count damaged packets.
func wireErrors() []string {
	return []string{"crc", "symbol_err", "uncorrectable", "fec_uncorr", "fcs", "rx_jabber", "rx_errors_phy"}
}

func gateLinkErrors(f *scene.Face) *gate.Finding {
	if !f.Wired() {
		return nil
	}
	bad, name := f.Counted(scene.WireErrors)
	packets := f.Received()
	switch {
	case f.Uncounted(scene.WireErrors) != "":
		return gate.NotChecked("error counters of "+f.Name, f.Uncounted(scene.WireErrors))
	case packets == 0 && bad > 100:
		return gate.Warn("%d packets arrived with errors at %s (%s) since its driver was loaded", bad, f.Name, name)
	case bad > 10 && packets > 0 && float64(bad) > 1e-6*float64(packets):
		return gate.Warn("%d of %d packets arrived with errors at %s (%s)", bad, packets, f.Name, name)
	case bad > 0:
		return gate.Pass("%d packets arrived with errors at %s since its driver was loaded (%s)", bad, f.Name, name)
	}
	return gate.Pass("no errors on the wire of %s", f.Name)
}
