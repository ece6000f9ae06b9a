package stat

import (
	"testing"

	"thru/internal/measure"
)

// stacked is a host whose route uses the first of these interfaces.
func stacked(faces ...measure.Interface) *measure.Facts {
	for i := range faces {
		if faces[i].MTU == nil {
			faces[i].MTU = new(1500)
		}
	}
	return &measure.Facts{Interfaces: faces}
}

// TestCeilingOfStackedInterfaces has the checks of methods.md, formula 4: IPv4 with timestamps, and the layers
// between the route's interface and the port.
func TestCeilingOfStackedInterfaces(t *testing.T) {
	type face = measure.Interface
	port := face{Name: "port", SpeedBps: new(int64(10e9))}
	vlan := func(name, lower string) face {
		return face{Name: name, VLAN: new(7), Lower: []string{lower}, SpeedBps: new(int64(10e9))}
	}
	tunnel := func(kind string, overhead int, lower string) face {
		return face{Name: "eth0", MTU: new(1450), SpeedBps: new(int64(10)), Nominal: new(true), Tunnel: &measure.Tunnel{Kind: kind, Overhead: overhead, Lower: lower}}
	}
	for name, tt := range map[string]struct {
		faces        []face
		rate         int64 // stated
		mtu          int
		pct          float64 // of the line
		vlans, bytes int
		from         string
		unknown      bool
	}{
		"a port":                   {[]face{{Name: "eth0", SpeedBps: new(int64(10e9))}}, 0, 1500, 94.148, 0, 0, "interface eth0 at esx2", false},
		"a VLAN":                   {[]face{vlan("eth0", "port"), port}, 0, 1500, 93.904, 1, 0, "interface eth0 at esx2", false},
		"a VLAN, jumbo":            {[]face{vlan("eth0", "port"), port}, 0, 9000, 98.960, 1, 0, "interface eth0 at esx2", false},
		"QinQ":                     {[]face{vlan("eth0", "s"), vlan("s", "port"), port}, 0, 1500, 93.661, 2, 0, "interface eth0 at esx2", false},
		"VXLAN":                    {[]face{tunnel("vxlan", 50, "port"), port}, 0, 1450, 90.897, 0, 50, "interface port at esx2", false},
		"VXLAN on a VLAN":          {[]face{tunnel("vxlan", 50, "v"), vlan("v", "port"), port}, 0, 1450, 90.661, 1, 50, "interface v at esx2", false},
		"VXLAN, rate stated":       {[]face{tunnel("vxlan", 50, "")}, 10e9, 1450, 90.897, 0, 50, "stated", false},
		"WireGuard":                {[]face{tunnel("wireguard", 0, "")}, 10e9, 1420, 90.119, 0, 60, "stated", true},
		"IPsec":                    {[]face{tunnel("xfrm", 0, "port"), port}, 0, 1400, 93.741, 0, 0, "interface port at esx2", true},
		"a bridge on a VLAN":       {[]face{{Name: "eth0", Bridge: &measure.Bridge{}, Lower: []string{"v"}, SpeedBps: new(int64(10e9))}, vlan("v", "port"), port}, 0, 1500, 94.148, 0, 0, "interface eth0 at esx2", false},
		"a circle of broken facts": {[]face{vlan("eth0", "eth0")}, 0, 1500, 100 * 1448.0 / (1538 + 4*mostStacked), mostStacked, 0, "interface eth0 at esx2", false},
	} {
		c := recorded(9.30)
		f := &c.Runs[0].Flows[0]
		f.Sender, f.Receiver.EndPoint = nil, "esx2"
		f.Receiver.Route = &measure.Route{Interface: "eth0", MTU: tt.mtu}
		for i := range f.Receiver.Streams {
			x := &f.Receiver.Streams[i]
			x.TCP, x.TCPStart, x.TCPEnd = &measure.TCPInfo{Timestamps: new(true)}, nil, nil
		}
		Summarise(c, map[string]*measure.Facts{"esx2": stacked(tt.faces...)}, Link{RateBps: tt.rate})
		x := c.Ceiling
		if x == nil {
			t.Errorf("%s: no ceiling: %v", name, c.Missing)
			continue
		}
		near(t, name, x.Bps/10e9*100, tt.pct, 0.0006)
		if x.VLANs != tt.vlans || x.Encap != tt.bytes || x.LinkFrom != tt.from || isMissing(c, "ceiling.encapsulation_bytes") != tt.unknown {
			t.Errorf("%s: %+v, missing %v", name, *x, c.Missing)
		}
	}
}

// TestStatedRateCountsBothEnds: if one end is on no VLAN, the rate may be that end's.
func TestStatedRateCountsBothEnds(t *testing.T) {
	tagged := stacked(measure.Interface{Name: "eth0", VLAN: new(7)})
	plain := stacked(measure.Interface{Name: "eth0"})
	for _, tt := range []struct {
		a, b *measure.Facts
		want int
	}{{tagged, tagged, 1}, {tagged, plain, 0}, {plain, tagged, 0}, {tagged, nil, 1}} {
		c := recorded(0.9)
		Summarise(c, map[string]*measure.Facts{"local": tt.a, "esx2": tt.b}, Link{RateBps: 1e9})
		if c.Ceiling == nil || c.Ceiling.VLANs != tt.want {
			t.Errorf("%+v, want %d tags; missing %v", c.Ceiling, tt.want, c.Missing)
		}
	}
	if got := OnWire(&measure.Ceiling{VLANs: 2, Encap: 50}); got != ", + 8 bytes VLAN, + 50 bytes tunnel" {
		t.Error(got)
	}
}
