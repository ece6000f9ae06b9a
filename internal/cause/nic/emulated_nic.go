package nic

import (
	"strings"

	"thru/internal/cause/diagnose"
	"thru/internal/cause/gate"
	"thru/internal/cause/hypervisor"
	"thru/internal/cause/rule"
	"thru/internal/cause/scene"
	"thru/internal/measure"
)

// EmulatedNIC is the cause `emulated-nic`.
func EmulatedNIC() rule.Cause {
	return rule.Cause{
		Rule: diagnose.Rule{
			Cause: "emulated-nic", TCP: true, UDP: true, Title: "the adapter is emulated", Judge: func(f *diagnose.Flow) *diagnose.Outcome { return f.Either(judgeEmulatedNIC) },
			Seen:        "a driver or device of an adapter that hypervisors imitate, in a guest, or the model that the hypervisor names; likely where a CPU is full",
			Distinction: "a paravirtual adapter beside it", Fix: "change the adapter to vmxnet3 or virtio", Effect: "1.36 against 2.31 Gb/s (S-02)",
			Source: "gate nic-model; C-26", Brings: []string{"sender-cpu", "receiver-cpu", "single-flow"},
		},
		Gates: []gate.Rule{
			{ID: "nic-model", Words: "e1000 vmxnet3 virtio emulated paravirtual adapter", Title: "Model of the adapter in a virtual machine",
				About:  "whether the adapter is one that the hypervisor emulates (e1000, e1000e, pcnet, rtl8139: 82545EM, 82574L and such), not a paravirtual or a real one",
				Warns:  "the adapter is emulated",
				Fails:  "it is, and --link-rate is above 1 Gb/s",
				Why:    "each access of an emulated register leaves the guest: 1.36 against 2.31 Gb/s with vmxnet3, and more CPU",
				Source: "S-02, C-26; measured: e1000 593, virtio 1280 Mb/s under one emulator", Fix: "change the adapter to vmxnet3 or virtio",
				Checklist: []string{"C-26", "S-02"}, Face: gateNICModel},
			{ID: "guest-adapter", Words: "vnic", Title: "Model of the adapter, by the hypervisor", About: "the model that the hypervisor gives the guest for the adapter of the test",
				Warns:  "it is one that is emulated (e1000, e1000e, pcnet, rtl8139; vmxnet3 by QEMU)",
				Why:    "each access of an emulated register leaves the guest: 1.36 against 2.31 Gb/s with vmxnet3, and more CPU",
				Source: "S-02, C-26", Fix: "change the adapter to vmxnet3 or virtio", Checklist: []string{"C-26", "S-02"}, Hypervisor: true, Host: gateGuestAdapter},
		},
	}
}

// judgeEmulatedNIC joins what the guest sees of its adapter with the hypervisor's model, which is known even if
// the driver could not be read.
func judgeEmulatedNIC(e *diagnose.End) *diagnose.Outcome {
	own := emulatedSeen(e)
	n := GuestNIC(e)
	if e.Guest() == nil || n == nil || n.Model == nil || *n.Model == "" {
		return own
	}
	model := strings.ToLower(*n.Model)
	if !n.Emulated(e.Kind()) {
		return hypervisor.Seconded(own, diagnose.No("the hypervisor gives the %s a %s", e.Place, diagnose.Line(model)))
	}
	o := hypervisor.Symptom(diagnose.Possible("at the %s: %s of %s is emulated (%s)", e.Place, diagnose.Line(n.Name), hypervisor.GuestName(e), model).At(e.OnFace()).
		By(measure.Proof{EndPoint: e.Name, Counter: "emulated adapters, by the hypervisor", Value: 1, Note: model}).
		AddFix(ChangeModel(e, n)), hypervisor.WorksFully(e))
	if own != nil && own.State == diagnose.Holds { // the hypervisor's fix is better
		return hypervisor.Best(o, own).By(own.Evidence...)
	}
	return o
}

