package gate

import "fmt"

// pcieRules judge the slot of a card.
func pcieRules() []Rule {
	return []Rule{
		{ID: "pcie-bandwidth", Title: "PCIe bandwidth",
			About:  "what the slot's link carries in each direction against the speed of the port, of all ports of the card, and --link-rate (PCIe 1 to 6)",
			Warns:  "the link carries less than the port, or less than all ports of the card where another one of them is up",
			Fails:  "--link-rate is above what the link carries",
			Why:    "a card gives no more than its slot: PCIe 1.0 x4 carries 6.9 Gb/s of a 10 Gb/s port",
			Source: "PCI Express Base Specification 1.0 to 6.0, less packet headers and 5%; C-09", Remedy: "a slot with more lanes or of a newer generation", Cause: "pcie", Checklist: []string{"C-09"}, face: pcieBandwidth},
		{ID: "pcie-trained", Title: "PCIe link of the slot", About: "lanes and generation in use against what both card and slot can",
			Warns:  "the link runs with fewer lanes or a lower generation than card and slot can",
			Why:    "a card that is not seated well, or a lane that fails, takes half the bandwidth or more",
			Source: "PCI Express Base Specification, link training", Remedy: "seat the card again; BIOS settings of the slot", Cause: "pcie", Checklist: []string{"C-09"}, face: pcieTrained},
	}
}

// slot names lanes and generation: "PCIe 3 x8".
func (f *face) slot() string {
	if f.PCI.Gen == nil || f.PCI.Lanes == nil {
		return "the slot"
	}
	return fmt.Sprintf("PCIe %d x%d", *f.PCI.Gen, *f.PCI.Lanes)
}

// otherSlot is the remedy of every slot that carries too little.
func otherSlot() remedy {
	return advise("put the card into a slot with more lanes or of a newer generation").risking("the host must be shut down")
}

func pcieBandwidth(f *face) *finding {
	if !f.wired() || f.PCI == nil {
		return nil // a hypervisor's device is on no real bus
	}
	if f.PCI.UsableBps == nil || *f.PCI.UsableBps <= 0 {
		return f.missing("PCIe bandwidth of "+f.Name, "pci.usable_bps")
	}
	usable, want := *f.PCI.UsableBps, f.wanted()
	switch {
	case want > usable:
		return failIf(f.firm, "%s wanted, %s (%s) carries %s", rate(want), f.slot(), f.Name, rate(usable)).do(otherSlot())
	case f.speed() > usable:
		return warn("%s (%s) carries %s of the port's %s", f.slot(), f.Name, rate(usable), rate(f.speed())).do(otherSlot())
	case f.PCI.PortsBps != nil && *f.PCI.PortsBps > usable && f.siblingUp():
		return warn("%s (%s) carries %s, its card's ports together %s", f.slot(), f.Name, rate(usable), rate(*f.PCI.PortsBps)).
			because("when all ports are busy they share %s", rate(usable)).do(otherSlot())
	}
	return pass("%s of %s carries %s each way", f.slot(), f.Name, rate(usable))
}

// siblingUp tells whether another port of the same card is in use.
func (f *face) siblingUp() bool {
	for _, name := range f.PCI.Siblings {
		if i := f.host.Interface(name); i != nil && isTrue(i.Up) && !isFalse(i.Carrier) {
			return true
		}
	}
	return false
}

func pcieTrained(f *face) *finding {
	if !f.wired() || f.PCI == nil || f.PCI.Gen == nil || f.PCI.Lanes == nil {
		return nil // the gate of the bandwidth says what is missing
	}
	if is, _ := f.host.guest(); is {
		return nil // what a guest sees of a slot is what its hypervisor made up
	}
	lanes, gen := both(f.PCI.MaxLanes, f.PCI.SlotLanes), both(f.PCI.MaxGen, f.PCI.SlotGen)
	if lanes > *f.PCI.Lanes || gen > *f.PCI.Gen {
		return warn("%s runs at %s; card and slot can do PCIe %d x%d", f.Name, f.slot(), max(gen, *f.PCI.Gen), max(lanes, *f.PCI.Lanes)).
			do(advise("seat the card again, and look at the speed of the slot in the BIOS").risking("the host must be shut down"))
	}
	switch {
	case f.PCI.MaxLanes == nil || f.PCI.MaxGen == nil:
		return pass("%s runs at %s; what the card can is not known", f.Name, f.slot())
	case f.PCI.SlotLanes == nil || f.PCI.SlotGen == nil:
		return pass("%s runs at %s, its card can do PCIe %d x%d; what the slot can is not known", f.Name, f.slot(), *f.PCI.MaxGen, *f.PCI.MaxLanes)
	}
	return pass("%s runs at %s, the most that card and slot can", f.Name, f.slot())
}

// both is what two parts can do together; 0 where one of them is not known.
func both(a, b *int) int {
	if a == nil || b == nil {
		return 0
	}
	return min(*a, *b)
}
