package diagnose

import (
	"slices"

	"thru/internal/measure"
)

// isGuest tells whether the end is a virtual machine.
func (e *end) isGuest() bool {
	return e.guest() != nil || e.facts != nil && e.facts.Hypervisor != nil && *e.facts.Hypervisor != "none"
}

// onESXi tells that a hypervisor was asked, which is ESXi.
func (e *end) onESXi() bool { return e.kind() == measure.KindVSphere || e.kind() == measure.KindESXi }

// hidesSteal tells of a guest that cannot see by itself that its host takes its
// CPUs away. Only Linux under KVM or Xen does (steal of /proc/stat): VMware and
// Hyper-V count it as the guest's own time, and no other system asks.
func (e *end) hidesSteal() bool {
	if !e.isGuest() || e.onESXi() {
		return e.isGuest()
	}
	if e.facts == nil || e.facts.OS != nil && *e.facts.OS != "linux" {
		return true
	}
	sees := []string{"kvm", "firecracker", "cloud-hypervisor", "xen"}
	return e.kind() == "" && !slices.Contains(sees, *e.facts.Hypervisor)
}
