package stat

import (
	"fmt"
	"slices"
	"strings"

	"thru/internal/measure"
	"thru/internal/unit"
)

// busyCorePct is how busy a core must be to be named as the limit of a sender.
const busyCorePct = 90

// warnDatagrams adds what a reader must know of a UDP cell.
func (s *summary) warnDatagrams() {
	d := s.cell.Datagrams
	if d == nil {
		return
	}
	s.warnRate(d)
	s.warnLoss(d)
	if d.Fragments > 1 {
		s.warn("each datagram is sent in %d fragments, and the loss of one loses the datagram: %s", d.Fragments, s.fits())
	}
	if d.Reordered > 0 {
		s.warn("%s of the datagrams arrived out of order, up to %s places late", shareText(d.Reordered, d.Received), unit.Count(d.ReorderMost))
	}
	if d.Duplicates > 0 {
		s.warn("%s arrived more than once: a device on the path duplicates them", unit.Counted(d.Duplicates, "datagram"))
	}
	var damaged int64
	for _, p := range s.runs {
		addTo(&damaged, protoSum(p.receiver, "Udp.InCsumErrors", "Udp6.InCsumErrors"))
		if n := countOf(p.receiver, inTime).Foreign; n > 0 {
			s.warn("run %d: %s of other senders arrived at the test's port and are not counted", p.run.Index+1, unit.Counted(n, "datagram"))
		}
	}
	if damaged > 0 {
		s.warn("%s arrived damaged at the receiver's host, which dropped them (Udp.InCsumErrors): a device on the path changes data", unit.Counted(damaged, "datagram"))
	}
}

// fits says which payload travels in one packet.
func (s *summary) fits() string {
	l := Link{MTU: s.pathMTU(), IPv6: s.isIPv6()}
	return fmt.Sprintf("-l %d fits the MTU of %d", l.MTU-l.ipHeader()-udpHeader, l.MTU)
}

func shareText(part, all int64) string {
	return unit.Percent(100 * valueOr(Known(ratio(float64(part), float64(all))), 100))
}

// warnRate warns if the sender did not reach the requested rate.
func (s *summary) warnRate(d *measure.DatagramFigures) {
	bound := s.cell.Spec.MaxRate
	if d.OfferedBps == nil || d.AskedBps == 0 || *d.OfferedBps >= float64(d.AskedBps)*leastMetPct/100 || bound > 0 && bound < d.AskedBps {
		return
	}
	why := "none of its CPUs was full: check its interface and its socket buffer (-w)"
	switch cpu := s.cell.SenderCPU; {
	case cpu == nil:
		why = "its CPU was not measured"
	case cpu.MaxCorePct > busyCorePct:
		why = fmt.Sprintf("its CPU %d was %s busy; more streams (-P) use more CPUs", cpu.MaxCore, unit.Percent(cpu.MaxCorePct))
	}
	s.warn("the sender reached only %s of the requested %s: %s", unit.Rate(*d.OfferedBps), unit.Rate(float64(d.AskedBps)), why)
}

// warnLoss warns how much was lost and where. A search loses on purpose.
func (s *summary) warnLoss(d *measure.DatagramFigures) {
	if d.Lost == 0 || s.cell.Spec.Search {
		return
	}
	lost := fmt.Sprintf("%s of the datagrams were lost", unit.Percent(d.LossPct))
	if len(s.cell.LossPlaces) == 0 {
		s.warn("%s; the place is not known", lost)
		return
	}
	atReceiver, atPath := s.shareAt(atReceiver), s.shareAt(isRest)
	if s.locatedDatagrams() != d.Lost {
		lost += fmt.Sprintf("; of the %s lost in the measured time", unit.Count(s.locatedDatagrams()))
	}
	if atPath == 0 && !s.estimated() {
		s.warn("%s, %s: not the path", lost, s.whereLost())
	} else {
		s.warn("%s, %s", lost, s.whereLost())
	}
	switch {
	case atReceiver >= 0.5:
		s.warn("the sender is faster than the receiver: this rate does not show what the path carries")
	case s.cell.Spec.Rate == 0 && atPath >= 0.5:
		s.warn("the sender sent without a rate limit, faster than the path carries: set a rate (-b), or find it with --search")
	}
}

