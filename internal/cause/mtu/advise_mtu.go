package mtu

import (
	"fmt"

	"thru/internal/cause/advise"
	"thru/internal/knob"
	"thru/internal/measure"
)

// MtuProposals are for packets that are larger than what passes, and for the path
// that takes larger ones.
func MtuProposals() []advise.Rule {
	return []advise.Rule{
		{Cause: "mtu-black-hole", Propose: blackHoleProposal},
		{Cause: "jumbo-mismatch", Propose: jumboMismatchProposal},
		{Cause: "sender-cpu", Propose: jumbo},
		{Cause: "receiver-cpu", Propose: jumbo},
		{Cause: "single-flow", Propose: jumbo},
	}
}

// Sizes of packets in bytes.
const (
	usualMTU        = 1500
	jumboMTU        = 9000
	leastMTU        = 1280 // of IPv6 (RFC 8200): the kernel takes its addresses away below
	vlanTagProposal = 4    // which an interface may take beyond its MTU
)

// crossing says what an MTU change costs beside what the knob does.
const crossing = "every switch between must carry it; the path is searched before it is kept"

// fitsOfWay is the largest packet that passes in both directions; 0 where it was not
// searched. 1504 is 1500 with room for a tag, which the next interface may not have.
func fitsOfWay(w *advise.Way) int {
	least := 0
	for _, o := range []*measure.OneWay{w.There, w.Back} {
		if o != nil && o.MTU != nil && o.MTU.Bytes > 0 && (least == 0 || o.MTU.Bytes < least) {
			least = o.MTU.Bytes
		}
	}
	if (least-vlanTagProposal)%100 == 0 {
		return least - vlanTagProposal
	}
	return least
}

// mtuOfWay of the interface by which a host reaches the other; 0 not known.
func mtuOfWay(w *advise.Way, h *advise.Host) int { return int(h.State(knob.MTU, w.Face(h)).Number()) }

// setMTU changes it; ok is false where that changes nothing or cannot be.
func setMTU(w *advise.Way, h *advise.Host, bytes int) (d advise.Draft, ok bool) {
	face := w.Face(h)
	s := h.State(knob.MTU, face)
	if face == "" || bytes < leastMTU || int64(bytes) == s.Number() || s.Most() > 0 && int64(bytes) > s.Most() {
		return advise.Draft{}, false
	}
	return advise.Change(h, knob.MTU, face, fmt.Sprint(bytes), "MTU %d at %s", bytes, h.Name).ForWay(w), true
}

// blackHoleProposal lets TCP find the size by itself, or keeps to what passes.
func blackHoleProposal(r advise.Request) []advise.Draft {
	var list []advise.Draft
	if h := r.Way.From; h.Value(knob.MTUProbing, "") == "0" {
		list = append(list, advise.Change(h, knob.MTUProbing, "", "1", "%s finds the packet size that passes by itself", h.Name).ForWay(r.Way))
	}
	return append(list, smaller(r.Way)...)
}

// smaller is the MTU that passes. One end's is enough for TCP in both directions,
// since the other sends no larger segments than it takes; without a router
// between both ends have to agree.
func smaller(w *advise.Way) []advise.Draft {
	fits := fitsOfWay(w)
	if fits == 0 {
		return nil
	}
	own, ok := setMTU(w, w.From, fits)
	if !ok || mtuOfWay(w, w.From) < fits {
		return nil
	}
	other, too := setMTU(w, w.To, fits)
	if too && !w.Routed() && !w.Local() && mtuOfWay(w, w.To) > fits {
		own = own.And(other, "MTU %d at both ends", fits)
	}
	return []advise.Draft{own.Bring(w.Hope(), "RFC 2923; measured: 0 Mb/s with a black hole", "full segments pass: %d bytes do with DF, %d are sent now", fits, mtuOfWay(w, w.From))}
}

// jumboMismatchProposal raises the smaller end where that is all that is in the way,
// else lowers the larger one, or both where a port between takes less.
func jumboMismatchProposal(r advise.Request) []advise.Draft {
	w := r.Way
	a, b := mtuOfWay(w, w.From), mtuOfWay(w, w.To)
	if a == 0 || b == 0 || a == b {
		return smaller(w)
	}
	small, large := w.From, w.To
	if a > b {
		small, large = w.To, w.From
	}
	least, most := min(a, b), max(a, b)
	var list []advise.Draft
	if d, ok := setMTU(w, small, most); ok {
		d.Risk = crossing
		list = append(list, d.Bring(0, "C-20, C-21; measured", "packets of %d bytes pass both ways: %.0f%% of the packets of MTU %d for the same data", most, 100*usualMTU/float64(most), usualMTU))
	}
	if d, ok := setMTU(w, large, least); ok {
		list = append(list, d.Bring(0, "C-20, C-21", "what is larger than %d bytes is no longer sent: both ends agree", least))
	}
	return list
}

// jumboFromProposal is a rate from which on fewer, larger packets may help a full CPU, in bit/s.
const jumboFromProposal = 5e9

// jumbo is for CPUs that are full of packets on a fast link: larger ones at
// both ends, which alone at one would do nothing.
func jumbo(r advise.Request) []advise.Draft {
	w := r.Way
	a, b := w.Face(w.From), w.Face(w.To)
	fast := min(w.From.Speed(a), w.To.Speed(b)) >= 2*jumboFromProposal || w.Goodput() >= jumboFromProposal
	if w.Local() || w.Routed() || !fast || !w.From.IsDevice(a) || !w.To.IsDevice(b) || mtuOfWay(w, w.From) > usualMTU || mtuOfWay(w, w.To) > usualMTU {
		return nil
	}
	own, ok := setMTU(w, w.From, jumboMTU)
	other, too := setMTU(w, w.To, jumboMTU)
	if !ok || !too {
		return nil
	}
	d := own.And(other, "MTU %d at both ends (jumbo frames)", jumboMTU).
		Bring(0, "docs/causes.md, single-flow: 1.3 to 2 times", "a sixth of the packets for the same data: 1.3 to 2 times the rate of one stream")
	d.Risk, d.Once = crossing, true
	return []advise.Draft{d.AtLast()}
}
