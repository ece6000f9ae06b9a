package nic

import (
	"fmt"

	"thru/internal/cause/diagnose"
	"thru/internal/cause/gate"
	"thru/internal/cause/rule"
	"thru/internal/cause/scene"
	"thru/internal/measure"
	"thru/internal/unit"
)

// PCIe is the cause `pcie`.
func PCIe() rule.Cause {
	return rule.Cause{
		Rule: diagnose.Rule{
			Cause: "pcie", TCP: true, UDP: true, Title: "the PCIe slot carries less than the port", Judge: judgePCIe,
			Seen:        "the bandwidth of the slot's PCIe lanes is below the port's speed",
			Distinction: "goodput reaches the bandwidth of the slot", Fix: "move the card to a slot with more lanes or of a newer generation",
			Effect: "6.9 of 10 Gb/s with PCIe 1.0 x4", Source: "PCI Express Base Specification; methods.md, formula 7",
		},
		Gates: []gate.Rule{
			{ID: "pcie-bandwidth", Words: "pci bus slot lanes", Title: "PCIe bandwidth",
				About:  "the bandwidth of the slot in each direction against the speed of the port, of all ports of the card, and --link-rate (PCIe 1 to 6)",
				Warns:  "the slot carries less than the port, or less than all ports of the card while another port is up",
				Fails:  "--link-rate is above the bandwidth of the slot",
				Why:    "the slot limits the card: PCIe 1.0 x4 carries 6.9 Gb/s of a 10 Gb/s port",
				Source: "PCI Express Base Specification 1.0 to 6.0, less packet headers and 5%; C-09", Fix: "move the card to a slot with more lanes or of a newer generation", Checklist: []string{"C-09"}, Face: gatePCIeBandwidth},
			{ID: "pcie-trained", Title: "PCIe link of the slot", About: "lanes and generation in use against what card and slot support",
				Warns:  "the link runs with fewer lanes or a lower generation than card and slot support",
				Why:    "a badly seated card or a failed lane costs half the bandwidth or more",
				Source: "PCI Express Base Specification, link training", Fix: "reseat the card; check the BIOS settings of the slot", Checklist: []string{"C-09"}, Face: gatePCIeTrained},
		},
	}
}

func judgePCIe(f *diagnose.Flow) *diagnose.Outcome {
	return eachPort(f, "bandwidth of the slots", "the slots carry more than the ports", func(e *diagnose.End, i *measure.Interface) *diagnose.Outcome {
		speed := diagnose.SpeedOf(i)
		switch {
		case i.PCI == nil:
			return nil // on no bus that could be too slow
		case i.PCI.UsableBps == nil || *i.PCI.UsableBps <= 0:
			return e.Lacks("PCIe bandwidth of " + diagnose.Word(i.Name))
		case speed == 0 || float64(*i.PCI.UsableBps) >= speed:
			return nil
		}
		usable := float64(*i.PCI.UsableBps)
		bps, _ := f.Goodput()
		o := diagnose.Certain("the slot of %s carries only %s of the port's %s", diagnose.Word(i.Name), unit.Rate(usable), unit.Rate(speed)).
			At(e.OnPort(i)).By(e.Proof("usable PCIe bandwidth", usable, "bps"), e.Proof("speed of the port", speed, "bps")).
			Costs(usable, "the slot carries "+unit.Rate(usable), "lanes and generation of the link, less packet headers and 5%").
			AddFix(gateFix(f, "pcie", e, "put the card into a slot with more lanes or of a newer generation"))
		switch { // the allowance for headers is an estimate
		case bps < 0.8*usable:
			o.MarkNotBinding()
		case bps > 1.1*usable || bps < 0.9*usable:
			o.Confidence = measure.Likely
		}
		return o
	})
}

func gatePCIeBandwidth(f *scene.Face) *gate.Finding {
	if !f.Wired() || f.PCI == nil {
		return nil // a hypervisor's device is on no real bus
	}
	if f.PCI.UsableBps == nil || *f.PCI.UsableBps <= 0 {
		return gate.Missing(f, "PCIe bandwidth of "+f.Name, "pci.usable_bps")
	}
	usable, want := *f.PCI.UsableBps, f.Wanted()
	switch {
	case want > usable:
		return gate.FailIf(f.Firm, "%s wanted, but %s (%s) carries %s", gate.Rate(want), slot(f), f.Name, gate.Rate(usable)).Do(otherSlot())
	case f.Speed() > usable:
		return gate.Warn("%s (%s) carries %s of the port's %s", slot(f), f.Name, gate.Rate(usable), gate.Rate(f.Speed())).Do(otherSlot())
	case f.PCI.PortsBps != nil && *f.PCI.PortsBps > usable && siblingUp(f):
		return gate.Warn("%s (%s) carries %s, but the card's ports together %s", slot(f), f.Name, gate.Rate(usable), gate.Rate(*f.PCI.PortsBps)).
			Because("busy ports share %s", gate.Rate(usable)).Do(otherSlot())
	}
	return gate.Pass("%s of %s carries %s in each direction", slot(f), f.Name, gate.Rate(usable))
}

// slot words generation and lanes: "PCIe 3 x8".
func slot(f *scene.Face) string {
	if f.PCI.Gen == nil || f.PCI.Lanes == nil {
		return "the slot"
	}
	return fmt.Sprintf("PCIe %d x%d", *f.PCI.Gen, *f.PCI.Lanes)
}

// otherSlot is the fix for every slot that is too slow.
func otherSlot() scene.Fix {
	return scene.Advise("put the card into a slot with more lanes or of a newer generation").Risking("the host must be shut down")
}

// siblingUp reports whether another port of the same card is in use.
func siblingUp(f *scene.Face) bool {
	for _, name := range f.PCI.Siblings {
		if i := f.Host.Interface(name); i != nil && scene.IsTrue(i.Up) && !scene.IsFalse(i.Carrier) {
			return true
		}
	}
	return false
}

func gatePCIeTrained(f *scene.Face) *gate.Finding {
	if !f.Wired() || f.PCI == nil || f.PCI.Gen == nil || f.PCI.Lanes == nil {
		return nil // the gate of the bandwidth names what is missing
	}
	if is, _ := f.Host.Guest(); is {
		return nil // a guest's view of a slot is made up by its hypervisor
	}
	lanes, gen := both(f.PCI.MaxLanes, f.PCI.SlotLanes), both(f.PCI.MaxGen, f.PCI.SlotGen)
	if lanes > *f.PCI.Lanes || gen > *f.PCI.Gen {
		return gate.Warn("%s runs at %s; card and slot support PCIe %d x%d", f.Name, slot(f), max(gen, *f.PCI.Gen), max(lanes, *f.PCI.Lanes)).
			Do(scene.Advise("reseat the card, and check the speed of the slot in the BIOS").Risking("the host must be shut down"))
	}
	switch {
	case f.PCI.MaxLanes == nil || f.PCI.MaxGen == nil:
		return gate.Pass("%s runs at %s; what the card supports is not known", f.Name, slot(f))
	case f.PCI.SlotLanes == nil || f.PCI.SlotGen == nil:
		return gate.Pass("%s runs at %s, its card supports PCIe %d x%d; what the slot supports is not known", f.Name, slot(f), *f.PCI.MaxGen, *f.PCI.MaxLanes)
	}
	return gate.Pass("%s runs at %s, the maximum of card and slot", f.Name, slot(f))
}

// both returns the smaller of two limits; 0 if one of them is not known.
func both(a, b *int) int {
	if a == nil || b == nil {
		return 0
	}
	return min(*a, *b)
}
