package report

import (
	"fmt"
	"strings"
	"testing"

	"thru/internal/measure"
	"thru/internal/report/result"
)

// TestRouteText: a route names each of its next hops, and how one is selected.
func TestRouteText(t *testing.T) {
	hops := []measure.NextHop{{Interface: "eth0", Gateway: "10.0.0.1"}, {Interface: "eth1", Gateway: "10.0.1.1"}, {Interface: "eth2"}}
	r := measure.Route{Interface: "eth0", Gateway: "10.0.0.1", MTU: 1500, NextHops: hops, Hash: measure.HashLayer3}
	many := r
	many.Hash = measure.HashLayer4
	for i := range result.MaxNamed {
		many.NextHops = append(many.NextHops, measure.NextHop{Interface: fmt.Sprint("x", i)})
	}
	for _, c := range []struct {
		route measure.Route
		want  string
	}{
		{measure.Route{Interface: "eth0", Gateway: "10.0.0.1"}, "eth0 via 10.0.0.1"},
		{r, "10.0.0.1 by eth0, 10.0.1.1 by eth1 and eth2, chosen by addresses alone (layer3) (MTU 1500)"},
		{many, "x6 and 3 more next hops, chosen by addresses and ports (layer3+4) (MTU 1500)"},
	} {
		if got := routeText(measure.DirectionFacts{Route: &c.route}); !strings.HasSuffix(got, c.want) {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// TestAddressText: behind NAT, the address of SeenAs is the own one of the end that dialled.
func TestAddressText(t *testing.T) {
	p := &measure.Path{From: "near", To: "far", FromAddr: "192.0.2.1", ToAddr: "198.51.100.7"}
	if got, want := addressText(p), "192.0.2.1 -> 198.51.100.7"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	p.SeenAs = "10.0.0.5"
	if got, want := addressText(p), "192.0.2.1 -> 198.51.100.7; translated by NAT: the own address of near is 10.0.0.5"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
