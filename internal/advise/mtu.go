package advise

import (
	"fmt"

	"thru/internal/knob"
	"thru/internal/measure"
)

// mtuRules are for packets that are larger than what passes, and for the path
// that takes larger ones.
func mtuRules() []rule {
	return []rule{
		{"mtu-black-hole", blackHole},
		{"jumbo-mismatch", jumboMismatch},
		{"sender-cpu", jumbo},
		{"receiver-cpu", jumbo},
		{"single-flow", jumbo},
	}
}

// Sizes of packets in bytes.
const (
	usualMTU = 1500
	jumboMTU = 9000
	leastMTU = 1280 // of IPv6 (RFC 8200): the kernel takes its addresses away below
	vlanTag  = 4    // which an interface may take beyond its MTU
)

// crossing says what an MTU change costs beside what the knob does.
const crossing = "every switch between must carry it; the path is searched before it is kept"

// fits is the largest packet that passes in both directions; 0 where it was not
// searched. 1504 is 1500 with room for a tag, which the next interface may not have.
func (w *way) fits() int {
	least := 0
	for _, o := range []*measure.OneWay{w.there, w.back} {
		if o != nil && o.MTU != nil && o.MTU.Bytes > 0 && (least == 0 || o.MTU.Bytes < least) {
			least = o.MTU.Bytes
		}
	}
	if (least-vlanTag)%100 == 0 {
		return least - vlanTag
	}
	return least
}

// mtu of the interface by which a host reaches the other; 0 not known.
func (w *way) mtu(h *host) int { return int(h.state(knob.MTU, w.face(h)).number()) }

// setMTU changes it; ok is false where that changes nothing or cannot be.
func (w *way) setMTU(h *host, bytes int) (d draft, ok bool) {
	face := w.face(h)
	s := h.state(knob.MTU, face)
	if face == "" || bytes < leastMTU || int64(bytes) == s.number() || s.most() > 0 && int64(bytes) > s.most() {
		return draft{}, false
	}
	return change(h, knob.MTU, face, fmt.Sprint(bytes), "MTU %d at %s", bytes, h.name).forWay(w), true
}

// blackHole lets TCP find the size by itself, or keeps to what passes.
func blackHole(r request) []draft {
	var list []draft
	if h := r.way.from; h.value(knob.MTUProbing, "") == "0" {
		list = append(list, change(h, knob.MTUProbing, "", "1", "%s finds the packet size that passes by itself", h.name).forWay(r.way))
	}
	return append(list, r.way.smaller()...)
}

// smaller is the MTU that passes. One end's is enough for TCP in both directions,
// since the other sends no larger segments than it takes; without a router
// between both ends have to agree.
func (w *way) smaller() []draft {
	fits := w.fits()
	if fits == 0 {
		return nil
	}
	own, ok := w.setMTU(w.from, fits)
	if !ok || w.mtu(w.from) < fits {
		return nil
	}
	other, too := w.setMTU(w.to, fits)
	if too && !w.routed() && !w.local() && w.mtu(w.to) > fits {
		own = own.and(other, "MTU %d at both ends", fits)
	}
	return []draft{own.bring(w.hope(), "RFC 2923; measured: 0 Mb/s with a black hole", "full segments pass: %d bytes do with DF, %d are sent now", fits, w.mtu(w.from))}
}

// jumboMismatch raises the smaller end where that is all that is in the way,
// else lowers the larger one, or both where a port between takes less.
func jumboMismatch(r request) []draft {
	w := r.way
	a, b := w.mtu(w.from), w.mtu(w.to)
	if a == 0 || b == 0 || a == b {
		return w.smaller()
	}
	small, large := w.from, w.to
	if a > b {
		small, large = w.to, w.from
	}
	least, most := min(a, b), max(a, b)
	var list []draft
	if d, ok := w.setMTU(small, most); ok {
		d.risk = crossing
		list = append(list, d.bring(0, "C-20, C-21; measured", "packets of %d bytes pass both ways: %.0f%% of the packets of MTU %d for the same data", most, 100*usualMTU/float64(most), usualMTU))
	}
	if d, ok := w.setMTU(large, least); ok {
		list = append(list, d.bring(0, "C-20, C-21", "what is larger than %d bytes is no longer sent: both ends agree", least))
	}
	return list
}

// jumboFrom is a rate from which on fewer, larger packets may help a full CPU, in bit/s.
const jumboFrom = 5e9

// jumbo is for CPUs that are full of packets on a fast link: larger ones at
// both ends, which alone at one would do nothing.
func jumbo(r request) []draft {
	w := r.way
	a, b := w.face(w.from), w.face(w.to)
	fast := min(w.from.speed(a), w.to.speed(b)) >= 2*jumboFrom || w.goodput() >= jumboFrom
	if w.local() || w.routed() || !fast || !w.from.isDevice(a) || !w.to.isDevice(b) || w.mtu(w.from) > usualMTU || w.mtu(w.to) > usualMTU {
		return nil
	}
	own, ok := w.setMTU(w.from, jumboMTU)
	other, too := w.setMTU(w.to, jumboMTU)
	if !ok || !too {
		return nil
	}
	d := own.and(other, "MTU %d at both ends (jumbo frames)", jumboMTU).
		bring(0, "docs/causes.md, single-flow: 1.3 to 2 times", "a sixth of the packets for the same data: 1.3 to 2 times the rate of one stream")
	d.risk, d.once = crossing, true
	return []draft{d.atLast()}
}
