package knob

import (
	"testing"

	"thru/internal/measure"
)

// Kept changes are found in commands that would revert them, as long as they hold.
func TestAgainst(t *testing.T) {
	changed := func(id, iface, before, value string) measure.Changed {
		return measure.Changed{Setting: measure.Setting{Knob: id, Interface: iface, Value: value}, Before: before}
	}
	facts := &measure.Facts{
		Congestion: new("bbr"), Sysctls: map[string]string{"net.ipv4.tcp_mtu_probing": "0"},
		Interfaces: []measure.Interface{{Name: "eth0", MTU: new(1400), Offloads: map[string]bool{"tcp-segmentation-offload": false, "generic-segmentation-offload": false}}},
		Tuned: []measure.Changed{
			changed(TSO, "eth0", "on tx-tcp-segmentation=on", "off"), changed(Congestion, "", "cubic", "bbr"),
			changed(MTU, "eth0", "1500", "1400"), changed(MTUProbing, "", "0", "1"), // the last one was changed since
		},
	}
	for command, want := range map[string]int{
		"ethtool -K eth0 tso on":                              1,
		"ethtool -K eth0 tso on gso on":                       1,
		"ethtool -K eth0 sg on tso on":                        1,
		"ethtool -K eth0 tso off gso off":                     0,
		"ethtool -K eth0 gso on":                              0,
		"ethtool -K eth1 tso on":                              0,
		"sysctl -w net.ipv4.tcp_congestion_control=cubic":     1,
		"sysctl -w net.ipv4.tcp_congestion_control=reno":      0,
		"ip link set dev eth0 mtu 1500":                       1,
		"ip link set dev eth0 mtu 9000":                       0,
		"sysctl -w net.ipv4.tcp_mtu_probing=0":                0,
		"sysctl -w net.ipv4.tcp_rmem='4096 131072 536870912'": 0,
	} {
		if got := len(Against("linux", facts, command)); got != want {
			t.Errorf("%s: takes %d back, want %d", command, got, want)
		}
	}
	if got := Against("linux", nil, "ethtool -K eth0 tso on"); got != nil {
		t.Errorf("a host without facts keeps %+v", got)
	}
}
