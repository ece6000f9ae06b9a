package diagnose

import (
	"testing"

	"thru/internal/measure"
)

// ownShaper is a queueing discipline with a rate at the sender's own interface,
// which is over it.
func ownShaper(d *measure.Document) {
	near(d).Host.Qdisc = &measure.Qdisc{Kind: "tbf", Overlimits: 5000, Drops: 20}
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
			near(d).Host.Qdisc.Drops = 0
		}}},
		{"a kernel that tells no route", "likely", "qdisc tbf on INTERFACE", edits{rate(95e6), noCeiling, ownShaper, loaded(80), func(d *measure.Document) { near(d).Route = nil }}},
		{"it holds nothing back", "no", "", edits{rate(95e6), noCeiling, func(d *measure.Document) {
			ownShaper(d)
			near(d).Host.Qdisc.Overlimits = 0
		}}},
		{"the rate goes up and down", "no", "differs", edits{rate(95e6), noCeiling, ownShaper, seconds(0.02, 0.09, 0.03, 0.08, 0.02, 0.09, 0.03, 0.08), loaded(80)}},
	})
}
