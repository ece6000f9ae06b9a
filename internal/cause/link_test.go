package cause

import (
	"testing"

	"thru/internal/cause/diagnose"
	"thru/internal/measure"
)

type edits = []func(*measure.Document)

func share100(pct float64) func(*measure.Document) {
	return func(d *measure.Document) { rate(pct / 100 * tenGFull)(d) }
}

func TestLinkRate(t *testing.T) {
	queue := loaded(30)
	judgeRows(t, "link-rate", []row{
		{"full", "certain well", "99.8% of what 10.0 Gb/s allows at MTU 1500", nil},
		{"just full", "certain well", "", edits{share100(95.01)}},
		{"just not full, queue flat", "likely well", "nearly full", edits{share100(94.9), queue}},
		{"not full, no queue", "no", "94.9%", edits{share100(94.9)}},
		{"not full, queue not flat", "likely well", "", edits{share100(92), seconds(9, 7, 9.5, 6, 9.9, 8, 5, 9), queue}},
		{"half", "no", "50% of the link's capacity", edits{share100(50), queue}},
		{"above", "no", "an assumption is wrong", edits{share100(101)}},
		{"just above is noise", "certain well", "", edits{share100(100.4)}},
		{"no rate known", "missing", "--link-rate", edits{noCeiling}},
		{"less was asked for", "no", "below the link's capacity", edits{func(d *measure.Document) { d.Cells[0].Spec.Rate = 9_350_000_000 }}},
		{"loopback", "no", "both ends are on one host", edits{func(d *measure.Document) { near(d).PeerAddr = "127.0.0.1:5202" }}},
		{"no evidence", "certain well", "", edits{noEvidence}},
	})
}

func TestLinkNegotiatedLow(t *testing.T) {
	oneG := func(d *measure.Document) { cardOf(d).SpeedBps = new(int64(1e9)); d.Cells[0].Ceiling = nil }
	judgeRows(t, "link-negotiated-low", []row{
		{"as fast as both can", "no", "", nil},
		{"full at a tenth", "certain", "eth0 has negotiated 1.00 Gb/s; 10.0 Gb/s", edits{rate(941e6), oneG}},
		{"slow and not full", "certain beside", "", edits{rate(500e6), oneG}},
		{"slower than stated", "certain", "", edits{rate(941e6), func(d *measure.Document) {
			cardOf(d).SpeedBps, cardOf(d).PeerBps, cardOf(d).MaxBps = new(int64(1e9)), nil, nil
		}}},
		{"partner not known", "possible", "what its link partner supports is not known", edits{rate(941e6), oneG, func(d *measure.Document) { cardOf(d).PeerBps = nil }}},
		{"partner can no more", "no", "", edits{rate(941e6), oneG, func(d *measure.Document) { cardOf(d).PeerBps = new(int64(1e9)) }}},
		{"no speed", "missing", "speed of eth0", edits{func(d *measure.Document) { cardOf(d).SpeedBps = nil }}},
		{"virtual", "none", "", edits{func(d *measure.Document) { cardOf(d).Kind, farFace(d).Kind = new("veth"), new("veth") }}},
		{"in name only", "none", "", edits{func(d *measure.Document) { cardOf(d).Nominal, farFace(d).Nominal = new(true), new(true) }}},
		{"no facts", "missing", "", edits{noFacts}},
		{"the member of a bond", "certain beside", "eth1", edits{rate(500e6), func(d *measure.Document) {
			slow := *cardOf(d)
			slow.Name, slow.SpeedBps = "eth1", new(int64(1e9))
			*cardOf(d) = measure.Interface{Name: "eth0", Kind: new("bond"), Bond: &measure.Bond{Members: []measure.BondMember{{Name: "eth1"}}}}
			d.EndPoints[0].Facts.Interfaces = append(d.EndPoints[0].Facts.Interfaces, slow)
		}}},
	})
}

func TestPortsOfACircle(t *testing.T) {
	d := flowDoc(func(d *measure.Document) { cardOf(d).Lower = []string{"eth0", "none", "eth0"} })
	if n := len(diagnose.NewFlow(theCatalogue(), d, &d.Cells[0]).Sender.Ports()); n != 1 {
		t.Errorf("%d ports, want 1", n)
	}
}

