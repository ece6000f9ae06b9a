package diagnose

import (
	"fmt"
	"slices"
	"strings"

	"thru/internal/gate"
	"thru/internal/measure"
	"thru/internal/unit"
)

// emulated joins what the guest shows of its adapter with what the hypervisor
// says that it is, which tells also where the driver could not be read.
func emulated(e *end) *outcome {
	own := e.emulatedSeen()
	n := e.guestNIC()
	if e.guest() == nil || n == nil || n.Model == nil || *n.Model == "" {
		return own
	}
	model := strings.ToLower(*n.Model)
	if !n.Emulated(e.kind()) {
		return seconded(own, no("the hypervisor gives the %s a %s", e.place, line(model)))
	}
	o := possible("at the %s: %s of %s is emulated (%s)", e.place, line(n.Name), e.guestName(), model).at(e.onFace()).
		by(measure.Proof{EndPoint: e.name, Counter: "emulated adapters, by the hypervisor", Value: 1, Note: model}).
		mend(e.changeModel(n)).symptom(e.worksFully())
	if own != nil && own.state == holds { // the remedy of who knows the hypervisor
		return best(o, own).by(own.evidence...)
	}
	return o
}

// changeModel gives the guest a paravirtual adapter.
func (e *end) changeModel(n *measure.GuestNIC) *measure.Remedy {
	r := &measure.Remedy{EndPoint: e.bedName(), Risk: "the guest is shut down for it; it sees a new adapter, and may name it anew"}
	if e.kind() == measure.KindKVM {
		r.Advice = "in its definition (virsh edit " + domain(e.guest()) + "): <model type='virtio'/> in place of " + line(*n.Model) + "; Proxmox: qm set ID --net0 virtio=MAC,bridge=BRIDGE"
		return r
	}
	r.Advice = "add a VMXNET 3 adapter to " + e.guestName() + " in place of " + line(n.Name) + " (in its .vmx file: ethernetN.virtualDev = \"vmxnet3\"), which its system must have a driver for"
	return r
}

// shapedPort is a rate that the hypervisor holds the port of an end to.
type shapedPort struct {
	end     *end
	name    string // of the port group, switch or adapter that it is set at
	average float64
}

// shapedAt is the shaping of the end's port in the direction of the data: its
// own, else that of the port group, else that of the switch. nil: there is none,
// or it is not known.
func (f *flow) shapedAt(e *end) *shapedPort {
	for _, b := range e.below {
		if x, at, told := b.Shaped(e.sends()); x != nil {
			return &shapedPort{end: e, name: line(at), average: float64(*x.AverageBps)}
		} else if told {
			return nil
		}
	}
	return nil
}

// Bars of a shaped port, in percent of its average. It counts frames, so a
// flow at it carries their headers less: 5% at an MTU of 1500.
const (
	shapedLow  = 88
	shapedHigh = 102
)

// portShaper judges a rate that a port below is held to; nil where none is
// set, or the flow is not at it.
func (f *flow) portShaper() *outcome {
	bps, ok := f.goodput()
	if !ok || f.onOneMachine() || f.isAll() != nil {
		return nil
	}
	for _, e := range f.ends() {
		s := f.shapedAt(e)
		if s == nil {
			continue
		}
		passed, by := bps, f.receiver.proof("goodput", bps, "bps")
		if x, why := e.ofPort(portRate(e)); why == "" && share(bps, s.average) < shapedLow {
			passed, by = x.mean, x.tells(e.name, x.mean, "bps") // with what others of the guest send
		}
		if passed < s.average*shapedLow/100 || passed > s.average*shapedHigh/100 {
			continue
		}
		return f.asPortShaper(s, by)
	}
	return nil
}

func portRate(e *end) string {
	if e.sends() {
		return measure.CounterTxBps
	}
	return measure.CounterRxBps
}

// asPortShaper words a flow that is at the rate of a shaped port.
func (f *flow) asPortShaper(s *shapedPort, by measure.Proof) *outcome {
	way := "receives"
	if s.end.sends() {
		way = "sends"
	}
	o := likely("%s holds what the %s %s to %s, and this is it", s.name, s.end.place, way, unit.Rate(s.average)).
		by(by, measure.Proof{EndPoint: s.end.name, Counter: "average rate of its traffic shaping", Value: s.average, Unit: "bps"}).
		costs(s.average, "no more than "+unit.Rate(s.average)+" with all headers", "traffic shaping of "+s.name)
	flat, known := f.flatness()
	a, b := f.sender.load(), f.receiver.load()
	switch {
	case a.isFull() || b.isFull() || known && flat > 3*flatBar:
		o.confidence = measure.Possible
	case known && flat < flatBar && a.known && b.known:
		o.confidence = measure.Certain
	}
	return o.at(s.end.onBed(s.name)).mend(&measure.Remedy{EndPoint: s.end.bedName(), Advice: "raise the average of the traffic shaping of " + s.name + ", or switch it off", Risk: "it may be meant: ask who runs the network"})
}

