package cause

import (
	"slices"
	"strings"
	"testing"

	"thru/internal/cause/scene"
	"thru/internal/measure"
)

// unlike is two ends on one wire, one of them with jumbo frames.
func unlike(passes int) scene.Subject {
	s := serverPair()
	smallLink(&s)
	s.Path.Back.MTU = &measure.PathMTU{Bytes: 1500, Claimed: 1500, Local: true, Probes: 4}
	s.Path.Handshake.SYNACKSent, s.Path.Handshake.SYNACKSeen = syn(1460), syn(1460)
	smaller(&s.Path.Forward, passes, nil)
	return s
}

// TestUnlikeEnds: TCP, which the MSS keeps below the smaller MTU, is not reported as stalled, and both gates of
// the MTU have the same advice.
func TestUnlikeEnds(t *testing.T) {
	for _, passes := range []int{1500, 1504} {
		gates := Judge(unlike(passes))
		path, _ := of(gates, "mtu-path")
		agreement, _ := of(gates, "mtu-agreement")
		if path.Status != warn_ || agreement.Status != warn_ || strings.Contains(path.Why+agreement.Why, "TCP stalls") {
			t.Errorf("%d pass:\n%s\n%s", passes, gateText(path), gateText(agreement))
		}
		if path.Cause != agreement.Cause || path.FixAt != "local" || agreement.FixAt != "local" || !slices.Equal(path.Fix, agreement.Fix) {
			t.Errorf("%d pass: remedies differ:\n%s\n%s", passes, gateText(path), gateText(agreement))
		}
		if strings.Contains(path.Advice, "ICMP") {
			t.Errorf("no router lies between that could say so: %s", gateText(path))
		}
	}
}
