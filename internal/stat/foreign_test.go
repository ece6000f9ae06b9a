package stat

import (
	"slices"
	"strings"
	"testing"

	"thru/internal/measure"
)

// foreignCell is a cell of one run between two ends of which iperf3 told.
func foreignCell(protocol string, sender, receiver *measure.Evidence) *measure.Cell {
	return &measure.Cell{
		From: "local", To: "peer", Protocol: protocol, Streams: 1, AtOnce: 1, Spec: measure.Spec{Protocol: protocol, Streams: 1},
		Runs: []measure.Run{{Flows: []measure.Flow{{From: "local", To: "peer", Sender: sender, Receiver: receiver}}}},
	}
}

// foreignEnd told of 10 s; seconds are its bins in bytes.
func foreignEnd(bytes int64, seconds ...int64) *measure.Evidence {
	e := &measure.Evidence{Reported: "iperf3 3.12", Bytes: bytes, TotalBytes: bytes, MeasuredNs: 10e9, Streams: []measure.Stream{{Bytes: bytes}}}
	for i, b := range seconds {
		e.Bins = append(e.Bins, measure.StreamBin{At: int64(i) * 1e9, Span: 1e9, Bytes: b})
	}
	return e
}

// TestOnlySender: where a test broke off before the results were exchanged,
// the sender's figure stands, and says so.
func TestOnlySender(t *testing.T) {
	c := foreignCell(measure.TCP, foreignEnd(1000, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100), nil)
	Summarise(c, nil, Link{})
	if c.Goodput == nil || c.Goodput.Value != 800 || c.Steady == nil || !c.Steady.Checked {
		t.Errorf("goodput %+v, steady %+v", c.Goodput, c.Steady)
	}
	if !slices.ContainsFunc(c.Warnings, func(w string) bool { return strings.Contains(w, "handed to its kernel") }) {
		t.Errorf("warnings %q", c.Warnings)
	}
	own := foreignEnd(1000)
	own.Reported = "" // thru's own sender: its receiver's evidence is lost, and so is the figure
	c = foreignCell(measure.TCP, own, nil)
	if Summarise(c, nil, Link{}); c.Goodput != nil {
		t.Errorf("a goodput of %v without a receiver", c.Goodput.Value)
	}
}

// TestForeignLoss: without any counter of drops a loss is laid to no place,
// and the sender's seconds are not the receiver's.
func TestForeignLoss(t *testing.T) {
	sender, receiver := foreignEnd(1000, 100, 100, 100, 100, 100, 100), foreignEnd(500)
	sender.Streams[0].Datagrams = &measure.Datagrams{Packets: 10}
	receiver.Streams[0].Datagrams = &measure.Datagrams{Packets: 5, Lost: 5}
	c := foreignCell(measure.UDP, sender, receiver)
	Summarise(c, nil, Link{})
	if c.Datagrams == nil || c.Datagrams.Lost != 5 || len(c.LossPlaces) > 0 || c.Steady != nil || c.Goodput.High != 400 {
		t.Errorf("datagrams %+v, places %+v, steady %+v, goodput %+v", c.Datagrams, c.LossPlaces, c.Steady, c.Goodput)
	}
	receiver.Bytes, receiver.Streams[0].Datagrams = 1000, &measure.Datagrams{Packets: 10}
	if Summarise(c, nil, Link{}); c.Steady == nil || !c.Steady.Checked {
		t.Errorf("without loss the sender's seconds stand for both: %+v", c.Steady)
	}
}
