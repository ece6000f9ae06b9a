package mtu

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"thru/internal/cause/advise"
	"thru/internal/cause/diagnose"
	"thru/internal/cause/gate"
	"thru/internal/cause/hypervisor"
	"thru/internal/cause/rule"
	"thru/internal/cause/scene"
	"thru/internal/measure"
)

// JumboMismatch is the cause `jumbo-mismatch`.
func JumboMismatch() rule.Cause {
	return rule.Cause{
		Rule: diagnose.Rule{
			Cause: "jumbo-mismatch", TCP: true, UDP: true, Title: "jumbo frames are set but do not pass", Judge: judgeJumboMismatch, Packets: packetsJumboMismatch,
			Seen:        "an end has an MTU of 8000 bytes or more, and the path MTU search (DF) finds that less passes; an MTU in an end's hypervisor (switch, bridge or tap) is smaller than the end's own; in captures: both SYNs offer jumbo frames, and no full segment arrives",
			Distinction: "without a router between the ends it is the root of a black hole; with one, the router is",
			Fix:         "set the same MTU at both ends and on every switch between", Effect: "0 Mb/s if full segments are dropped silently; else more CPU, and 5% of the link",
			Source: "C-20, C-21; RFC 8899", Tests: []string{diagnose.Captured}, Brings: []string{"mtu-black-hole", "loss", "policer"},
		},
		Urgent: 4,
		Gates: []gate.Rule{
			{ID: "mtu-agreement", Title: "MTU of both ends", About: "the MTU of the interfaces through which the ends reach each other",
				Warns:  "they differ, and no router is between the ends",
				Why:    "the other end drops large packets of the end with the larger MTU: UDP and other protocols without an MSS stall",
				Source: "C-20, C-21", Fix: "set the same MTU at both ends", Checklist: []string{"C-20", "C-21"}, Path: gateMTUAgreement},
			{ID: "guest-mtu", Words: "vswitch-mtu", Title: "Hypervisor MTU below a guest", About: "the MTUs of the guest's interface, of its virtual port, of the virtual switch and of its uplinks",
				Warns:  "an MTU in the hypervisor is smaller than the guest's",
				Why:    "a switch drops larger packets silently: it sends no ICMP",
				Source: "C-20, C-21", Fix: "set the same MTU on all of them", Checklist: []string{"C-20", "C-21"}, Hypervisor: true, Host: gateGuestMTU},
		},
		Propose: []advise.Proposer{proposeJumboMismatch},
	}
}

// judgeJumboMismatch joins the path's packet-size search with the MTUs of the hypervisors.
func judgeJumboMismatch(f *diagnose.Flow) *diagnose.Outcome {
	own := jumboSeen(f)
	n := Narrowest(f)
	if n == nil || own == nil || f.OnOneMachine() {
		return own
	}
	proof := diagnose.UnderBar(measure.Proof{EndPoint: n.End.Name, Counter: "MTU of " + diagnose.Line(n.Name), Value: float64(n.MTU), Unit: "bytes"}, float64(n.Wants))
	s, searched := sizes(f)
	switch {
	case own.State == diagnose.Holds && s.Bytes <= n.MTU:
		own.Text += fmt.Sprintf(": %s passes only %d", n.Name, n.MTU)
		own.Where.Below = diagnose.Line(n.Name)
		return own.By(proof).AddFix(n.Widen())
	case own.State == diagnose.Holds || searched && s.passes() && f.Sender == n.End:
		return own
	}
	o := diagnose.Possible("%s passes only packets of %d bytes, but the %s has an MTU of %d", n.Name, n.MTU, n.End.Place, n.Wants).By(proof)
	x, _ := Stalled(f)
	if dead := x.dead && packet(f, sized{PathMTU: &measure.PathMTU{Claimed: n.Wants}}) > float64(n.MTU); dead {
		o.Confidence = measure.Likely
	} else {
		o.MarkNotBinding()
	}
	return o.At(hypervisor.AtHost(n.End, n.Name)).Then("run `thru check`: it searches the size that passes").AddFix(n.Widen())
}

