package lab

import (
	"slices"
	"strings"
	"testing"
)

func TestChanges(t *testing.T) {
	base := Settings("== parameters\nnet.a = 1\nnet.b = 2\n== ethtool -k d\n\ttso: on\n")
	tests := []struct {
		name string
		now  Settings
		want []string
	}{
		{"equal", base, nil},
		{"a value", Settings(strings.Replace(string(base), "b = 2", "b = 3", 1)), []string{"- parameters: net.b = 2", "+ parameters: net.b = 3"}},
		{"a line is gone", Settings(strings.Replace(string(base), "\ttso: on\n", "", 1)), []string{"- ethtool -k d: tso: on"}},
		{"in another section", Settings(strings.Replace(string(base), "-k d", "-k e", 1)), []string{"- ethtool -k d: tso: on", "+ ethtool -k e: tso: on"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := base.Changes(tt.now); !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
	for _, twice := range []Settings{base + "net.a = 1\n", Settings(strings.Replace(string(base), "\t", "  ", 1))} {
		if got := base.Changes(twice); len(got) == 0 {
			t.Errorf("%q counts as equal to %q", twice, base)
		}
	}
}

// TestSettingsOfAHost: a change shows, and undoing it gives the same text again.
func TestSettingsOfAHost(t *testing.T) {
	t.Parallel()
	Require(t, Program("ethtool"), Program("sysctl"))
	p := NewPair(t, Options{Rate: 1e9})
	before := p.A.Settings()
	for name, change := range map[string][2][]string{
		"a kernel parameter": {{"sysctl", "-q", "-w", "net.ipv4.tcp_rmem=4096 131072 262144"}, {"sysctl", "-q", "-w", strings.TrimSpace(p.A.Must("sysctl", "net.ipv4.tcp_rmem"))}},
		"an offload":         {{"ethtool", "-K", DataDev, "tso", "off"}, {"ethtool", "-K", DataDev, "tso", "on"}},
		"an MTU":             {{"ip", "link", "set", DataDev, "mtu", "1400"}, {"ip", "link", "set", DataDev, "mtu", "1500"}},
		"CPUs of a queue":    {{"sh", "-c", "echo 1 > /sys/class/net/" + DataDev + "/queues/rx-0/rps_cpus"}, {"sh", "-c", "echo 0 > /sys/class/net/" + DataDev + "/queues/rx-0/rps_cpus"}},
		"a route": {{"ip", "route", "replace", "10.77.0.0/24", "dev", DataDev, "src", p.Data.A4.String(), "congctl", "reno"},
			{"ip", "route", "replace", "10.77.0.0/24", "dev", DataDev, "src", p.Data.A4.String(), "congctl", "cubic"}},
	} {
		p.A.Must(change[0][0], change[0][1:]...)
		if len(before.Changes(p.A.Settings())) == 0 {
			t.Errorf("%s is not seen", name)
		}
		p.A.Must(change[1][0], change[1][1:]...)
		if left := before.Changes(p.A.Settings()); len(left) > 0 {
			t.Errorf("%s: undone, and yet %q", name, left)
		}
	}
}
