package diagnose

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"thru/internal/measure"
)

// What a host can do that looks like a cause from inside its guest (Rule.Unseen).
const (
	HostTime    = "takes its CPU time"
	HostPackets = "drops or holds its packets"
)

// unlessHost lowers what is certain by what the ends saw, where the host of one of
// them could be the cause instead.
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

// askHosts names what would tell an outcome from what the hosts of the ends can do;
// "" where they do not.
func (f *Flow) askHosts(r Rule, o *Outcome) string {
	if r.Unseen == "" {
		return ""
	}
	if e := f.CrowdedEnd(); e != nil {
		return "the same while " + e.Name + " has no other work"
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
		return fmt.Sprintf("ask the hypervisor (--hypervisor URL) whether the host of %s %s, which a guest does not see", strings.Join(slices.Compact(unasked), " or "), r.Unseen)
	}
	return next
}

// hostMay tells whether the end's host can do that to the outcome's place: tells is
// what would tell, ask that the host is to be asked.
func (e *End) hostMay(do string, o *Outcome) (tells string, ask bool) {
	onPath := o.Where.Place == "" || o.Where.Place == measure.AtPath
	counted := o.Where.Below != "" // by the host itself
	switch {
	case do == HostTime && !onPath && o.Where.EndPoint != e.Name, do == HostPackets && (!onPath || !e.isGuest() || e.Flow.staysInGuest()):
		return "", false
	case max(e.stolenByHost(), e.stolenOf(do)) > StealLikely:
		return "the same while the host of " + e.Name + " leaves it its CPUs", false
	case do == HostTime:
		return "", !counted && e.HidesSteal() && !e.CPUs().ReadyKnown
	case e.Guest() == nil:
		return "", true
	}
	p := e.Port()
	if p.Known || p.Shares {
		return "", false
	}
	return "what the host of " + e.Name + " drops at its port: " + p.Why, false
}

// stolenOf is the steal that a guest sees itself: it is weighed against its full
// CPUs alone, since steal with time to spare delays no packet for long.
func (e *End) stolenOf(do string) float64 {
	if do != HostTime {
		return 0
	}
	return e.OwnSteal().Mean
}

// isGuest tells whether the end is a virtual machine.
func (e *End) isGuest() bool {
	is, _ := e.Host.Guest()
	return is || e.Guest() != nil
}

// staysInGuest tells that no host lies between the ends: both are in one kernel.
func (f *Flow) staysInGuest() bool { return f.OnSameCPUs() || f.Relation() == measure.SameMachine }

// OnESXi tells that a hypervisor was asked, which is ESXi.
func (e *End) OnESXi() bool { return e.Kind() == measure.KindVSphere || e.Kind() == measure.KindESXi }

// HidesSteal tells of a guest that cannot see by itself that its host takes its
// CPUs away. Only Linux under KVM or Xen does (steal of /proc/stat): VMware and
// Hyper-V count it as the guest's own time, and no other system asks.
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

// isDecidedInside tells whether the first finding of the cell is all that can be told from
// inside its guests: no experiment makes it surer.
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
