package report

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"

	"thru/internal/measure"
)

// placedTest is a test of a minute in each direction between two guests on two hosts; the first host makes
// its guest wait for CPUs and drops packets.
func placedTest() *measure.Document {
	d := newDocument("test", "peer", "-t", "60", "--hypervisor", "vsphere://ro@vc.example")
	for i, direction := range [][2]string{{"local", "peer"}, {"peer", "local"}} {
		c := newCellFor(direction[0], direction[1], 4, 7.2e9)
		c.Group = i
		from := began().Add(time.Duration(70*i) * time.Second)
		for k := range c.Runs {
			c.Runs[k].StartedAt, c.Runs[k].MeasuredFrom = from, &from
			c.Runs[k].Flows[0].Receiver.MeasuredNs = int64(time.Minute)
		}
		d.Cells = append(d.Cells, c)
	}
	where := func(guest, name, host string) *measure.Placement {
		return &measure.Placement{Source: "vsphere://ro@vc.example", Guest: guest, GuestName: name, Host: host, HostName: host + ".example", Cluster: "prod", Site: "fra", By: []string{"uuid", "mac", "address"},
			NIC: "Network adapter 1", Network: "prod-100", VLAN: "100", Switch: "dvs-prod", PortGroup: "dvpg-1", SwitchID: "dvs-1"}
	}
	d.EndPoints[0].Placement, d.EndPoints[1].Placement = where("vm-1", "web1", "esx1"), where("vm-2", "old", "esx2")
	d.EndPoints = append(d.EndPoints, measure.EndPoint{Name: "third", NoPlace: "third fits web1 (vc1) and web1 (vc2) alike (by uuid)"})
	d.Relations = []measure.Relation{{From: "local", To: "peer", Kind: measure.SameVLAN, Why: "esx1.example and esx2.example, port group prod-100 (VLAN 100)"}}
	v := clusterDocument().Inventories[0]
	v.Guests, v.NotChecked = v.Guests[:2], []measure.NotChecked{{Fact: "counters of vsphere://ro@vc.example", Why: "the last sample did not come"}}
	counted := func(of, instance, counter string, value float64) {
		s := measure.Series{Of: of, Instance: instance, Counter: counter, Native: "x", EveryNs: int64(20 * time.Second)}
		for i := range 7 {
			s.Samples = append(s.Samples, measure.Reading{EndedAt: began().Add(time.Duration(20*i) * time.Second), Value: value * wave(i, 0.4)})
		}
		v.Series = append(v.Series, s)
	}
	counted("vm-1", "", measure.CounterReady, 9)
	counted("vm-1", "0", measure.CounterReady, 90) // of one CPU: the whole counts
	counted("vm-1", "", measure.CounterCoStop, 1)
	counted("vm-1", "4000", measure.CounterRxDropped, 120)
	counted("vm-1", "", measure.CounterBalloon, 512<<20)
	counted("vm-2", "", measure.CounterReady, 0.2)
	counted("esx1", "", measure.CounterUsage, 97)
	counted("esx1", "vmnic0", measure.CounterRxDropped, 0)
	d.Inventories = []measure.Inventory{v}
	return d
}

// TestCountersOfRuns checks that only samples within a run are summed, each once, and that parts are not
// added to their whole.
func TestCountersOfRuns(t *testing.T) {
	d := placedTest()
	for _, b := range hypervisorRuns(d) {
		for _, s := range b.sources[0].source.Series {
			for k := range s.Samples {
				s.Samples[k].Value = float64(k)
			}
		}
	}
	below := hypervisorRuns(d)
	if names := []string{below[0].name, below[3].name}; len(below) != 4 || names[0] != "VM web1 (local)" || names[1] != "host esx2.example (peer)" {
		t.Fatalf("%d: %q", len(below), names)
	}
	// Samples end at 0, 20, ... 120 s; runs are measured from 0 to 60 and from 70 to 130 s, with a tolerance
	// of a quarter of a sample.
	got := below[0].measured(measure.CounterReady)
	if want := []float64{1, 2, 3, 5, 6}; len(got) != len(want) || got[0] != 1 || got[3] != 5 {
		t.Errorf("%v, want %v", got, want)
	}
	below[0].sources[0].source.Series[0].Samples[1].Value = math.NaN()
	if got = below[0].measured(measure.CounterReady); len(got) != 4 {
		t.Errorf("%v: what is no number counts", got)
	}
	below[0].runs = nil
	if got = below[0].measured(measure.CounterReady); got != nil || len(counterGrid(below[:1]).Rows) != 0 {
		t.Errorf("%v without a run", got)
	}
}

