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
			Seen:        "a guest's adapter has the driver or device id of an emulated one, or the hypervisor reports an emulated model; likely if a CPU is full",
			Distinction: "the same test with a paravirtual adapter", Fix: "change the adapter to vmxnet3 or virtio", Effect: "1.36 Gb/s instead of 2.31 Gb/s (S-02)",
			Source: "gate nic-model; C-26", Brings: []string{"sender-cpu", "receiver-cpu", "single-flow"},
		},
		Gates: []gate.Rule{
			{ID: "nic-model", Words: "e1000 vmxnet3 virtio emulated paravirtual adapter", Title: "Model of the adapter in a virtual machine",
				About:  "whether the hypervisor emulates the adapter (e1000, e1000e, pcnet, rtl8139: 82545EM, 82574L and similar), or it is paravirtual or physical",
				Warns:  "the adapter is emulated",
				Fails:  "the adapter is emulated, and --link-rate is above 1 Gb/s",
				Why:    "each access to an emulated register exits the guest: 1.36 Gb/s against 2.31 Gb/s with vmxnet3, and more CPU",
				Source: "S-02, C-26; measured: e1000 593, virtio 1280 Mb/s under one emulator", Fix: "change the adapter to vmxnet3 or virtio",
				Checklist: []string{"C-26", "S-02"}, Face: gateNICModel},
			{ID: "guest-adapter", Words: "vnic", Title: "Adapter model reported by the hypervisor", About: "the model of the guest's adapter that carries the test",
				Warns:  "the model is emulated (e1000, e1000e, pcnet, rtl8139; vmxnet3 by QEMU)",
				Why:    "each access to an emulated register exits the guest: 1.36 Gb/s against 2.31 Gb/s with vmxnet3, and more CPU",
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
		By(measure.Proof{EndPoint: e.Name, Counter: "emulated adapters reported by the hypervisor", Value: 1, Note: model}).
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
	r := &measure.Fix{EndPoint: hypervisor.HostName(e), Risk: "the guest must be shut down; it sees a new adapter, and may give it another name"}
	if e.Kind() == measure.KindKVM {
		r.Advice = "replace the model " + diagnose.Line(*n.Model) + " in the guest's definition with <model type='virtio'/> (virsh edit " + hypervisor.Domain(e.Guest()) + "; Proxmox: qm set ID --net0 virtio=MAC,bridge=BRIDGE)"
		return r
	}
	r.Advice = "replace " + diagnose.Line(n.Name) + " of " + hypervisor.GuestName(e) + " with a VMXNET 3 adapter (in its .vmx file: ethernetN.virtualDev = \"vmxnet3\"); the guest needs a driver for it"
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
	const risk = "the guest must be shut down; it gets a new MAC address"
	switch h.HypervisorName() {
	case "vmware":
		return scene.Advise("set ethernet0.virtualDev = vmxnet3 in the guest's .vmx file on the hypervisor").Risking(risk)
	case "kvm", "qemu":
		return scene.Advise("set the adapter's model type to virtio in the guest's definition on the hypervisor").Risking(risk)
	case "virtualbox":
		return scene.Advise("run on the hypervisor: VBoxManage modifyvm GUEST --nic-type1 virtio").Risking(risk)
	}
	return scene.Advise("choose the hypervisor's paravirtual adapter for this guest").Risking(risk)
}