func TestDuplex(t *testing.T) {
	half := func(d *measure.Document) { cardOf(d).Duplex = new("half") }
	judgeRows(t, "duplex", []row{
		{"full", "no", "", nil},
		{"half", "likely", "eth0 is half duplex", edits{half, rate(50e6)}},
		{"half with collisions", "certain", "", edits{half, rate(50e6), func(d *measure.Document) {
			d.Cells[0].Runs[0].Flows[0].Sender.Host.NIC.Driver = map[string]uint64{"collisions": 90}
		}}},
		{"half with a few collisions", "likely", "", edits{half, rate(50e6), func(d *measure.Document) {
			d.Cells[0].Runs[0].Flows[0].Sender.Host.NIC.Driver = map[string]uint64{"collisions": 9}
		}}},
		{"half, link full", "likely beside", "", edits{half}},
		{"not known", "missing", "duplex", edits{func(d *measure.Document) { cardOf(d).Duplex = nil }}},
	})
}

func TestBadLink(t *testing.T) {
	crc := func(n uint64) func(*measure.Document) {
		return func(d *measure.Document) {
			far(d).Host.NIC.Driver = map[string]uint64{"rx_crc_errors": n, "rx_queue_0_csum_err": 7}
		}
	}
	judgeRows(t, "bad-link", []row{
		{"clean", "no", "", nil},
		{"as many as were sent again", "certain", "packets arrive damaged at far", edits{rate(30e6), lost(0.1), crc(1000)}},
		{"fewer than were sent again", "likely", "", edits{rate(20e6), lost(1), crc(2000)}},
		{"far more than were sent again", "likely", "", edits{rate(30e6), lost(0.1), crc(5000)}},
		{"too rare for the rate", "possible beside", "", edits{rate(5e6), lost(0.1), crc(1000)}},
		{"before a queue that stands", "possible beside", "", edits{rate(30e6), lost(0.1), crc(1000), loaded(40)}},
		{"link full all the same", "possible beside", "", edits{lost(0.1), crc(1000)}},
		{"one in a million", "possible beside", "", edits{rate(1e9), crc(1)}},
		{"no counters", "missing", "counters of the interface", edits{func(d *measure.Document) { near(d).Host, far(d).Host = nil, nil }}},
		{"software", "none", "", edits{crc(50), func(d *measure.Document) { cardOf(d).Kind, farFace(d).Kind = new("veth"), new("veth") }}},
	})
}

func TestPauseFrames(t *testing.T) {
	moved := func(e func(*measure.Document) *measure.Evidence, m map[string]uint64) func(*measure.Document) {
		return func(d *measure.Document) { e(d).Host.NIC.Driver = m }
	}
	judgeRows(t, "pause-frames", []row{
		{"none", "no", "", nil},
		{"the sender is stopped", "likely", "1 000 per second", edits{rate(5e9), moved(near, map[string]uint64{"rx_pause_ctrl_phy": 8000})}},
		{"the receiver stops its partner", "likely", "", edits{rate(5e9), moved(far, map[string]uint64{"tx_flow_control_xoff": 8000})}},
		{"of the other direction", "no", "", edits{rate(5e9), moved(near, map[string]uint64{"tx_pause": 8000})}},
		{"a few", "possible beside", "", edits{rate(5e9), moved(near, map[string]uint64{"rx_pause": 8})}},
		{"timed", "certain", "stop the link 40% of the time", edits{rate(5e9), moved(near, map[string]uint64{"rx_global_pause": 8000, "rx_global_pause_duration": 3_200_000})}},
		{"timed, and the rest of the time would carry far more", "likely", "", edits{rate(1e9), moved(near, map[string]uint64{"rx_global_pause": 8000, "rx_global_pause_duration": 3_200_000})}},
		{"timed and short", "possible beside", "", edits{rate(5e9), moved(near, map[string]uint64{"rx_global_pause": 8000, "rx_global_pause_duration": 100})}},
		{"with loss", "possible", "", edits{rate(5e9), lost(1), moved(near, map[string]uint64{"rx_pause": 8000})}},
		{"link full", "possible beside", "", edits{moved(near, map[string]uint64{"rx_pause": 8000})}},
		{"not counted", "missing", "", edits{func(d *measure.Document) { near(d).Host, far(d).Host = nil, nil }}},
	})
}

func TestPCIe(t *testing.T) {
	slot := func(bps int64) func(*measure.Document) {
		return func(d *measure.Document) { farFace(d).PCI.UsableBps = &bps }
	}
	judgeRows(t, "pcie", []row{
		{"wide enough", "no", "", nil},
		{"full", "certain", "the slot of eth0 carries only 6.90 Gb/s of the port's 10.0 Gb/s", edits{rate(6.7e9), slot(6_900_000_000)}},
		{"nearly full", "likely", "", edits{rate(5.7e9), slot(6_900_000_000)}},
		{"below the link's capacity", "certain beside", "", edits{rate(3e9), slot(6_900_000_000)}},
		{"more than it should", "likely", "", edits{rate(8e9), slot(6_900_000_000)}},
		{"not known", "missing", "", edits{func(d *measure.Document) { cardOf(d).PCI.UsableBps = nil }}},
	})
}