// atReceiver reports whether a place is in the receiving host.
func atReceiver(place string) bool { return strings.HasPrefix(place, receiverSide) }

// estimated reports whether a place is an estimate, which would hide a small share of the path.
func (s *summary) estimated() bool {
	return slices.ContainsFunc(s.cell.LossPlaces, func(p measure.LossPlace) bool { return p.Estimate })
}

// locatedDatagrams returns how many datagrams are attributed to a place.
func (s *summary) locatedDatagrams() int64 {
	var n int64
	for _, p := range s.cell.LossPlaces {
		addTo(&n, p.Packets)
	}
	return n
}

// shareAt returns which share of the loss happened at some places, between 0 and 1.
func (s *summary) shareAt(fits func(string) bool) float64 {
	var part int64
	for _, p := range s.cell.LossPlaces {
		if fits(p.Place) {
			addTo(&part, p.Packets)
		}
	}
	return measure.Value(Known(ratio(float64(part), float64(s.locatedDatagrams()))))
}

// whereLost words the places: "all of them at the receiver's socket buffer", or the share of each place.
func (s *summary) whereLost() string {
	places := s.cell.LossPlaces
	if len(places) == 1 {
		return "all of them " + PlaceText(places[0].Place)
	}
	var words []string
	for _, p := range places {
		words = append(words, unit.Percent(100*s.shareAt(func(place string) bool { return place == p.Place }))+" of them "+PlaceText(p.Place))
	}
	return strings.Join(words, ", ")
}

// PlaceText words a place of loss: "at the receiver's socket buffer".
func PlaceText(place string) string {
	words := map[string]string{
		measure.LossSender: "at the sender's socket buffer", measure.LossQdisc: "in the sender's queue (qdisc)",
		measure.LossSendNIC: "at the sender's interface", measure.LossPath: "on the path",
		measure.LossRing: "in the ring of the receiver's interface", measure.LossRecvNIC: "at the receiver's interface",
		measure.LossBacklog: "in the receiver's backlog", measure.LossFragment: "in the receiver's reassembly of fragments",
		measure.LossSocket:       "at the receiver's socket buffer",
		measure.LossSenderOrPath: "at the sender or on the path", measure.LossPathOrReceiver: "on the path or at the receiver",
	}
	if w, ok := words[place]; ok {
		return w
	}
	return "at " + place
}

// warnRequests adds what a reader must know of requests and responses.
func (s *summary) warnRequests() {
	f, spec := s.cell.Transactions, s.cell.Spec
	if asked := askedRate(s.cell); asked > 0 && f.Value < asked*leastMetPct/100 {
		s.warn("only %s of the requested %s were answered: their latency counts from the planned send time, and so includes the wait", RequestRate(spec.Traffic, f.Value), RequestRate(spec.Traffic, asked))
	}
	if l := s.cell.Latency; l != nil && l.Errors > 0 {
		s.warn("%s had no response in time: the latency does not include them", unit.Counted(l.Errors, "request"))
	}
}

// warnWrongBytes warns that data arrived corrupted, which no other figure can make up for.
func (s *summary) warnWrongBytes() {
	c := s.cell.Checked
	if c == nil || c.WrongBytes == 0 {
		return
	}
	first := ""
	if c.FirstWrong != nil {
		first = ", first at byte " + unit.Count(*c.FirstWrong)
		if s.isUDP() {
			first = ", first in datagram " + unit.Count(*c.FirstWrong)
		}
	}
	s.warn("the data arrived damaged: %s of %s bytes differ from what was sent%s; the checksums of NIC, offloads and hypervisor did not detect it",
		unit.Count(c.WrongBytes), unit.Count(c.Bytes), first)
}