func jumboSeen(f *diagnose.Flow) *diagnose.Outcome {
	if f.OnOneMachine() {
		return diagnose.No("both ends are on one host")
	}
	s, ok := sizes(f)
	switch {
	case !ok:
		return diagnose.Missing("largest packet that passes", "the path MTU was not searched; run `thru check`")
	case s.Claimed < jumboFrom:
		return diagnose.No("the sender uses no jumbo frames: MTU %d", s.Claimed)
	case s.passes():
		return diagnose.No("%d bytes pass with DF", s.Bytes)
	}
	var o *diagnose.Outcome
	switch {
	case s.peer > 0 && s.peer < s.Claimed && s.Bytes <= s.peer+vlanTag:
		o = diagnose.Certain("jumbo frames are set at %s but not at %s: %d bytes pass of %d", f.Sender.Name, f.Receiver.Name, s.Bytes, s.Claimed)
	case s.peer >= jumboFrom:
		o = diagnose.Certain("jumbo frames are set at both ends but do not pass: %d bytes pass of %d", s.Bytes, s.Claimed)
	default:
		o = diagnose.Certain("jumbo frames are set at %s but do not pass: %d bytes pass of %d", f.Sender.Name, s.Bytes, s.Claimed)
	}
	o.By(s.proof(f)).At(measure.Where{Place: measure.AtPath}).AddFix(fixSize(f, "jumbo-mismatch", diagnose.Advise(f.Sender, "set the same MTU at both ends and on every switch between"))).
		Costs(0, "packets of "+fmt.Sprint(s.Bytes)+" bytes: more CPU, and about 5% of the link for headers", "methods.md, formula 4")
	if s.routed || !sizeBinds(f, s) {
		return o.MarkNotBinding()
	}
	return o.Costs(0, "no larger packet passes", "the path MTU search")
}

// Narrowest returns the smallest MTU in the hypervisors of the two ends that is less than the MTU of the end
// itself; nil if there is none.
func Narrowest(f *diagnose.Flow) *narrow {
	var least *narrow
	for _, e := range f.Ends() {
		wants := mtuOf(e)
		if wants <= 0 {
			continue
		}
		for _, b := range e.Placements {
			for name, mtu := range hypervisorMTUs(e, b) {
				if mtu >= 68 && mtu < wants && (least == nil || mtu < least.MTU || mtu == least.MTU && e == least.End && name < least.Name) {
					least = &narrow{End: e, Name: name, MTU: mtu, Wants: wants}
				}
			}
		}
	}
	return least
}

// narrow is an MTU in the hypervisor of an end that is smaller than the end's own.
type narrow struct {
	End        *diagnose.End
	Name       string
	MTU, Wants int
}

// Widen makes the hypervisor carry what the end sends.
func (n *narrow) Widen() *measure.Fix {
	r := &measure.Fix{EndPoint: hypervisor.HostName(n.End), Advice: fmt.Sprintf("set MTU %d at %s, or %d at %s; do the same on every switch and uplink between", n.Wants, n.Name, n.MTU, n.End.Name),
		Risk: "all ports of a switch share its MTU"}
	return r
}

// mtuOf returns the MTU of the end's own interface: of a guest the one that the test uses, of an ESXi host its
// VMkernel port's. 0: not known.
func mtuOf(e *diagnose.End) int {
	if e.Face != nil && e.Face.MTU != nil {
		return *e.Face.MTU
	}
	if e.Guest() != nil {
		return 0
	}
	for _, b := range e.Placements {
		if b.Host == nil {
			continue
		}
		for _, p := range b.Host.Ports {
			if p.MTU != nil && slices.ContainsFunc(p.Addrs, func(a string) bool { return e.Has(a) }) {
				return *p.MTU
			}
		}
	}
	return 0
}

// hypervisorMTUs returns the MTUs that a packet of the end meets in the hypervisor, by name.
func hypervisorMTUs(e *diagnose.End, b measure.HostPlacement) map[string]int {
	if b.Guest == nil && b.Host != nil && b.Switch == nil {
		b.Switch = underPort(b, e.Has)
	}
	if hypervisor.StaysInside(e.Flow) {
		return b.MTUs(nil)
	}
	return b.MTUs(hypervisor.Uplinks(e))
}

// underPort returns the switch of the host's VMkernel port that has such an address; nil if there is none.
func underPort(b measure.HostPlacement, has func(addr string) bool) *measure.VirtualSwitch {
	for _, p := range b.Host.Ports {
		if g := b.Inventory.PortGroup(p.PortGroup); g != nil && slices.ContainsFunc(p.Addrs, has) {
			return b.Inventory.Switch(g.Switch)
		}
	}
	return nil
}

func packetsJumboMismatch(f *diagnose.Flow) *diagnose.Outcome {
	s := f.AnyCapturePoint()
	if s == nil || s.Main().SYN == nil || s.Main().SYNACK == nil || s.Main().SYN.MSS == nil || s.Main().SYNACK.MSS == nil {
		return diagnose.NoHandshake("the MSS of both ends")
	}
	a, b := *s.Main().SYN.MSS, *s.Main().SYNACK.MSS
	switch {
	case max(a, b) < jumboFrom-tcpHeaders:
		return diagnose.No("neither end offers jumbo frames: MSS %d and %d", a, b)
	case min(a, b) < jumboFrom-tcpHeaders:
		return diagnose.Missing("the size that passes", fmt.Sprintf("one end offers jumbo frames and the other does not (MSS %d and %d): TCP uses the smaller size; run `thru check` to search it", a, b))
	case tooBig(f, s) != nil:
		return diagnose.No("a router reports a smaller MTU of the next link")
	}
	o := packetsMTUBlackHole(f)
	if o.State == diagnose.Holds {
		o.Text = fmt.Sprintf("jumbo frames are set at both ends (MSS %d and %d) but do not pass: %s", a, b, o.Text)
		o.AddFix(diagnose.Advise(nil, "set the same MTU at both ends and on every switch between"))
		if isRouted(f, s) {
			o.MarkNotBinding() // the router has to report it
		}
	}
	return o
}