func emulatedSeen(e *diagnose.End) *diagnose.Outcome {
	o, warns := hypervisor.Gated(e, "emulated-nic")
	if !warns {
		return o
	}
	return hypervisor.Symptom(o, hypervisor.WorksFully(e))
}

// GuestNIC returns the adapter that carries the test.
func GuestNIC(e *diagnose.End) *measure.GuestNIC {
	for _, b := range e.Placements {
		if b.NIC != nil {
			return b.NIC
		}
	}
	return nil
}

// ChangeModel gives the guest a paravirtual adapter.
func ChangeModel(e *diagnose.End, n *measure.GuestNIC) *measure.Fix {
	r := &measure.Fix{EndPoint: hypervisor.HostName(e), Risk: "the guest is shut down for it; it sees a new adapter, and may name it anew"}
	if e.Kind() == measure.KindKVM {
		r.Advice = "in its definition (virsh edit " + hypervisor.Domain(e.Guest()) + "): <model type='virtio'/> in place of " + diagnose.Line(*n.Model) + "; Proxmox: qm set ID --net0 virtio=MAC,bridge=BRIDGE"
		return r
	}
	r.Advice = "add a VMXNET 3 adapter to " + hypervisor.GuestName(e) + " in place of " + diagnose.Line(n.Name) + " (in its .vmx file: ethernetN.virtualDev = \"vmxnet3\"), which its system must have a driver for"
	return r
}

func gateNICModel(f *scene.Face) *gate.Finding {
	if !f.Device() {
		return nil
	}
	guest, known := f.Host.Guest()
	imitated := measure.EmulatedDriver(f.DriverName()) || f.PCI.EmulatedCard() != "" || f.KindName() == "emulated"
	switch {
	case f.KindName() == "paravirtual" || measure.ParavirtualDriver(f.DriverName()):
		return gate.Pass("%s is paravirtual (%s)", f.Name, f.DriverName())
	case imitated && !known && f.KindName() != "emulated":
		return gate.Missing(f.Host, "whether "+f.Name+" ("+f.DriverName()+") is emulated", "hypervisor")
	case imitated && (guest || f.KindName() == "emulated"):
		want := f.Wanted()
		card := f.PCI.EmulatedCard()
		if card != "" {
			card = ", an " + card
		}
		bad := gate.FailIf(f.Firm && want > 1e9, "%s is emulated by %s (%s%s)", f.Name, f.Host.HypervisorName(), f.DriverName(), card)
		return bad.Do(changeModel(f.Host))
	case guest && f.Driver == nil:
		return gate.Missing(f, "model of "+f.Name, "driver")
	}
	return nil
}

func gateGuestAdapter(h *scene.Host) *gate.Finding {
	b, ok := hypervisor.Placement(h)
	switch {
	case !ok || b.NIC == nil:
		return nil
	case b.NIC.Model == nil || *b.NIC.Model == "":
		return gate.NotChecked("model of "+b.NIC.Name, scene.Reason(b.Guest.NotChecked, "nics.model", "nics"))
	case !b.NIC.Emulated(b.Kind()):
		return gate.Pass("%s of %s is a %s", b.NIC.Name, b.Guest.Name, *b.NIC.Model)
	}
	return gate.Warn("%s of %s is emulated (%s)", b.NIC.Name, b.Guest.Name, *b.NIC.Model).Do(changeModel(h))
}

// changeModel is done on the hypervisor, not in the guest.
func changeModel(h *scene.Host) scene.Fix {
	const risk = "the guest is shut down for it, and gets a new MAC address"
	switch h.HypervisorName() {
	case "vmware":
		return scene.Advise("on the hypervisor, in the guest's .vmx file: ethernet0.virtualDev = vmxnet3").Risking(risk)
	case "kvm", "qemu":
		return scene.Advise("on the hypervisor, in the guest's definition: model type virtio in place of the emulated one").Risking(risk)
	case "virtualbox":
		return scene.Advise("on the hypervisor: VBoxManage modifyvm GUEST --nic-type1 virtio").Risking(risk)
	}
	return scene.Advise("on the hypervisor: choose its paravirtual adapter for this guest").Risking(risk)
}
