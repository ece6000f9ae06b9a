package nic

import (
	"thru/internal/cause/gate"
)

// RingGates judge the buffers of an interface for received packets.
func RingGates() []gate.Rule {
	return []gate.Rule{{
		ID: "rings", Title: "Receive rings", About: "packets dropped for want of a free descriptor (the largest of the counters that each system has for them), and the size of the ring against its maximum",
		Warns:  "100 packets or more were dropped, and more than one in 100 000 where packets are known",
		Why:    "a burst longer than the ring is lost in the host, and looks like loss on the path",
		Source: "Linux if_link.h, rx_missed_errors", Remedy: "a larger ring; more queues where it is at its maximum",
		Cause: "ring-overflow", Checklist: []string{"C-24", "C-37"}, Face: rings,
	}}
}

func rings(f *gate.Face) *gate.Finding {
	if !f.Device() {
		return nil
	}
	drops, name := f.Counted(gate.NoRoom)
	packets := f.Received()
	many := drops >= 100 && (packets == 0 || float64(drops) > 1e-5*float64(packets))
	size, most := 0, 0
	if f.Rings != nil {
		size, most = f.Rings.RX, f.Rings.RXMax
	}
	switch {
	case many && most > size && size > 0:
		return gate.Warn("%d packets dropped by the ring of %s (%s), which has %d of %d descriptors", drops, f.Name, name, size, most).Do(gate.SetRing(f, most))
	case many && size > 0:
		return gate.Warn("%d packets dropped by the ring of %s (%s), which has all %d descriptors", drops, f.Name, name, size).
			Because("the ring can be no longer: CPUs must take packets off it faster, by more queues or less work")
	case many:
		return gate.Warn("%d packets dropped by the ring of %s (%s)", drops, f.Name, name)
	case f.Rings == nil && gate.IsTrue(f.Nominal):
		return nil // some of the hypervisors' devices have no such setting
	case f.Rings == nil:
		return f.Missing("rings of "+f.Name, "rings")
	case f.Uncounted(gate.NoRoom) != "":
		return gate.NotChecked("packets dropped by the ring of "+f.Name, f.Uncounted(gate.NoRoom))
	}
	return gate.Pass("the ring of %s has %d of %d descriptors, %d packets dropped", f.Name, size, max(size, most), drops)
}
