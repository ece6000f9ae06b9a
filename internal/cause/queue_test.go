package cause

import (
	"strings"
	"testing"

	"thru/internal/cause/diagnose"
	"thru/internal/measure"
)

// ownShaper is a queueing discipline with a rate limit at the sender's own interface, which is over its limit.
func ownShaper(d *measure.Document) {
	near(d).Host.Qdisc = &measure.Qdisc{Kind: "tbf", Overlimits: 5000, Drops: 20, Backlog: 840_000}
}

func several(d *measure.Document) { d.Cells[0].Streams, d.Cells[0].Spec.Streams = 8, 8 }

// filmedToo adds a capture at the sender, behind its queueing discipline.
func filmedToo(edits ...capturesEdit) func(*measure.Document) {
	return func(d *measure.Document) {
		d.Cells[0].Runs[0].Flows[0].Captures = filmed([]string{measure.AtSender}, edits...).Cells[0].Runs[0].Flows[0].Captures
	}
}

func TestOwnQueue(t *testing.T) {
	type edits = []func(*measure.Document)
	judgeRows(t, "shaper", []row{
		{"its rate is reached by several streams", "certain", "qdisc tbf on eth0", edits{rate(95e6), noCeiling, ownShaper, loaded(80), several}},
		{"its rate is reached by one", "likely", "qdisc tbf on eth0", edits{rate(95e6), noCeiling, ownShaper, loaded(80)}},
		{"packets behind it show no queue", "certain", "qdisc tbf on eth0", edits{rate(95e6), noCeiling, ownShaper, loaded(80), several, filmedToo(sendsAgain(40, 20))}},
		{"nothing waits in it", "likely", "qdisc tbf on eth0", edits{rate(95e6), noCeiling, ownShaper, loaded(80), several, func(d *measure.Document) {
			near(d).Host.Qdisc.Drops, near(d).Host.Qdisc.Backlog = 0, 0
		}}},
		{"packets wait in it, and the round trips do not show it", "likely", "qdisc tbf on eth0", edits{rate(95e6), noCeiling, ownShaper, loaded(9), func(d *measure.Document) {
			near(d).Host.Qdisc.Drops = 0
		}}},
		{"another class of it drops", "no", "congestion window", edits{rate(95e6), noCeiling, ownShaper, loaded(80), several, func(d *measure.Document) {
			*near(d).Host.Qdisc = measure.Qdisc{Kind: "htb", Overlimits: 5000, Drops: 900, Backlog: 3000}
		}}},
		{"it drops as much as is sent again, and nothing waits", "likely", "qdisc tbf on eth0", edits{rate(95e6), noCeiling, ownShaper, lost(0.02), several, func(d *measure.Document) {
			near(d).Host.Qdisc.Drops, near(d).Host.Qdisc.Backlog = 200, 0
		}}},
		{"its own class of it waits", "certain", "qdisc htb on eth0", edits{rate(95e6), noCeiling, ownShaper, loaded(80), several, func(d *measure.Document) { near(d).Host.Qdisc.Kind = "htb" }}},
		{"a kernel that tells no route", "likely", "qdisc tbf on INTERFACE", edits{rate(95e6), noCeiling, ownShaper, loaded(80), func(d *measure.Document) { near(d).Route = nil }}},
		{"it holds nothing back", "no", "", edits{rate(95e6), noCeiling, func(d *measure.Document) {
			ownShaper(d)
			near(d).Host.Qdisc.Overlimits = 0
		}}},
		{"the rate goes up and down", "no", "varies", edits{rate(95e6), noCeiling, ownShaper, seconds(0.02, 0.09, 0.03, 0.08, 0.02, 0.09, 0.03, 0.08), loaded(80)}},
	})
}

// TestSilentIsNotShaped: the mean of a flow with a cut includes seconds without data, and does not show a shaper.
func TestSilentIsNotShaped(t *testing.T) {
	cut := func(gbps float64, seconds int) []float64 {
		all := make([]float64, 30)
		for i := range all {
			if i < 10 || i >= 10+seconds {
				all[i] = gbps
			}
		}
		return all
	}
	filled := func(d *measure.Document) {
		for i := range near(d).Bins {
			near(d).Bins[i].TCP[0].Unacked = new(uint32(8900)) // of a congestion window of 9000
		}
	}
	judgeRows(t, "shaper", []row{
		{"flat, with a queue", "likely", "a queue on the path limits the rate", edits{rate(5e9), noCeiling, seconds(cut(5, 0)...), loaded(80), filled}},
		{"cut for a second", "likely", "a queue on the path limits the rate", edits{rate(4.8e9), noCeiling, seconds(cut(5, 1)...), loaded(80), filled}},
		{"cut for 6 s", "no", "no data arrives 20% of the time", edits{rate(4e9), noCeiling, seconds(cut(5, 6)...), loaded(80), filled}},
		{"a full link, cut for 6 s", "no", "the link is full while data arrives; none arrives 20% of the time", edits{share100(76), seconds(cut(8.95, 6)...), loaded(80), filled}},
		{"behind the sender's own shaper of unknown rate", "no", "no data arrives 20% of the time", edits{rate(4e9), noCeiling, ownShaper, seconds(cut(5, 6)...), loaded(80), filled}},
		{"behind the sender's own shaper", "no", "the link is full while data arrives", edits{share100(76), ownShaper, seconds(cut(8.95, 6)...), loaded(80), filled}},
		{"half of the link, cut for 6 s", "no", "no data arrives 20% of the time", edits{share100(40), seconds(cut(4.7, 6)...), loaded(80), filled}},
	})
	judgeRows(t, "policer", []row{
		{"retransmissions", "possible", "a policer", edits{rate(5e9), noCeiling, seconds(cut(5, 0)...), lost(0.05)}},
		{"those of a cut", "no", "no data arrives 20% of the time", edits{rate(4e9), noCeiling, seconds(cut(5, 6)...), lost(0.05)}},
	})
}

// A shaper at the sender's own interface limits a rate that bbr would exceed: pacing is not the limit, though the
// host is near.
func TestShapedNotPaced(t *testing.T) {
	paced := with(bbrAlone(), func(m *made) { m.bps, m.pacing, m.rtt = 940*mb, 8000*mb, 2*ms })
	for name, tt := range map[string]struct {
		of   made
		edit func(*measure.Document)
		want string
	}{
		"a shaper of its own": {paced, func(d *measure.Document) {
			h := d.Cells[0].Runs[0].Flows[0].Sender.Host
			h.Qdisc, h.NIC = &measure.Qdisc{Kind: "tbf", Overlimits: 5000, Drops: 20}, &measure.NICSpan{Name: "eth0"}
		}, "shaper likely"},
		"a shaper on the way":       {paced, func(*measure.Document) {}, "shaper likely"},
		"the rate goes up and down": {with(paced, func(m *made) { m.bins = []float64{0.2, 1.8, 0.3, 1.7, 1} }), func(*measure.Document) {}, "none likely"},
		"no queue":                  {with(paced, func(m *made) { m.rtt = ms / 5 }), func(*measure.Document) {}, "shaper possible"},
		"a CPU is full": {with(paced, func(m *made) {
			m.bins, m.sender = []float64{0.2, 1.8, 0.3, 1.7, 1}, diagnose.Threads{Run: 99, Wait: 0, Blocked: 1}
		}), func(*measure.Document) {}, "paced likely"},
	} {
		d := tt.of.document()
		tt.edit(d)
		if got := first(t, d); !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s: %q, want %q: %+v", name, got, tt.want, d.Cells[0].Findings)
		}
	}
}
