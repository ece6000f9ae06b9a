package nic

import (
	"cmp"
	"fmt"
	"slices"

	"thru/internal/cause/gate"
	"thru/internal/measure"
)

// LinkGates judge the link of an interface: that it is there, and how fast.
func LinkGates() []gate.Rule {
	return []gate.Rule{
		{ID: "link-up", Title: "Link", About: "whether the interface is up and has a carrier",
			Fails: "the interface of the route is down or has no carrier",
			Why:   "without a link nothing is measured", Source: "netdevice(7): IFF_UP, IFF_LOWER_UP",
			Remedy: "set it up, check cable and switch port", Checklist: []string{"C-24"}, Face: linkUp},
		{ID: "link-speed", Title: "Speed of the link",
			About:  "the speed against --link-rate, and against what the adapter and its partner can; a speed that is a name only (virtio, vmxnet3, veth) bounds nothing",
			Warns:  "the link has negotiated less than both ends of it can",
			Fails:  "--link-rate is above the speed of the route's interface",
			Why:    "a link carries no more than it has negotiated: 1 Gb/s gives at most 941 Mb/s of TCP at MTU 1500",
			Source: "IEEE 802.3 (frames of 1538 bytes for 1500); ethtool(8)", Remedy: "cable, optics, autonegotiation at both ends",
			Cause: "link-negotiated-low", Checklist: []string{"C-24", "A-07", "B-20"}, Face: linkSpeed},
		{ID: "duplex", Title: "Duplex", About: "whether the link sends and receives at the same time",
			Fails: "half duplex on an interface of the route", Warns: "half duplex on one that may carry the traffic",
			Why:    "half duplex collides with its own acknowledgements: often less than a tenth of the rate",
			Source: "IEEE 802.3, clause 4", Remedy: "autonegotiation at both ends", Cause: "duplex", Checklist: []string{"C-24"}, Face: duplex},
		{ID: "link-errors", Title: "Errors on the wire",
			About:  "counters of checksum, symbol and uncorrectable errors, the largest of them, against the packets received; outside Linux and ESXi all errors of received packets",
			Warns:  "more than one in a million packets, or more than 100 where packets are not known",
			Why:    "each damaged frame is a loss: at 0.1% and 20 ms CUBIC carries 20 Mb/s",
			Source: "Mathis and others, 1997; measured", Remedy: "clean or replace cable and optics", Cause: "bad-link", Checklist: []string{"C-24"}, Face: linkErrors},
		{ID: "link-load", Title: "Other traffic on the link", About: "what else the interface carried while no test ran",
			Warns:  "more than 5% of its speed, or 50 Mb/s where the speed is a name only",
			Why:    "what others send is missing from the result, and changes from run to run",
			Source: "thru's own bound", Remedy: "stop it, or measure when it is quiet", Cause: "noisy-neighbour", Checklist: []string{"C-33"}, Face: linkLoad},
	}
}

func linkUp(f *gate.Face) *gate.Finding {
	if gate.IsLoopback(f.Interface) || f.Member { // of its members the bond tells
		return nil
	}
	up := command(f, map[string]string{
		"linux": "ip link set dev %s up", "freebsd": "ifconfig %s up", "darwin": "ifconfig %s up",
		"solaris": "ipadm enable-if -t %s", "illumos": "ipadm enable-if -t %s",
		"windows": "Enable-NetAdapter -Name %s", "esxi": "esxcli network nic up -n %s",
	})
	switch {
	case gate.IsFalse(f.Up):
		return gate.FailIf(f.Firm, "%s is down", f.Name).Do(up)
	case gate.IsFalse(f.Carrier):
		return gate.FailIf(f.Firm, "%s is up, but has no carrier", f.Name).Do(gate.Advise("check cable, optics and the switch port"))
	case f.Up == nil:
		return f.Missing("whether "+f.Name+" is up", "up")
	case f.Carrier == nil:
		return gate.Pass("%s is up", f.Name)
	}
	return gate.Pass("%s is up, with carrier", f.Name)
}

// command of this host's system with the interface's name.
func command(f *gate.Face, bySystem map[string]string) gate.Remedy {
	if format, ok := bySystem[f.Host.System]; ok {
		return gate.Commands("", gate.Command(format, f.NIC()))
	}
	return gate.Advise(gate.Command("see the settings of %s", f.NIC()))
}

func linkSpeed(f *gate.Face) *gate.Finding {
	if !f.Device() && f.Speed() == 0 {
		return nil // no wire: nothing to judge, and nothing missing
	}
	want := f.Wanted()
	switch {
	case gate.IsTrue(f.Nominal) && want > 0:
		return gate.NotChecked(fmt.Sprintf("whether %s carries %s", f.Name, gate.Rate(want)), "its speed is a name only, no bound ("+f.DriverName()+")")
	case gate.IsTrue(f.Nominal):
		return gate.Pass("%s has a speed in name only (%s): it bounds nothing", f.Name, f.DriverName())
	case f.Speed() == 0:
		return f.Missing("speed of "+f.Name, "speed_bps")
	}
	if bad := tooSlow(f, want); bad != nil {
		return bad
	}
	if f.MaxBps != nil && f.PeerBps != nil && f.Speed() < min(*f.MaxBps, *f.PeerBps) {
		could := min(*f.MaxBps, *f.PeerBps)
		return gate.Warn("%s has negotiated %s; it and its partner can do %s", f.Name, gate.Rate(f.Speed()), gate.Rate(could)).
			Because("the link carries %.3g%% of what it could", 100*float64(f.Speed())/float64(could)).Do(Renegotiate(f))
	}
	if f.MaxBps != nil && f.Speed() < *f.MaxBps {
		return gate.Pass("%s runs at %s; it could do %s, what its partner can is not known", f.Name, gate.Rate(f.Speed()), gate.Rate(*f.MaxBps))
	}
	return gate.Pass("%s runs at %s", f.Name, gate.Rate(f.Speed()))
}

