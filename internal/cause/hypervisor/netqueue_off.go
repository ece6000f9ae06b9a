package hypervisor

import (
	"fmt"
	"slices"
	"strings"

	"thru/internal/cause/diagnose"
	"thru/internal/cause/knob"
	"thru/internal/cause/rule"
	"thru/internal/measure"
	"thru/internal/stat"
	"thru/internal/unit"
)

// NetqueueOff is the cause `netqueue-off`.
func NetqueueOff() rule.Cause {
	return rule.Cause{
		Rule: diagnose.Rule{
			Cause: "netqueue-off", TCP: true, UDP: true, Title: "NetQueue of the hypervisor is off", Judge: func(f *diagnose.Flow) *diagnose.Outcome { return f.Either(JudgeNetqueueOff) },
			Seen:        "ESXi's kernel option netNetqueueEnabled is FALSE; likely if all packets of the uplink arrive in queue 0, or the rate falls with more guests; possible if they only all arrive in queue 0 of several",
			Distinction: "more guests with their own queues carry more", Fix: "set netNetqueueEnabled TRUE, and reboot", Effect: "5 to 6 of 9.5 Gb/s (A-02)",
			Source: "checklist A-02, C-27",
		},
	}
}

// JudgeNetqueueOff joins the facts of an ESXi end with those of a guest's host.
func JudgeNetqueueOff(e *diagnose.End) *diagnose.Outcome {
	own := netQueueSeen(e)
	if e.Guest() == nil || !e.OnESXi() {
		return own
	}
	below := netQueueOfHost(e)
	if own != nil && own.State == diagnose.Unknown { // the guest cannot know
		return below
	}
	return Seconded(own, below)
}

func netQueueSeen(e *diagnose.End) *diagnose.Outcome {
	if !e.Known {
		return e.Lacks("facts of the host")
	}
	if e.System == "esxi" {
		if v, reported := Setting(e.Facts, "netNetqueueEnabled"); reported && IsOff(v) {
			return diagnose.Possible("NetQueue of the %s is off", e.Place).At(e.Where()).
				By(measure.Proof{EndPoint: e.Name, Counter: "kernel option netNetqueueEnabled", Value: 0, Note: "its default is TRUE"}).
				AddFix(e.Machine().Fix(e.Adapter().Set(knob.Channels, "combined 1")))
		}
		if !changesOptions(e.Facts) {
			return e.Lacks("settings_changed")
		}
		return diagnose.No("netNetqueueEnabled of the %s has its default", e.Place)
	}
	if e.HypervisorName() == "vmware" {
		return diagnose.Missing("ESXi's kernel option netNetqueueEnabled", fmt.Sprintf("the %s is a guest; `--hypervisor URL` reads its host", e.Place))
	}
	return nil // only ESXi has it
}

// changesOptions reports whether facts include changed options: an option that is not among them then has its
// default. Driver parameters are there even if the options are not.
func changesOptions(f *measure.Facts) bool {
	return f != nil && !slices.ContainsFunc(f.NotChecked, func(m measure.NotChecked) bool { return m.Fact == "settings_changed" })
}

// netQueueOfHost judges the option of the guest's host, and which queue of the uplink received its packets.
func netQueueOfHost(e *diagnose.End) *diagnose.Outcome {
	if StaysInside(e.Flow) {
		return diagnose.No("the data does not leave %s", HostName(e))
	}
	var facts *measure.Facts
	if h := HypervisorHost(e); h != nil {
		facts = h.Facts
	}
	value, reported := Setting(facts, "netNetqueueEnabled")
	zero, queues, at := queueZero(e)
	alone := queues > 1 && zero > 100*diagnose.OneShare
	switch {
	case reported && IsOff(value):
		o := diagnose.Possible("NetQueue of %s is off", HostName(e)).By(measure.Proof{EndPoint: e.Name, Counter: "kernel option netNetqueueEnabled of " + HostName(e), Note: "its default is TRUE"})
		if alone || queues == 1 {
			o.By(zeroProof(e, at, zero))
		}
		return Symptom(o, !e.Sends() && e.Flow.IsAll() == nil && (alone || fallsWithMore(e.Flow))).At(AtHost(e, HostName(e))).AddFix(queuesOn(e))
	case alone && !e.Sends():
		o := diagnose.Possible("all packets that %s receives arrive in queue 0 of %d", HostName(e), queues).By(zeroProof(e, at, zero))
		if e.Flow.IsAll() != nil {
			o.MarkNotBinding()
		}
		return o.At(AtHost(e, HostName(e))).Then("the same test with more guests: their own queues carry more").AddFix(queuesOn(e))
	case reported || changesOptions(facts):
		return diagnose.No("netNetqueueEnabled of %s has its default", HostName(e))
	case queues > 1:
		return diagnose.No("queue 0 of %s takes %s of its packets", HostName(e), unit.Percent(zero))
	}
	return diagnose.Missing("ESXi's kernel option netNetqueueEnabled", HostName(e)+" did not report it")
}

// StaysInside reports whether the flow stays on the host: no uplink carries it.
func StaysInside(f *diagnose.Flow) bool {
	r := f.Relation()
	return r == measure.SameHost || r == measure.SameMachine || f.OnOneMachine()
}

// queueZero returns the share of queue 0 in what the busiest uplink received, in percent, and how many queues it
// has.
func queueZero(e *diagnose.End) (pct float64, queues int, at diagnose.Gauge) {
	sums := map[string]float64{}
	count := map[string]int{}
	var zero = map[string]diagnose.Gauge{}
	for _, x := range HostCounter(e, measure.CounterQueueRx).All {
		nic, queue, ok := strings.Cut(x.Instance, ":")
		if !ok || !isUplink(e, nic) {
			continue
		}
		sums[nic] += x.Mean
		count[nic]++
		if queue == queueZeroCause {
			zero[nic] = x
		}
	}
	busiest := ""
	for nic, n := range sums {
		if n > sums[busiest] || n == sums[busiest] && nic < busiest {
			busiest = nic
		}
	}
	if sums[busiest] < diagnose.FewPackets {
		return 0, 0, at
	}
	return stat.Pct(zero[busiest].Mean, sums[busiest]), count[busiest], zero[busiest]
}

// isUplink reports whether a NIC of the host may carry the guest's traffic.
func isUplink(e *diagnose.End, nic string) bool {
	all := Uplinks(e)
	return len(all) == 0 || slices.Contains(all, nic)
}

// queueZeroCause is the name of the first queue.
const queueZeroCause = "0"

func zeroProof(e *diagnose.End, at diagnose.Gauge, zero float64) measure.Proof {
	return diagnose.Above(GaugeEvidence(at, e.Name, zero, "pct"), 100*diagnose.OneShare)
}

// fallsWithMore reports whether a plan's aggregate falls as end points are added.
func fallsWithMore(f *diagnose.Flow) bool {
	return slices.ContainsFunc(diagnose.Sweeps(f.Doc), func(s diagnose.Sweep) bool {
		last := s.Groups[len(s.Groups)-1].Aggregate
		most := s.Groups[diagnose.BestOf(s)].Aggregate
		return s.Axis == "end_points" && last.Value < most.Value*(1-diagnose.FallBar/100.0) && last.High < most.Low
	})
}

// queuesOn switches NetQueue on.
func queuesOn(e *diagnose.End) *measure.Fix {
	return &measure.Fix{EndPoint: HostName(e), Platform: "esxi", Commands: []string{"esxcli system settings kernel set -s netNetqueueEnabled -v TRUE"},
		Advice: "also set as many receive queues as the driver has", Risk: "the host must reboot"}
}
