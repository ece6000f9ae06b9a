package worker

import (
	"strings"
	"testing"
)

// An IP version without an address at the far end is not reported as a firewall.
func TestUnreachableFamily(t *testing.T) {
	for _, c := range []struct {
		family  int
		targets []string
		want    string
	}{
		{6, []string{"10.0.0.1:5202"}, "none of the end point's data addresses is IPv6"},
		{4, []string{"[fd00::1]:5202"}, "none of the end point's data addresses is IPv4"},
		{6, []string{"10.0.0.1:5202", "[fd00::1]:5202"}, "refused"},
		{0, []string{"10.0.0.1:5202"}, "refused"},
		{6, []string{"web1:5202"}, "refused"},
	} {
		var o openCommand
		o.Targets, o.Spec.Family = c.targets, c.family
		if err := unreachable(o, []string{"refused"}); !strings.Contains(err.Error(), c.want) {
			t.Errorf("IPv%d of %v: %v", c.family, c.targets, err)
		}
	}
}
