package gate

import ()

// ChangeModel is done on the hypervisor, not in the guest.
func (h *Host) ChangeModel() Remedy {
	const risk = "the guest is shut down for it, and gets a new MAC address"
	switch h.HypervisorName() {
	case "vmware":
		return Advise("on the hypervisor, in the guest's .vmx file: ethernet0.virtualDev = vmxnet3").Risking(risk)
	case "kvm", "qemu":
		return Advise("on the hypervisor, in the guest's definition: model type virtio in place of the emulated one").Risking(risk)
	case "virtualbox":
		return Advise("on the hypervisor: VBoxManage modifyvm GUEST --nic-type1 virtio").Risking(risk)
	}
	return Advise("on the hypervisor: choose its paravirtual adapter for this guest").Risking(risk)
}
