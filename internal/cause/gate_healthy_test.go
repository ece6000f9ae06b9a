package cause

import (
	"slices"
	"testing"
	"unicode/utf8"

	"thru/internal/cause/scene"
	"thru/internal/measure"
)

// healthy are subjects that must raise no false alarm. warns lists the justified warnings, not_checked what such a
// host cannot report.
func healthy() map[string]struct {
	subject     scene.Subject
	warns, gaps []string
} {
	local := func(f *measure.Facts) scene.Subject {
		route := &measure.Route{Interface: "lo", MTU: 65536}
		p := goodPath(30_000, 65535)
		p.To = "local"
		return scene.Subject{Ends: []scene.End{{Name: "local", Facts: f, Route: route, Shared: true}, {Name: "local", Facts: f, Route: route, Shared: true}}, Path: p}
	}
	alone := func(f *measure.Facts) scene.Subject {
		return scene.Subject{Ends: []scene.End{{Name: "local", Facts: f}}}
	}
	wan := pair(kvmGuest, "eth0", 8e6, 1500)
	wan.Path.Forward.Hops, wan.Path.Back.Hops = new(9), new(9)
	stated := pair(kvmGuest, "eth0", 200_000, 1500)
	stated.LinkBps = 10e9
	type subject = struct {
		subject     scene.Subject
		warns, gaps []string
	}
	rate := []string{"cpu-capacity", "receive-window", "send-buffer"}
	return map[string]subject{
		"bare metal 25G":       {serverPair(), nil, []string{"cpu-capacity"}},
		"bare metal alone":     {alone(bareMetal()), nil, rate},
		"kvm guests":           {pair(kvmGuest, "eth0", 200_000, 1500), nil, []string{"cpu-capacity"}},
		"kvm guests, 10G":      {stated, nil, []string{"link-speed", "cpu-capacity"}},
		"kvm guests far apart": {wan, nil, rate},
		"ena":                  {pair(ena, "ens5", 150_000, 9001), nil, []string{"link-speed", "pcie-bandwidth", "queue-spread", "rss", "cpu-capacity"}},
		"containers":           {pair(container, "eth0", 50_000, 1500), nil, []string{"firewall-rules", "conntrack", "cpu-capacity"}},
		"laptops":              {pair(laptop, "enp0s31f6", 400_000, 1500), nil, []string{"cpu-capacity", "queue-spread"}},
		"localhost":            {local(laptop()), nil, nil},
		"localhost of a guest": {local(kvmGuest()), nil, nil},
		"freebsd guests": {pair(freeBSD, "vmx0", 200_000, 1500), nil,
			[]string{"memory", "steal", "cpu-load", "cpu-capacity", "receive-window", "send-buffer"}},
	}
}

func TestHealthy(t *testing.T) {
	for name, c := range healthy() {
		t.Run(name, func(t *testing.T) {
			gates := Judge(c.subject)
			if len(gates) < 10 {
				t.Errorf("only %d gates", len(gates))
			}
			var warns, gaps []string
			for _, g := range gates {
				switch g.Status {
				case measure.GateFail:
					t.Error(gateText(g))
				case measure.GateWarn:
					if !slices.Contains(c.warns, g.ID) {
						t.Error(gateText(g))
					}
					warns = append(warns, g.ID)
				case measure.GateNotChecked:
					if !slices.Contains(c.gaps, g.ID) {
						t.Error(gateText(g))
					}
					gaps = append(gaps, g.ID)
				}
				if utf8.RuneCountInString(g.Fact) > 110 || utf8.RuneCountInString(g.Why) > 110 {
					t.Errorf("%d and %d characters: %s", utf8.RuneCountInString(g.Fact), utf8.RuneCountInString(g.Why), gateText(g))
				}
			}
			for _, id := range c.warns {
				if !slices.Contains(warns, id) {
					t.Errorf("%s does not warn", id)
				}
			}
			for _, id := range c.gaps {
				if !slices.Contains(gaps, id) {
					t.Errorf("%s has no gap", id)
				}
			}
			if testing.Verbose() {
				for _, g := range gates {
					t.Log(gateText(g))
				}
			}
		})
	}
}