// narrow is a smaller MTU below an end than the end's own.
type narrow struct {
	end        *end
	name       string
	mtu, wants int
}

// narrowest is the smallest MTU below the two ends that is less than what the
// end there has; nil where there is none.
func (f *flow) narrowest() *narrow {
	var least *narrow
	for _, e := range f.ends() {
		wants := e.mtuOf()
		if wants <= 0 {
			continue
		}
		for _, b := range e.below {
			for name, mtu := range e.mtusBelow(b) {
				if mtu >= 68 && mtu < wants && (least == nil || mtu < least.mtu || mtu == least.mtu && e == least.end && name < least.name) {
					least = &narrow{end: e, name: name, mtu: mtu, wants: wants}
				}
			}
		}
	}
	return least
}

// mtuOf is the MTU of the end's own interface: of a guest the one that the test
// uses, of an ESXi host its VMkernel port's. 0: not known.
func (e *end) mtuOf() int {
	if e.face != nil && e.face.MTU != nil {
		return *e.face.MTU
	}
	if e.guest() != nil {
		return 0
	}
	for _, b := range e.below {
		if b.Host == nil {
			continue
		}
		for _, p := range b.Host.Ports {
			if p.MTU != nil && slices.ContainsFunc(p.Addrs, func(a string) bool { return e.has(a) }) {
				return *p.MTU
			}
		}
	}
	return 0
}

// has tells whether an address, with or without a prefix length, is the one that
// the other end sends to.
func (e *end) has(addr string) bool {
	plain, _, _ := strings.Cut(addr, "/")
	for _, x := range e.flow.doc.EndPoints {
		if x.Name == e.name && plain != "" && (x.Addr == plain || strings.HasPrefix(x.Addr, plain+":")) {
			return true
		}
	}
	return false
}

// mtusBelow are the MTUs that a packet of the end meets below it, by name.
func (e *end) mtusBelow(b measure.Beneath) map[string]int {
	if b.Guest == nil && b.Host != nil && b.Switch == nil {
		b.Switch = underPort(b, e.has)
	}
	if e.flow.staysInside() {
		return b.MTUs(nil)
	}
	return b.MTUs(e.uplinks())
}

// underPort is the switch of the host's VMkernel port that has such an address;
// nil where there is none.
func underPort(b measure.Beneath, has func(addr string) bool) *measure.VirtualSwitch {
	for _, p := range b.Host.Ports {
		if g := b.Inventory.PortGroup(p.PortGroup); g != nil && slices.ContainsFunc(p.Addrs, has) {
			return b.Inventory.Switch(g.Switch)
		}
	}
	return nil
}

// jumboMismatch joins what the path's search says with the MTUs below the ends.
func jumboMismatch(f *flow) *outcome {
	own := f.jumboSeen()
	n := f.narrowest()
	if n == nil || own == nil || f.onOneMachine() {
		return own
	}
	proof := below(measure.Proof{EndPoint: n.end.name, Counter: "MTU of " + line(n.name), Value: float64(n.mtu), Unit: "bytes"}, float64(n.wants))
	s, searched := f.sizes()
	switch {
	case own.state == holds && s.Bytes <= n.mtu:
		own.text += fmt.Sprintf(": %s takes %d", n.name, n.mtu)
		own.where.Below = line(n.name)
		return own.by(proof).mend(n.widen())
	case own.state == holds || searched && s.passes() && f.sender == n.end:
		return own
	}
	o := possible("%s takes packets of %d bytes, and the %s has an MTU of %d", n.name, n.mtu, n.end.place, n.wants).by(proof)
	x, _ := f.stalled()
	if dead := x.dead && f.packet(sized{PathMTU: &measure.PathMTU{Claimed: n.wants}}) > float64(n.mtu); dead {
		o.confidence = measure.Likely
	} else {
		o.beside()
	}
	return o.at(n.end.onBed(n.name)).then("`thru check` searches the size that passes").mend(n.widen())
}

// widen has what is below take what the end sends.
func (n *narrow) widen() *measure.Remedy {
	r := &measure.Remedy{EndPoint: n.end.bedName(), Advice: fmt.Sprintf("MTU %d at %s, or %d at %s; the same on every switch and uplink between", n.wants, n.name, n.mtu, n.end.name),
		Risk: "all ports of a switch share its MTU"}
	return r
}

// oldTools is an aside of a guest whose drivers come with the hypervisor's
// tools: only Windows takes them from there. nil where nothing is to be said.
func (e *end) oldTools() *outcome {
	if e.guest() == nil {
		return nil
	}
	word, _ := gate.OldTools(e.facts, e.guest())
	if word == "" {
		return nil
	}
	return possible("the hypervisor's tools in %s, which bring the adapter's driver, are %s", e.guestName(), word).at(e.onFace()).
		by(measure.Proof{EndPoint: e.name, Counter: "current tools, by the hypervisor", Note: word}).beside().
		mend(&measure.Remedy{EndPoint: e.bedName(), Advice: "install the current tools in " + e.guestName(), Risk: "the guest may restart"})
}