// TestCountersOfAdapter checks that the traffic of the VM's other adapters is not attributed to the test, and
// that no packet counts twice.
func TestCountersOfAdapter(t *testing.T) {
	d := placedTest()
	v := &d.Inventories[0]
	v.Guests[0].NICs[0].Key, v.Series = "4000", nil
	for _, x := range []struct {
		instance, counter string
		value             float64
	}{{"", measure.CounterRxBps, 9e9}, {"4000", measure.CounterRxBps, 2e9}, {"4001", measure.CounterRxDropped, 700}, {"4000", measure.CounterRxDropped, 1},
		{"4000", measure.CounterRingFull, 3}, {"4000", measure.CounterNoBuffer, 5}, {"0", measure.CounterUsed, 40}, {"1", measure.CounterUsed, 80}} {
		s := measure.Series{Of: "vm-1", Instance: x.instance, Counter: x.counter, EveryNs: int64(20 * time.Second)}
		s.Samples = []measure.Reading{{EndedAt: began().Add(40 * time.Second), Value: x.value}}
		v.Series = append(v.Series, s)
	}
	g := counterGrid(hypervisorRuns(d))
	got := map[string]string{}
	for i, c := range g.Columns {
		got[c.Name] = g.Rows[0][i]
	}
	for name, want := range map[string]string{"in": "2.00 Gb/s", "dropped, in": "1", "ring full": "5", "vCPUs busy": "1.20"} {
		if got[name] != want {
			t.Errorf("%s: %q, want %q", name, got[name], want)
		}
	}
}

// TestNotPlaced checks that a result without hypervisors does not mention them, and that a result with
// unknown end points explains why.
func TestNotPlaced(t *testing.T) {
	if p := newPlacement(verdictTest()); p != nil {
		t.Errorf("%+v", p)
	}
	d := verdictTest()
	d.EndPoints[0].NoPlace, d.EndPoints[0].NoPlaceCode = "no hypervisor answered", measure.NoHypervisorRead // a warning names the reason
	if p := newPlacement(d); p != nil {
		t.Errorf("%+v", p)
	}
	d = verdictTest()
	d.EndPoints[0].NoPlace, d.EndPoints[1].NoPlace = "its addresses are those of two", "no virtual machine has its address\x1b[31m"
	var out bytes.Buffer
	if err := Text(&out, d, TextOptions{Width: 80}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"local: not found: its addresses are those of two", "peer: not found: no virtual machine has its address"} {
		if !strings.Contains(out.String(), want) || strings.Contains(out.String(), "\x1b[31m") {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
}

// TestRungRelation checks that a ladder shows the relation of its rungs' ends.
func TestRungRelation(t *testing.T) {
	d := rungsTest()
	d.EndPoints[0].NoPlace = "x"
	d.Relations = []measure.Relation{{From: "a", To: "a", Kind: measure.SameMachine, Why: "vm a"}, {From: "c", To: "a", Kind: measure.SameVLAN, Why: "esx1 and esx2, VLAN 100"}, {From: "a", To: "z", Kind: measure.OtherSite, Why: "w"}}
	p := newPlacement(d)
	for i, want := range []string{"localhost, a with itself: same machine (vm a)", "LAN, c and a: same VLAN (esx1 and esx2, VLAN 100)", "a and z: other data center (w)"} {
		if p.Lies[i] != want {
			t.Errorf("%q, want %q", p.Lies[i], want)
		}
	}
}