// isRouted reports whether packets pass a router, by their TTL.
func isRouted(f *diagnose.Flow, s *diagnose.CapturePoint) bool {
	if x := f.Crossing; x != nil {
		hops, ok := diagnose.HopsBetween(x.Right, x.Left, func(c *measure.Connection) measure.Direction { return c.Acks })
		return ok && hops > 0
	}
	ttls := s.Main().Acks.TTLs
	return len(ttls) > 0 && !slices.Contains([]int{32, 64, 128, 255}, ttls[0]) // hosts begin with one of these
}

func gateMTUAgreement(sc *scene.Scene) *gate.Finding {
	p := sc.Subject.Path
	a, b := sc.Host(p.From), sc.Host(p.To)
	if a == nil || b == nil || sc.OnOneMachine() || linkMTU(a) == 0 || linkMTU(b) == 0 {
		return nil // the search itself shows what passes
	}
	routed := a.End.Route != nil && a.End.Route.Gateway != "" || b.End.Route != nil && b.End.Route.Gateway != ""
	switch {
	case linkMTU(a) == linkMTU(b):
		return gate.Pass("MTU %d at both ends", linkMTU(a))
	case routed:
		return gate.Pass("MTU %d at %s, %d at %s, with a router between", linkMTU(a), a.Name, linkMTU(b), b.Name)
	}
	small, large := a, b
	if linkMTU(a) > linkMTU(b) {
		small, large = b, a
	}
	f := gate.Warn("MTU %d at %s, %d at %s", linkMTU(a), a.Name, linkMTU(b), b.Name)
	if i := large.Top(); i != nil {
		f.Do(scene.At(large, scene.SetMTU(i, linkMTU(small))))
	}
	return f
}

// linkMTU returns the interface's MTU, whatever limit a route sets; 0 unknown.
func linkMTU(h *scene.Host) int {
	if i := h.Top(); i != nil && i.MTU != nil && *i.MTU > 0 {
		return *i.MTU
	}
	return mtu(h)
}

func gateGuestMTU(h *scene.Host) *gate.Finding {
	b, ok := hypervisor.Placement(h)
	top := carries(h, b)
	if !ok || top == nil || top.MTU == nil {
		return nil
	}
	var uplinks []string
	if b.NIC != nil && b.NIC.Uplink != nil {
		uplinks = []string{*b.NIC.Uplink}
	}
	all := b.MTUs(uplinks)
	if len(all) == 0 {
		return gate.NotChecked("hypervisor MTUs below "+b.Guest.Name, "the inventory does not have them")
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if n := all[name]; n > 0 && n < *top.MTU {
			return gate.Warn("%s passes only packets of %d bytes, but %s has an MTU of %d", name, n, top.Name, *top.MTU).
				Do(scene.Advise(scene.Command("set MTU %d there, on the hypervisor; or MTU %d at %s of the guest", *top.MTU, n, top.NIC())).Risking("all ports of a switch share its MTU"))
		}
	}
	return gate.Pass("all interfaces below %s pass the %d bytes of %s", b.Guest.Name, *top.MTU, top.Name)
}

// carries returns the interface of the guest that the test uses: that of its route, else the one with the MAC
// address of its adapter.
func carries(h *scene.Host, b measure.HostPlacement) *scene.Face {
	if top := h.Top(); top != nil {
		return top
	}
	for i := range h.Interfaces {
		d := &h.Interfaces[i]
		if b.NIC != nil && b.NIC.MAC != nil && d.MAC != nil && strings.EqualFold(*b.NIC.MAC, *d.MAC) {
			return &scene.Face{Interface: d, Host: h}
		}
	}
	return nil
}

// proposeJumboMismatch raises the smaller end if that is the only obstacle; else it lowers the larger one, or both
// if a port in between carries less.
func proposeJumboMismatch(r advise.Request) []advise.Draft {
	w := r.Direction
	a, b := MTUAt(w, w.From), MTUAt(w, w.To)
	if a == 0 || b == 0 || a == b {
		return smaller(w)
	}
	small, large := w.From, w.To
	if a > b {
		small, large = w.To, w.From
	}
	least, most := min(a, b), max(a, b)
	var list []advise.Draft
	if d, ok := SetMTU(w, small, most); ok {
		d.Risk = Crossing
		list = append(list, d.Bring(0, "C-20, C-21; measured", "packets of %d bytes pass in both directions: %.0f%% of the packets of MTU %d for the same data", most, 100*UsualMTU/float64(most), UsualMTU))
	}
	if d, ok := SetMTU(w, large, least); ok {
		list = append(list, d.Bring(0, "C-20, C-21", "no end sends packets larger than %d bytes: both ends agree", least))
	}
	return list
}