// Bytes around an IP packet on Ethernet, for a rate that is counted at layer 2
// (stat.Link): its header; and with check sum, preamble and gap.
const (
	layer2Bytes = 14
	layer1Bytes = 38
)

// tooSlow judges the speed against the wanted rate.
func tooSlow(f *gate.Face, want int64) *gate.Finding {
	if want <= 0 {
		return nil
	}
	if want > f.Speed() {
		return gate.FailIf(f.Firm, "%s wanted, %s runs at %s", gate.Rate(want), f.Name, gate.Rate(f.Speed())).
			Because("no setting makes a link carry more than its speed").Do(Renegotiate(f))
	}
	mtu := 1500
	if f.MTU != nil && *f.MTU > 0 {
		mtu = *f.MTU
	}
	wire := float64(want) * float64(mtu+layer1Bytes) / float64(mtu+layer2Bytes)
	if f.Host.Subject.LinkL2 && wire > float64(f.Speed()) {
		return gate.Warn("%s of frames take %s of the wire, %s runs at %s", gate.Rate(want), gate.Rate(wire), f.Name, gate.Rate(f.Speed())).
			Because("preamble, checksum and gap take %d bytes a frame", layer1Bytes-layer2Bytes)
	}
	return nil
}

// Renegotiate makes the link agree on its speed again.
func Renegotiate(f *gate.Face) gate.Remedy {
	return command(f, map[string]string{
		"linux":   "ethtool -s %s autoneg on",
		"freebsd": "ifconfig %s media autoselect",
		"darwin":  "ifconfig %s media autoselect",
		"solaris": "dladm set-linkprop -p adv_autoneg_cap=1 %s", "illumos": "dladm set-linkprop -p adv_autoneg_cap=1 %s",
		"windows": "Set-NetAdapterAdvancedProperty -Name %s -RegistryKeyword '*SpeedDuplex' -RegistryValue 0",
		"esxi":    "esxcli network nic set -a -n %s",
	}).Risking(gate.LinkMayFlap).Saying("check cable and optics, and the settings of the switch port")
}

func duplex(f *gate.Face) *gate.Finding {
	if !f.Wired() {
		return nil
	}
	switch {
	case f.Duplex == nil && f.Speed() == 0:
		return nil // the gate of the speed says why
	case f.Duplex == nil:
		return f.Missing("duplex of "+f.Name, "duplex")
	case *f.Duplex == "half":
		return gate.FailIf(f.Firm, "%s is half duplex", f.Name).Do(Renegotiate(f))
	}
	return gate.Pass("%s is %s duplex", f.Name, *f.Duplex)
}

func linkErrors(f *gate.Face) *gate.Finding {
	if !f.Wired() {
		return nil
	}
	bad, name := f.Counted(gate.WireErrors)
	packets := f.Received()
	switch {
	case f.Uncounted(gate.WireErrors) != "":
		return gate.NotChecked("error counters of "+f.Name, f.Uncounted(gate.WireErrors))
	case packets == 0 && bad > 100:
		return gate.Warn("%d packets arrived with errors at %s (%s) since its driver was loaded", bad, f.Name, name)
	case bad > 10 && packets > 0 && float64(bad) > 1e-6*float64(packets):
		return gate.Warn("%d of %d packets arrived with errors at %s (%s)", bad, packets, f.Name, name)
	case bad > 0:
		return gate.Pass("%d packets arrived with errors at %s since its driver was loaded (%s)", bad, f.Name, name)
	}
	return gate.Pass("no errors on the wire of %s", f.Name)
}

func linkLoad(f *gate.Face) *gate.Finding {
	l := f.Host.Load
	if l == nil || gate.IsLoopback(f.Interface) || f.Below {
		return nil // the gate of the CPU load says that it was not read
	}
	at := slices.IndexFunc(l.Interfaces, func(i measure.InterfaceLoad) bool { return i.Name == f.Name })
	if why := gate.Reason(f.Host.NotChecked, "load.interfaces"); at < 0 && why != gate.NotRead {
		return gate.NotChecked("other traffic of "+f.Name, why)
	}
	if at < 0 {
		return gate.Pass("%s was quiet for %s", f.Name, gate.Span(l.SpanNs))
	}
	busy, way := l.Interfaces[at].RxBps, "in"
	if out := l.Interfaces[at].TxBps; out > busy {
		busy, way = out, "out"
	}
	bound, of := 50e6, "; the speed of the link is not known"
	if f.Speed() > 0 {
		bound, of = 0.05*float64(f.Speed()), ", of "+gate.Rate(f.Speed())
	}
	if busy > bound {
		return gate.Warn("%s carries %s of other traffic %s%s", f.Name, gate.Rate(busy), way, of).Do(LookAtTraffic(f.Host))
	}
	return gate.Pass("%s carries %s of other traffic %s", f.Name, gate.Rate(busy), way)
}

// LookAtTraffic names what shows who uses the network.
func LookAtTraffic(h *gate.Host) gate.Remedy {
	return gate.Advise("stop it, or measure when it is quiet; who it is: `" + cmp.Or(map[string]string{
		"linux": "ss -tunp", "freebsd": "sockstat -c", "darwin": "nettop -m tcp", "windows": "Get-NetTCPConnection -State Established",
		"solaris": "netstat -nu", "illumos": "netstat -nu", "esxi": "esxcli network ip connection list",
	}[h.System], "netstat -n") + "`")
}
