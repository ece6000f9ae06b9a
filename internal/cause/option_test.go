package cause

import (
	"testing"

	"thru/internal/measure"
)

func TestSACKOff(t *testing.T) {
	off := func(d *measure.Document) {
		near(d).Streams[0].TCP.SACK, near(d).Streams[0].TCPStart.SACK = new(false), new(false)
	}
	repaired := func(d *measure.Document) {
		counters(near(d), map[string]uint64{"TcpExt.TCPRenoRecovery": 5, "TcpExt.TCPTimeouts": 3})
	}
	stripped := func(d *measure.Document) { d.Paths[0].Handshake.SYNSeen.SACK = new(false) }
	judgeRows(t, "sack-off", []row{
		{"on", "no", "", nil},
		{"off, nothing lost", "certain beside", "", edits{rate(1e9), off}},
		{"off and lost", "certain", "0.3% of the segments were retransmitted", edits{rate(1e9), off, lost(0.3), repaired}},
		{"lost, repaired all the same", "certain beside", "", edits{rate(1e9), off, lost(0.3)}},
		{"lost by a full queue", "certain beside", "", edits{rate(1e9), off, lost(0.3), repaired, loaded(40)}},
		{"link full", "certain beside", "", edits{off, lost(0.3), repaired}},
		{"lost by a broken offload", "certain beside", "", edits{rate(1e5), off, lost(47), repaired}},
		{"the same, without such an offload", "certain", "", edits{rate(1e5), off, lost(47), repaired, func(d *measure.Document) { cardOf(d).Offloads["tcp-segmentation-offload"] = false }}},
		{"stripped", "certain beside", "a device on the path removes it", edits{rate(1e9), off, stripped}},
		{"by a setting", "certain beside", "net.ipv4.tcp_sack is 0 at far", edits{off, func(d *measure.Document) { d.EndPoints[1].Facts.Sysctls["net.ipv4.tcp_sack"] = "0" }}},
		{"no counters", "likely", "", edits{rate(1e9), off, lost(0.3), func(d *measure.Document) { near(d).Host = nil }}},
		{"not known", "missing", "opt_sack", edits{noEvidence}},
	})
}

func TestTimestampsOff(t *testing.T) {
	off := func(d *measure.Document) { near(d).Streams[0].TCP.Timestamps = new(false) }
	judgeRows(t, "timestamps-off", []row{
		{"on", "no", "", nil},
		{"off", "certain beside", "TCP timestamps: off", edits{off}},
		{"not answered", "certain beside", "far does not offer it", edits{off, func(d *measure.Document) { d.Paths[0].Handshake.SYNACKSent.Timestamps = new(false) }}},
		{"not answered since it did not arrive", "certain beside", "a device on the path", edits{off, func(d *measure.Document) {
			d.Paths[0].Handshake.SYNSeen.Timestamps, d.Paths[0].Handshake.SYNACKSent.Timestamps = new(false), new(false)
		}}},
		{"not offered", "certain beside", "near does not offer it", edits{off, func(d *measure.Document) { d.Paths[0].Handshake.SYNSent.Timestamps = new(false) }}},
		{"not known", "missing", "", edits{noEvidence}},
	})
}
