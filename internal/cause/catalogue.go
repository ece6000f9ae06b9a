package cause

import (
	"slices"

	"thru/internal/cause/advise"
	"thru/internal/cause/below"
	"thru/internal/cause/control"
	"thru/internal/cause/cpu"
	"thru/internal/cause/diagnose"
	"thru/internal/cause/gate"
	"thru/internal/cause/groups"
	"thru/internal/cause/loss"
	"thru/internal/cause/measurement"
	"thru/internal/cause/mtu"
	"thru/internal/cause/nic"
	"thru/internal/cause/queue"
	"thru/internal/cause/route"
	"thru/internal/cause/window"
)

// theCatalogue is that of thru.
func theCatalogue() *diagnose.Catalogue {
	return &diagnose.Catalogue{Causes: causeRules(), Gates: Gates()}
}

// Causes is every rule, in the order in which findings of the same weight
// are shown.
func Causes() []diagnose.Rule { return causeRules() }

// causeRules are the families: first what says that the measurement itself is
// wrong, then what keeps data from passing at all, then each end and the path.
func causeRules() []diagnose.Rule {
	return slices.Concat(measurement.MeasurementCauses(), mtu.MtuCauses(), cpu.QuotaCauses(), window.WindowCauses(), control.SenderCauses(), cpu.CpuCauses(),
		nic.NicCauses(), loss.LossCauses(), queue.QueueCauses(), nic.LinkCauses(), route.WayCauses(), queue.TimeCauses(), window.OptionCauses(), below.HostCauses())
}

// Gates is every rule, in the order in which gates of the same state are shown.
func Gates() []gate.Rule { return gateRules() }

// gateRules are the families, in the order of a packet's way: what it leaves by,
// the path, what the hosts make of it.
func gateRules() []gate.Rule {
	return slices.Concat(gate.EndGates(), nic.LinkGates(), nic.BondGates(), nic.PcieGates(), nic.DriverGates(), mtu.MtuGates(), route.PathGates(), window.TcpGates(),
		window.BufferGates(), control.CongestionGates(), nic.OffloadGates(), nic.QueueGates(), nic.InterruptGates(), nic.RingGates(),
		cpu.CpuGates(), cpu.PowerGates(), cpu.CgroupGates(), cpu.MemoryGates(), cpu.LoadGates(), cpu.FirewallGates(), measurement.ClockGates(), below.BelowGates())
}

// proposalRules are the families. Causes that no setting cures have none: for them the
// remedy of the finding or of the gate is passed on in words.
func proposalRules() []advise.Rule {
	return slices.Concat(window.BufferProposals(), window.OptionProposals(), mtu.MtuProposals(), nic.OffloadProposals(), nic.QueueProposals(), cpu.CpuProposals(), control.ControlProposals(), groups.TestProposals())
}
