package facts

import (
	"strings"

	"thru/internal/doc"
	"thru/internal/measure"
)

// Brief returns a short table of each host for a terminal: the system, and the interface of its route.
func Brief(d *measure.Document) []doc.Pairs {
	var all []doc.Pairs
	for _, e := range d.EndPoints[:min(len(d.EndPoints), MostEndPoints)] {
		f := e.Facts
		if f == nil {
			continue
		}
		t := doc.Pairs{Name: doc.Clean(e.Name + " " + doc.Bracket(doc.Join(measure.Value(f.Hostname), e.Addr)))}
		rows := []doc.Row{
			{Name: "system", Value: doc.Join(measure.Value(f.Distro), doc.Prefixed("kernel ", measure.Value(f.Kernel)))}, {Name: "machine", Value: doc.Join(Machine(f.Machine), doc.Prefixed("hypervisor ", measure.Value(f.Hypervisor)))},
			{Name: "CPU", Value: doc.Join(measure.Value(f.CPUModel), Processors(f.CPU))}, {Name: "clock rate", Value: Frequency(f.CPU)}, {Name: "memory", Value: ramText(f.RAM)},
			{Name: "control group", Value: Cgroup(f.Cgroup)}, {Name: "TCP", Value: tcpText(f)}, {Name: "firewall", Value: firewallText(f.Firewall)}, {Name: "security", Value: securityText(f.Security)},
			{Name: "clock", Value: clockFactsText(f.Clock)}, {Name: "load", Value: loadText(f.Load)},
		}
		for _, name := range onPath(d, e.Name) {
			if i := f.Interface(name); i != nil {
				rows = append(rows, doc.Row{Name: name, Value: doc.Join(measure.Value(i.Driver), doc.Prefixed("MTU ", doc.Number(i.MTU)), strings.Join(i.Addrs[:min(len(i.Addrs), doc.GapFacts)], ", "), Link(i), slotText(i.PCI), doc.Prefixed("queues ", channelsText(i)), doc.Prefixed("rings ", ringsText(i.Rings)), doc.Prefixed("qdisc ", measure.Value(i.Qdisc)))})
			}
		}
		if len(f.RootAdds) > 0 {
			rows = append(rows, doc.Row{Name: "as root", Value: "thru could also read " + strings.Join(f.RootAdds, ", ")})
		}
		if len(f.Commands) > 0 {
			rows = append(rows, doc.Row{Name: "read by", Value: strings.Join(f.Commands, "; ")})
		}
		for _, r := range rows {
			if r.Value != "" {
				t.Rows = append(t.Rows, doc.Row{Name: doc.Clean(r.Name), Value: doc.CleanUpTo(r.Value, briefMost)})
			}
		}
		all = append(all, t)
	}
	return all
}

// briefMost limits a row of a brief table, in characters: the commands that read an ESXi host have some
// thousand.
const briefMost = 4096

// tcpText returns the limits of a window on Linux, and the default congestion control.
func tcpText(f *measure.Facts) string {
	var all []string
	for _, name := range []string{"tcp_rmem", "tcp_wmem"} {
		if v := strings.Fields(f.Sysctls["net.ipv4."+name]); len(v) == 3 {
			all = append(all, name+" "+strings.Join(v, " "))
		}
	}
	return doc.Join(measure.Value(f.Congestion), strings.Join(all, ", "))
}
