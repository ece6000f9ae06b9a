package diagnose

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"thru/internal/measure"
)

// Effects of a host that look like a cause from inside its guest (Rule.Unseen).
const (
	HostTime    = "takes CPU time from it"
	HostPackets = "drops or delays its packets"
)

// unlessHost lowers the certainty of what the ends saw if the host of one of them could be the cause instead.
func (f *Flow) unlessHost(r Rule, o *Outcome) *Outcome {
	if o == nil || o.State != Holds || o.Confidence != measure.Certain {
		return o
	}
	next := f.askHosts(r, o)
	if next == "" {
		return o
	}
	x := *o
	x.Confidence, x.Next = measure.Likely, next
	if o.Next != "" {
		x.Next += "; " + o.Next
	}
	return &x
}

// askHosts names what would distinguish an outcome from effects of the ends' hosts; "" if they have none.
func (f *Flow) askHosts(r Rule, o *Outcome) string {
	if r.Unseen == "" {
		return ""
	}
	if e := f.CrowdedEnd(); e != nil {
		return "the same test while " + e.Name + " has no other work"
	}
	var unasked []string
	next := ""
	for _, e := range f.Ends() {
		tells, ask := e.hostMay(r.Unseen, o)
		next = cmp.Or(next, tells)
		if ask {
			unasked = append(unasked, e.Name)
		}
	}
	if len(unasked) > 0 {
		return fmt.Sprintf("check with the hypervisor (--hypervisor URL) whether the host of %s %s: a guest cannot see that", strings.Join(slices.Compact(unasked), " or "), r.Unseen)
	}
	return next
}

// hostMay reports whether the end's host can have that effect at the outcome's place: tells is the fact that would
// decide, ask that the host must be queried.
func (e *End) hostMay(do string, o *Outcome) (tells string, ask bool) {
	onPath := o.Where.Place == "" || o.Where.Place == measure.AtPath
	counted := o.Where.Below != "" // counted by the host itself
	switch {
	case do == HostTime && !onPath && o.Where.EndPoint != e.Name, do == HostPackets && (!onPath || !e.isGuest() || e.Flow.staysInGuest()):
		return "", false
	case max(e.stolenByHost(), e.stolenOf(do)) > StealLikely:
		return "the same test while the host of " + e.Name + " takes no CPU time from it", false
	case do == HostTime:
		return "", !counted && e.HidesSteal() && !e.CPUs().ReadyKnown
	case e.Guest() == nil:
		return "", true
	}
	p := e.Port()
	if p.Known || p.Shares {
		return "", false
	}
	return "drops at the port of " + e.Name + " on its host: " + p.Why, false
}

// stolenOf returns the steal time that the guest itself sees. It counts only on its full CPUs: steal with idle
// time left delays no packet for long.
func (e *End) stolenOf(do string) float64 {
	if do != HostTime {
		return 0
	}
	return e.OwnSteal().Mean
}

// isGuest reports whether the end is a virtual machine.
func (e *End) isGuest() bool {
	is, _ := e.Host.Guest()
	return is || e.Guest() != nil
}

// staysInGuest reports whether no hypervisor is between the ends: both are in one kernel.
func (f *Flow) staysInGuest() bool { return f.OnSameCPUs() || f.Relation() == measure.SameMachine }

// OnESXi reports whether an ESXi hypervisor was queried.
func (e *End) OnESXi() bool { return e.Kind() == measure.KindVSphere || e.Kind() == measure.KindESXi }

// HidesSteal reports whether a guest cannot see that its host takes its CPUs away. Only Linux under KVM or Xen can
// (steal of /proc/stat): VMware and Hyper-V count it as the guest's own time, and no other system reads it.
func (e *End) HidesSteal() bool {
	if !e.isGuest() || e.OnESXi() {
		return e.isGuest()
	}
	if !e.Known || !e.IsLinux() {
		return true
	}
	sees := []string{"kvm", "firecracker", "cloud-hypervisor", "xen"}
	return e.Kind() == "" && !slices.Contains(sees, e.HypervisorName())
}

// isDecidedInside reports whether the first finding of the cell is as certain as its guests can make it: no
// experiment makes it more certain.
func (f *Flow) isDecidedInside() bool {
	if len(f.Cell.Findings) == 0 {
		return false
	}
	r, ok := RuleOf(f.Cat, f.Cell.Findings[0].Cause)
	if !ok {
		return false
	}
	o := r.inside(f)
	return o != nil && o.State == Holds && o.Confidence == measure.Certain
}
