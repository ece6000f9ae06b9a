package cause

import (
	"strings"
	"testing"

	"thru/internal/cause/diagnose"
	"thru/internal/cause/mtu"
	"thru/internal/cause/scene"
	"thru/internal/measure"
)

func TestRaiseWindow(t *testing.T) {
	for _, c := range []struct {
		name     string
		edits    []hostsEdit
		rtt      float64
		commands string
		advice   string
	}{
		{"by the link", []hostsEdit{linkShare(40)}, 20e6, "sysctl -w net.ipv4.tcp_rmem='4096 131072 78756720", "10.5 Gb/s at a round trip of 20.0 ms needs a window of 25 MiB"},
		{"by the goodput", nil, 20e6, "sysctl -w net.ipv4.tcp_rmem='4096 131072 600", "twice the goodput at a round trip of 20.0 ms needs a window of 19.1 MiB"},
		{"for each stream", []hostsEdit{inStreams(4)}, 20e6, "sysctl -w net.ipv4.tcp_rmem='4096 131072 15", "4.77 MiB for each of 4 streams"},
		{"without a round trip", nil, 0, "", "three times the bandwidth-delay product"},
		{"with one of years", nil, 1e18, "", "three times the bandwidth-delay product"},
		{"without a goodput", []hostsEdit{func(h *hosts) { h.cell.Runs[0].Goodput, h.cell.Goodput = nil, nil }}, 20e6, "", "three times the bandwidth-delay product"},
		{"at a rate beyond all", []hostsEdit{func(h *hosts) { h.cell.Runs[0].Goodput = new(1e308) }}, 20e6, "sysctl -w net.ipv4.tcp_rmem='4096 131072 1610612736'", "512 MiB"},
		{"beyond what thru sets", []hostsEdit{linkShare(40)}, 500e6, "sysctl -w net.ipv4.tcp_rmem='4096 131072 1610612736'",
			"10.5 Gb/s at a round trip of 500 ms needs a window of 626 MiB; thru sets at most 512 MiB for a connection: use 2 times as many streams"},
	} {
		h := twoHosts(c.edits...)
		f := diagnose.NewFlow(theCatalogue(), h.doc, h.cell)
		r := f.RaiseWindow(f.Receiver, c.rtt)
		if lines := strings.Join(r.Commands, "\n"); !strings.HasPrefix(lines, c.commands) || c.commands == "" && lines != "" || !strings.Contains(r.Advice, c.advice) || r.EndPoint != "b" {
			t.Errorf("%s: %+v", c.name, r)
		}
	}
}

func TestFixesOfTCP(t *testing.T) {
	h := twoHosts(func(h *hosts) { h.doc.EndPoints[1].Facts.OS = new("freebsd"); h.doc.EndPoints[0].Facts = nil })
	f := diagnose.NewFlow(theCatalogue(), h.doc, h.cell)
	for name, c := range map[string]struct {
		fix                  *measure.Fix
		at, platform, starts string
	}{
		"an option at the receiver":      {f.SwitchOn(scene.SackSetting(), f.Receiver.Where()), "b", "freebsd", "sysctl net.inet.tcp.sack.enable=1"},
		"an option of an unknown host":   {f.SwitchOn(scene.SackSetting(), f.Sender.Where()), "a", "linux", "sysctl -w net.ipv4.tcp_sack=1"},
		"an option taken out on the way": {f.SwitchOn(scene.SackSetting(), measure.Where{Place: measure.AtPath}), "", "", ""},
		"segmentation offload":           {mtu.OffloadOff(f), "a", "linux", "ethtool -K eth0 tso off gso off"},
		"sizes":                          {mtu.ProbeSizes(f), "a", "linux", "sysctl -w net.ipv4.tcp_mtu_probing=1"},
		"a congestion control":           {f.UseControl("cubic"), "a", "linux", "sysctl -w net.ipv4.tcp_congestion_control=cubic"},
	} {
		if r := c.fix; r.EndPoint != c.at || r.Platform != c.platform || strings.Join(r.Commands, "\n") != c.starts || c.starts == "" && r.Advice == "" {
			t.Errorf("%s: %+v", name, c.fix)
		}
	}
}
