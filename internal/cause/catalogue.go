package cause

import (
	"cmp"
	"slices"
	"strings"

	"thru/internal/cause/advise"
	"thru/internal/cause/control"
	"thru/internal/cause/cpu"
	"thru/internal/cause/diagnose"
	"thru/internal/cause/gate"
	"thru/internal/cause/hypervisor"
	"thru/internal/cause/loss"
	"thru/internal/cause/measurement"
	"thru/internal/cause/mtu"
	"thru/internal/cause/nic"
	"thru/internal/cause/queue"
	"thru/internal/cause/route"
	"thru/internal/cause/rule"
	"thru/internal/cause/window"
	"thru/internal/unit"
)

// theCatalogue returns the catalogue of thru, which is made once, since each judgement looks things up in it.
var theCatalogue = unit.Once(func() *diagnose.Catalogue {
	return &diagnose.Catalogue{Causes: Causes(), Gates: Gates()}
})

// All returns every cause, in the order in which findings of equal weight are shown: first errors of the
// measurement itself, then what blocks data entirely, then each end and the path.
func All() []rule.Cause {
	return []rule.Cause{
		measurement.Measurement(),
		mtu.JumboMismatch(),
		mtu.MTUBlackHole(),
		mtu.BrokenTSO(),
		mtu.MSSClamp(),
		cpu.CPUQuota(),
		cpu.CPULimit(),
		cpu.CPUSteal(),
		cpu.MemoryPressure(),
		window.WindowScalingOff(),
		window.FixedWindow(),
		window.ReceiveWindow(),
		window.SlowReader(),
		window.SendBuffer(),
		control.AppLimited(),
		control.Paced(),
		cpu.SingleFlow(),
		cpu.TooManyStreams(),
		cpu.SenderCPU(),
		cpu.ReceiverCPU(),
		nic.IRQOneCPU(),
		nic.OffloadsOff(),
		nic.EmulatedNIC(),
		nic.TooFewQueues(),
		nic.RSSNotSpreading(),
		nic.RingOverflow(),
		nic.BacklogOverflow(),
		nic.InterruptModeration(),
		nic.WrongDriver(),
		nic.LROForwarding(),
		loss.Policer(),
		loss.Reordering(),
		loss.Loss(),
		queue.Shaper(),
		nic.LinkRate(),
		nic.LinkNegotiatedLow(),
		nic.Duplex(),
		nic.BadLink(),
		nic.PauseFrames(),
		nic.PCIe(),
		route.LAGOneMember(),
		route.AsymmetricRoute(),
		route.TCPProxy(),
		route.VPNCPU(),
		queue.TokenBucket(),
		queue.SlowConvergence(),
		queue.NoisyNeighbour(),
		window.SACKOff(),
		window.TimestampsOff(),
		cpu.CPUGovernor(),
		nic.NUMARemote(),
		cpu.FirewallCost(),
		hypervisor.Vswitch(),
		hypervisor.NetqueueOff(),
	}
}

// conditions returns the gates without a cause: conditions that invalidate a measurement or are good to know.
func conditions() []gate.Rule {
	return slices.Concat(gate.EndGates(), []gate.Rule{
		nic.LinkUpGate(),
		route.DSCPGate(),
		cpu.IdleStatesGate(),
		cpu.SecurityGate(),
		measurement.ClockSourceGate(),
		measurement.ClockSyncGate(),
		measurement.ClockOffsetGate(),
	})
}

// gateOrder returns the ids of all gates in the order in which a packet passes: the sending interface, the path,
// the hosts' processing.
func gateOrder() []string {
	return strings.Fields(`host-facts
		link-up link-speed duplex link-errors link-load bond virtual-switch tunnel pcie-bandwidth pcie-trained nic-model driver-of-kernel mtu-path
		mtu-agreement rtt-spread udp-reach dscp hops several-ways tcp-proxy window-scaling window-scaling-path sack sack-path timestamps timestamps-path mss
		receive-window send-buffer explicit-window congestion-control qdisc tcp-carry-over offloads lro-forwarding queues queue-spread rss irq-spread
		irq-sharing numa interrupt-moderation rings cpu-capacity governor idle-states steal cpu-quota memory tcp-memory cpu-load backlog security conntrack
		firewall-rules bridge-netfilter clock-source clock-sync clock-offset guest-adapter guest-mtu guest-shaping guest-cpu-limit guest-tools`)
}

// Causes returns the rules of all causes, in the order of All.
func Causes() []diagnose.Rule {
	return unit.Mapped(All(), func(c rule.Cause) diagnose.Rule { return c.Rule })
}

// Gates returns every gate, in the order in which gates of the same state are shown.
func Gates() []gate.Rule {
	list := conditions()
	for _, c := range All() {
		for _, g := range c.Gates {
			g.Cause = c.Cause
			list = append(list, g)
		}
	}
	place := map[string]int{}
	for i, id := range gateOrder() {
		place[id] = i + 1 // an id that is not listed comes first
	}
	slices.SortStableFunc(list, func(a, b gate.Rule) int { return cmp.Compare(place[a.ID], place[b.ID]) })
	return list
}

// proposalRules returns the changes that help against each cause. A cause that no setting fixes has none; its
// finding or gate then passes on the fix in words.
func proposalRules() []advise.Rule {
	var list []advise.Rule
	for _, c := range All() {
		if len(c.Propose) > 0 {
			list = append(list, advise.Rule{Cause: c.Cause, Urgent: c.Urgent, Gates: c.Gates, Propose: c.Propose, Tight: c.Tight, LastResort: c.LastResort})
		}
	}
	return list
}
