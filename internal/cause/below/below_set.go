package below

import (
	"fmt"
	"slices"

	"thru/internal/cause/diagnose"
	"thru/internal/measure"
)

// ChangeModel gives the guest a paravirtual adapter.
func ChangeModel(e *diagnose.End, n *measure.GuestNIC) *measure.Remedy {
	r := &measure.Remedy{EndPoint: BedName(e), Risk: "the guest is shut down for it; it sees a new adapter, and may name it anew"}
	if e.Kind() == measure.KindKVM {
		r.Advice = "in its definition (virsh edit " + domain(e.Guest()) + "): <model type='virtio'/> in place of " + diagnose.Line(*n.Model) + "; Proxmox: qm set ID --net0 virtio=MAC,bridge=BRIDGE"
		return r
	}
	r.Advice = "add a VMXNET 3 adapter to " + GuestName(e) + " in place of " + diagnose.Line(n.Name) + " (in its .vmx file: ethernetN.virtualDev = \"vmxnet3\"), which its system must have a driver for"
	return r
}

// ShapedPort is a rate that the hypervisor holds the port of an end to.
type ShapedPort struct {
	End     *diagnose.End
	Name    string // of the port group, switch or adapter that it is set at
	Average float64
}

// ShapedAt is the shaping of the end's port in the direction of the data: its
// own, else that of the port group, else that of the switch. nil: there is none,
// or it is not known.
func ShapedAt(f *diagnose.Flow, e *diagnose.End) *ShapedPort {
	for _, b := range e.Below {
		if x, at, told := b.Shaped(e.Sends()); x != nil {
			return &ShapedPort{End: e, Name: diagnose.Line(at), Average: float64(*x.AverageBps)}
		} else if told {
			return nil
		}
	}
	return nil
}

// Bars of a shaped port, in percent of its average. It counts frames, so a
// flow at it carries their headers less: 5% at an MTU of 1500.
const (
	ShapedLow  = 88
	ShapedHigh = 102
)

func PortRate(e *diagnose.End) string {
	if e.Sends() {
		return measure.CounterTxBps
	}
	return measure.CounterRxBps
}

// narrow is a smaller MTU below an end than the end's own.
type narrow struct {
	End        *diagnose.End
	Name       string
	MTU, Wants int
}

// Narrowest is the smallest MTU below the two ends that is less than what the
// end there has; nil where there is none.
func Narrowest(f *diagnose.Flow) *narrow {
	var least *narrow
	for _, e := range f.Ends() {
		wants := mtuOf(e)
		if wants <= 0 {
			continue
		}
		for _, b := range e.Below {
			for name, mtu := range mtusBelow(e, b) {
				if mtu >= 68 && mtu < wants && (least == nil || mtu < least.MTU || mtu == least.MTU && e == least.End && name < least.Name) {
					least = &narrow{End: e, Name: name, MTU: mtu, Wants: wants}
				}
			}
		}
	}
	return least
}

// mtuOf is the MTU of the end's own interface: of a guest the one that the test
// uses, of an ESXi host its VMkernel port's. 0: not known.
func mtuOf(e *diagnose.End) int {
	if e.Face != nil && e.Face.MTU != nil {
		return *e.Face.MTU
	}
	if e.Guest() != nil {
		return 0
	}
	for _, b := range e.Below {
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

// mtusBelow are the MTUs that a packet of the end meets below it, by name.
func mtusBelow(e *diagnose.End, b measure.Beneath) map[string]int {
	if b.Guest == nil && b.Host != nil && b.Switch == nil {
		b.Switch = underPort(b, e.Has)
	}
	if staysInside(e.Flow) {
		return b.MTUs(nil)
	}
	return b.MTUs(uplinks(e))
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

// Widen has what is below take what the end sends.
func (n *narrow) Widen() *measure.Remedy {
	r := &measure.Remedy{EndPoint: BedName(n.End), Advice: fmt.Sprintf("MTU %d at %s, or %d at %s; the same on every switch and uplink between", n.Wants, n.Name, n.MTU, n.End.Name),
		Risk: "all ports of a switch share its MTU"}
	return r
}

// OldToolsOfEnd is an aside of a guest whose drivers come with the hypervisor's
// tools: only Windows takes them from there. nil where nothing is to be said.
func OldToolsOfEnd(e *diagnose.End) *diagnose.Outcome {
	if e.Guest() == nil {
		return nil
	}
	word, _ := OldTools(e.Facts, e.Guest())
	if word == "" {
		return nil
	}
	return diagnose.Possible("the hypervisor's tools in %s, which bring the adapter's driver, are %s", GuestName(e), word).At(e.OnFace()).
		By(measure.Proof{EndPoint: e.Name, Counter: "current tools, by the hypervisor", Note: word}).Beside().
		Mend(&measure.Remedy{EndPoint: BedName(e), Advice: "install the current tools in " + GuestName(e), Risk: "the guest may restart"})
}
