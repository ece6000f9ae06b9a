package cause

import (
	"slices"
	"strings"
	"testing"

	"thru/internal/cause/scene"
	"thru/internal/fault"
	"thru/internal/measure"
)

func TestFilter(t *testing.T) {
	all := Judge(serverPair())
	for _, c := range []struct {
		only, skip []string
		ids        []string
		hint       string
	}{
		{only: []string{"duplex"}, ids: []string{"duplex"}},
		{only: []string{"duplex", "mtu-path"}, skip: []string{"duplex"}, ids: []string{"mtu-path"}},
		{only: []string{"mtu_path"}, hint: "mtu-path"},
		{skip: []string{"timestamp"}, hint: "timestamps"},
		{skip: []string{"\x00" + strings.Repeat("ü", 5000)}, hint: "--list"},
	} {
		got, err := Filter(all, c.only, c.skip)
		if c.hint != "" {
			if fault.Code(err) != fault.Usage || !strings.Contains(fault.Hint(err), c.hint) || len(err.Error()) > 400 {
				t.Errorf("%q, %q: %v, hint %q", c.only, c.skip, err, fault.Hint(err))
			}
			continue
		}
		var ids []string
		for _, g := range got {
			if !slices.Contains(ids, g.ID) {
				ids = append(ids, g.ID)
			}
		}
		if err != nil || !slices.Equal(ids, c.ids) {
			t.Errorf("%q without %q: %q, %v", c.only, c.skip, ids, err)
		}
	}
	if got, err := Filter(all, nil, []string{"duplex"}); err != nil || len(got) != len(all)-2 {
		t.Errorf("without duplex %d of %d, %v", len(got), len(all), err)
	}
}

// TestWorstFirst checks the order: by state, then as in the catalogue.
func TestWorstFirst(t *testing.T) {
	s := serverPair()
	face(s, 0).Up, face(s, 0).InTree, face(s, 0).Duplex = new(false), new(false), new("half")
	var got []string
	for _, g := range Judge(s)[:4] {
		got = append(got, g.Status+" "+g.ID)
	}
	want := []string{"fail link-up", "fail duplex", "warn driver-of-kernel", "not_checked cpu-capacity"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestShared: a machine at both ends is judged once.
func TestShared(t *testing.T) {
	s := serverPair()
	for i := range s.Ends {
		s.Ends[i].Shared = true
	}
	for _, g := range Judge(s) {
		if g.EndPoint == "peer" {
			t.Errorf("judged twice: %s", gateText(g))
		}
	}
}

// TestFaces checks which interfaces are judged.
func TestFaces(t *testing.T) {
	under := realNIC("ens1f0")
	bond := measure.Interface{Name: "bond0", Kind: new("bond"), Up: new(true), Lower: []string{"ens1f0"},
		Bond: &measure.Bond{Members: []measure.BondMember{{Name: "ens1f0"}, {Name: "vanished"}}}}
	bridge := measure.Interface{Name: "br0", Kind: new("bridge"), Up: new(true), Bridge: &measure.Bridge{Ports: []string{"tap1", "ens1f0"}}}
	down := realNIC("ens2")
	down.Carrier = new(false)
	facts := &measure.Facts{Interfaces: []measure.Interface{loopback(), under, bond, bridge, down, veth("tap1", "10.0.0.1/24"),
		{Name: "loop1", Lower: []string{"loop2"}}, {Name: "loop2", Lower: []string{"loop1"}}}}
	for _, c := range []struct {
		route string
		want  []string
	}{
		{"bond0", []string{"bond0", "ens1f0"}},
		{"br0", []string{"br0", "ens1f0"}},
		{"loop1", []string{"loop1", "loop2"}},
		{"absent", nil},
		{"", []string{"ens1f0"}},
	} {
		e := scene.End{Facts: facts}
		if c.route != "" {
			e.Route = &measure.Route{Interface: c.route}
		}
		var got []string
		for _, f := range scene.NewHost(&scene.Scene{}, &e).Faces {
			got = append(got, f.Name)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("route %q: %q, want %q", c.route, got, c.want)
		}
	}
	inside := scene.End{Facts: &measure.Facts{Interfaces: []measure.Interface{loopback(), veth("eth0", "10.0.0.2/24")}}}
	if list := scene.NewHost(&scene.Scene{}, &inside).Faces; len(list) != 1 || list[0].Name != "eth0" || list[0].Firm {
		t.Errorf("in a container: %v", list)
	}
}

// TestEmpty: an empty subject gives no gates.
func TestEmpty(t *testing.T) {
	if got := Judge(scene.Subject{}); got == nil || len(got) != 0 {
		t.Errorf("%v", got)
	}
}
