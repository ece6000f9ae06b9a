package diagnose

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"thru/internal/measure"
)

// What a host does to its guest is not all seen inside: the guest's kernel counts
// time that the host took as its own work, and no counter of it has packets that
// the host's switch dropped or held. What this looks like is likely at most, as
// long as nobody asked the host.

// What a host can do that looks like a cause from inside its guest (Rule.Unseen).
const (
	hostTime    = "takes its CPU time"
	hostPackets = "drops or holds its packets"
)

// unlessHost lowers what is certain by what the ends saw, where the host of one of
// them could be the cause instead.
func (f *flow) unlessHost(r Rule, o *outcome) *outcome {
	if o == nil || o.state != holds || o.confidence != measure.Certain {
		return o
	}
	next := f.askHosts(r, o)
	if next == "" {
		return o
	}
	x := *o
	x.confidence, x.next = measure.Likely, next
	if o.next != "" {
		x.next += "; " + o.next
	}
	return &x
}

// askHosts names what would tell an outcome from what the hosts of the ends can do;
// "" where they do not.
func (f *flow) askHosts(r Rule, o *outcome) string {
	if r.Unseen == "" {
		return ""
	}
	if e := f.crowdedEnd(); e != nil {
		return "the same while " + e.name + " has no other work"
	}
	var unasked []string
	next := ""
	for _, e := range f.ends() {
		tells, ask := e.hostMay(r.Unseen, o)
		next = cmp.Or(next, tells)
		if ask {
			unasked = append(unasked, e.name)
		}
	}
	if len(unasked) > 0 {
		return fmt.Sprintf("--hypervisor URL tells whether the host of %s %s, which a guest does not see", strings.Join(slices.Compact(unasked), " or "), r.Unseen)
	}
	return next
}

// hostMay tells whether the end's host can do that to the outcome's place: tells is
// what would tell, ask that the host is to be asked.
func (e *end) hostMay(do string, o *outcome) (tells string, ask bool) {
	onPath := o.where.Place == "" || o.where.Place == measure.AtPath
	counted := o.where.Below != "" // by the host itself
	switch {
	case do == hostTime && !onPath && o.where.EndPoint != e.name, do == hostPackets && (!onPath || !e.isGuest() || e.flow.staysInGuest()):
		return "", false
	case max(e.takenBelow(), e.stolenOf(do)) > stealLikely:
		return "the same while the host of " + e.name + " leaves it its CPUs", false
	case do == hostTime:
		return "", !counted && e.hidesSteal() && !e.cpus().readyKnown
	case e.guest() == nil:
		return "", true
	}
	p := e.port()
	if p.known || p.shares {
		return "", false
	}
	return "what the host of " + e.name + " drops at its port: " + p.why, false
}

// stolenOf is the steal that a guest sees itself: it is weighed against its full
// CPUs alone, since steal with time to spare delays no packet for long.
func (e *end) stolenOf(do string) float64 {
	if do != hostTime {
		return 0
	}
	return e.ownSteal().mean
}

// isGuest tells whether the end is a virtual machine.
func (e *end) isGuest() bool {
	return e.guest() != nil || e.facts != nil && e.facts.Hypervisor != nil && *e.facts.Hypervisor != "none"
}

// staysInGuest tells that no host lies between the ends: both are in one kernel.
func (f *flow) staysInGuest() bool { return f.onSameCPUs() || f.relation() == measure.SameMachine }

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

// isToldInside tells whether the first finding of the cell is all that can be told from
// inside its guests: no experiment makes it surer.
func (f *flow) isToldInside() bool {
	if len(f.cell.Findings) == 0 {
		return false
	}
	r, ok := ruleOf(f.cell.Findings[0].Cause)
	if !ok {
		return false
	}
	o := r.inside(f)
	return o != nil && o.state == holds && o.confidence == measure.Certain
}
