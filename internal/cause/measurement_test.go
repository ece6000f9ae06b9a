package cause

import (
	"strings"
	"testing"

	"thru/internal/cause/measurement"
	"thru/internal/measure"
)

func TestMeasurement(t *testing.T) {
	count := func(sent, got int64) func(*measure.Document) {
		return func(d *measure.Document) {
			d.Cells[0].Reconciled = &measure.Reconciled{SenderBps: float64(sent), ReceiverBps: float64(got), SentBytes: sent, ReceivedBytes: got,
				DifferencePct: 100 * float64(sent-got) / float64(max(sent, got))}
		}
	}
	spans := func(d *measure.Document) { d.Cells[0].Reconciled.OfRates = true }
	judgeRows(t, "measurement", []row{
		{"agrees", "no", "", nil},
		{"9.74 of 10 Gb/s at MTU 1500", "certain", "9.74 Gb/s is more than a link of 10.0 Gb/s can carry at MTU 1500 (9.41 Gb/s): frames must have been larger", edits{rate(9.74e9)}},
		{"beyond jumbo frames too", "certain", "(9.41 Gb/s): the link is faster", edits{rate(9.95e9)}},
		{"held back before, and late", "possible beside", "in single seconds", edits{rate(9.74e9), seconds(12, 9.4, 9.41, 9.4, 9.4, 9.4, 9.41, 9.5)}},
		{"as much as noise", "no", "", edits{share100(100.4)}},
		{"above on one machine", "no", "", edits{rate(40e9), func(d *measure.Document) { near(d).PeerAddr = "127.0.0.1:1" }}},
		{"more came than was sent", "certain", "counted 2% more than was sent", edits{count(98, 100)}},
		{"a little more", "no", "", edits{count(999_950, 1_000_000)}},
		{"less came", "no", "", edits{count(100, 50)}},
		{"spans of their own", "no", "", edits{count(98, 100), spans}},
		{"spans of their own, far apart", "possible beside", "measured times differ", edits{count(80, 100), spans}},
		{"by another interface", "possible beside", "than eth0, which sends the answers: its counter has only 10% of the payload", edits{func(d *measure.Document) { far(d).Host.NIC.RxBytes = uint64(far(d).Bytes / 10) }}},
		{"the interface was not counted", "no", "", edits{func(d *measure.Document) { far(d).Host.NIC.RxBytes = 0 }}},
		{"busier than time", "likely", "clocks run at different speeds", edits{func(d *measure.Document) { near(d).Streams[0].TCP.BusyUs = new(uint64(9_000_000)) }}},
		{"busy all the time", "no", "", edits{func(d *measure.Document) { near(d).Streams[0].TCP.BusyUs = new(uint64(8_100_000)) }}},
		{"nothing measured", "missing", "goodput", edits{func(d *measure.Document) { d.Cells[0].Goodput, d.Cells[0].Runs[0].Goodput = nil, nil }}},
		{"no evidence", "no", "", edits{noEvidence}},
	})
}

// local makes both ends of the flow one machine.
func local(bps float64) func(*measure.Document) {
	return func(d *measure.Document) {
		rate(bps)(d)
		near(d).PeerAddr = "127.0.0.1:5202"
		d.Paths, d.Cells[0].Ceiling = nil, nil
	}
}

func TestGenerator(t *testing.T) {
	for name, c := range map[string]struct {
		lower, upper *measure.Document
		want         string
	}{
		"too slow for the link":  {flowDoc(local(5.8e9)), flowDoc(rate(5e9)), measure.Likely},
		"little to spare":        {flowDoc(local(11e9)), flowDoc(rate(5e9)), measure.Possible},
		"enough":                 {flowDoc(local(13e9)), flowDoc(rate(5e9)), ""},
		"the link is full":       {flowDoc(local(11e9)), flowDoc(), ""},
		"no rate is known":       {flowDoc(local(5.8e9)), flowDoc(rate(5e9), noCeiling), ""},
		"nothing below":          {flowDoc(noEvidence, func(d *measure.Document) { d.Cells[0].Runs = nil }), flowDoc(rate(5e9)), ""},
		"a rate was asked below": {flowDoc(local(1e9), func(d *measure.Document) { d.Cells[0].Spec.Rate = 1e9 }), flowDoc(rate(5e9)), ""},
	} {
		all := measurement.Generators(theCatalogue(), c.lower, c.upper)
		got := ""
		if len(all) > 0 {
			got = all[0].Confidence
			if all[0].Where.Place != measure.AtTool || !strings.Contains(all[0].Summary, "it cannot prove a link of 10.0 Gb/s") || all[0].Cause != "sender-cpu" {
				t.Errorf("%s: %+v", name, all[0])
			}
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestGeneratorOfOneDocument: the rung of the machine with itself is compared with the one over the link; a single
// local one with a stated rate.
func TestGeneratorOfOneDocument(t *testing.T) {
	d := flowDoc(rate(5e9))
	d.Cells = append(d.Cells, flowDoc(local(5.8e9)).Cells[0])
	if all := measurement.Generators(theCatalogue(), d, d); len(all) != 1 || all[0].Where.From != "near" {
		t.Errorf("%+v", all)
	}
	alone := flowDoc(rate(5.8e9), func(d *measure.Document) { near(d).PeerAddr = "127.0.0.1:5202" })
	if all := measurement.Generators(theCatalogue(), alone, alone); len(all) != 1 {
		t.Errorf("a lone local cell with a stated rate: %+v", all)
	}
	if all := measurement.Generators(theCatalogue(), flowDoc(rate(5e9)), flowDoc(rate(5e9))); len(all) != 1 {
		t.Errorf("two rungs: %+v", all)
	}
	same := flowDoc(rate(5e9))
	if all := measurement.Generators(theCatalogue(), same, same); len(all) != 0 {
		t.Errorf("a cell over the link is no rung below itself: %+v", all)
	}
}
