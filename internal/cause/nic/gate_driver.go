package nic

import (
	"slices"

	"thru/internal/cause/gate"
)

// DriverGates judge the model of the adapter, and where its driver came from.
func DriverGates() []gate.Rule {
	return []gate.Rule{
		{ID: "nic-model", Title: "Model of the adapter in a virtual machine",
			About:  "whether the adapter is one that the hypervisor emulates (e1000, e1000e, pcnet, rtl8139: 82545EM, 82574L and such), not a paravirtual or a real one",
			Warns:  "the adapter is emulated",
			Fails:  "it is, and --link-rate is above 1 Gb/s",
			Why:    "each access of an emulated register leaves the guest: 1.36 against 2.31 Gb/s with vmxnet3, and more CPU",
			Source: "S-02, C-26; measured: e1000 593, virtio 1280 Mb/s under one emulator", Remedy: "vmxnet3 or virtio",
			Cause: "emulated-nic", Checklist: []string{"C-26", "S-02"}, Face: nicModel},
		{ID: "driver-of-kernel", Title: "Driver of this kernel", About: "whether the driver came with the running kernel and was built for it",
			Warns:  "the driver is not the kernel's own",
			Why:    "a driver for another release takes settings without effect (S-05): what it says must be verified",
			Source: "S-03, S-05, C-26", Remedy: "the driver of this kernel, or its maker's for exactly this release", Cause: "wrong-driver", Checklist: []string{"S-05", "C-26"}, Face: driverOfKernel},
	}
}

// emulated names drivers of old real adapters that hypervisors imitate, on
// Linux, FreeBSD, illumos and Windows.
func emulated() []string {
	return []string{"e1000", "e1000e", "pcnet32", "pcnet", "8139cp", "8139too", "rtl8139", "ne2k-pci", "tulip",
		"em", "le", "pcn", "rl", "re", "ed", "e1000g", "rtls", "E1G60", "e1iexpress"}
}

// paravirtual names drivers that know that they run in a guest.
func paravirtual() []string {
	return []string{"virtio_net", "vmxnet3", "vmxnet3s", "hv_netvsc", "xen-netfront", "vif", "vmx", "vtnet", "hn", "xn", "vioif", "netkvm",
		"netvsc", "vmxnet3ndis6", "gve"}
}

// emulatedCard tells of the PCI numbers of imitated adapters that no current
// machine has: 82540EM, 82545EM, 82574L, Am79C970 and RTL8139.
func emulatedCard(f *gate.Face) string {
	if f.PCI == nil {
		return ""
	}
	return map[string]string{"0x8086 0x100e": "82540EM", "0x8086 0x100f": "82545EM", "0x8086 0x10d3": "82574L",
		"0x1022 0x2000": "Am79C970", "0x10ec 0x8139": "RTL8139"}[f.PCI.Vendor+" "+f.PCI.Device]
}

func nicModel(f *gate.Face) *gate.Finding {
	if !f.Device() {
		return nil
	}
	guest, known := f.Host.Guest()
	imitated := slices.Contains(emulated(), f.DriverName()) || emulatedCard(f) != "" || f.KindName() == "emulated"
	switch {
	case f.KindName() == "paravirtual" || slices.Contains(paravirtual(), f.DriverName()):
		return gate.Pass("%s is paravirtual (%s)", f.Name, f.DriverName())
	case imitated && !known && f.KindName() != "emulated":
		return f.Host.Missing("whether "+f.Name+" ("+f.DriverName()+") is emulated", "hypervisor")
	case imitated && (guest || f.KindName() == "emulated"):
		want := f.Wanted()
		card := emulatedCard(f)
		if card != "" {
			card = ", an " + card
		}
		bad := gate.FailIf(f.Firm && want > 1e9, "%s is emulated by %s (%s%s)", f.Name, f.Host.HypervisorName(), f.DriverName(), card)
		return bad.Do(f.Host.ChangeModel())
	case guest && f.Driver == nil:
		return f.Missing("model of "+f.Name, "driver")
	}
	return nil
}

func driverOfKernel(f *gate.Face) *gate.Finding {
	if !f.Device() {
		return nil
	}
	name := f.DriverName()
	if f.Version != nil && *f.Version != "" {
		name += " " + *f.Version
	}
	switch {
	case gate.IsFalse(f.InTree):
		fix := gate.Commands("", gate.Command("modinfo %s", f.DriverName())).Saying("compare what it tells with the kernel, and take the driver of this kernel")
		if f.Host.System != "linux" {
			fix = gate.Remedy{}
		}
		return gate.Warn("the driver of %s (%s) did not come with this kernel", f.Name, name).Do(fix)
	case gate.IsTrue(f.InTree):
		return gate.Pass("the driver of %s (%s) is the kernel's own", f.Name, name)
	case f.Driver == nil:
		return f.Missing("driver of "+f.Name, "driver")
	}
	return f.Missing("whether the driver of "+f.Name+" ("+name+") is the kernel's own", "driver_of_kernel")
}
