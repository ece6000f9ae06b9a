package stat

import (
	"slices"
	"strings"
	"testing"

	"thru/internal/measure"
)

// foreignCell is a cell of one run between two iperf3 ends.
func foreignCell(protocol string, sender, receiver *measure.Evidence) *measure.Cell {
	return &measure.Cell{
		From: "local", To: "peer", Protocol: protocol, Streams: 1, AtOnce: 1, Spec: measure.Spec{Protocol: protocol, Streams: 1},
		Runs: []measure.Run{{Flows: []measure.Flow{{From: "local", To: "peer", Sender: sender, Receiver: receiver}}}},
	}
}

// foreignEnd reports 10 s; seconds are its bins in bytes.
func foreignEnd(bytes int64, seconds ...int64) *measure.Evidence {
	e := &measure.Evidence{Reported: "iperf3 3.12", Bytes: bytes, TotalBytes: bytes, MeasuredNs: 10e9, Streams: []measure.Stream{{Bytes: bytes}}}
	for i, b := range seconds {
		e.Bins = append(e.Bins, measure.StreamBin{At: int64(i) * 1e9, Span: 1e9, Bytes: b})
	}
	return e
}

// TestOnlySender: if a test was aborted before the results were exchanged, the sender's figure counts, with a
// warning.
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

// TestForeignLoss: without any drop counter a loss is attributed to no place, and the sender's seconds are not the
// receiver's.
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

// own is a thru end, of 10 s.
func own(bytes int64, sends bool) *measure.Evidence {
	e := foreignEnd(bytes, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100)
	e.Reported, e.Sends = "", sends
	return e
}

// A figure that nobody measured is not compared with a measured one.
func TestForeignEndsAreTakenAtTheirWord(t *testing.T) {
	receiver := foreignEnd(900)
	c := foreignCell(measure.TCP, own(1000, true), receiver)
	if Summarise(c, nil, Link{}); c.Goodput.Low != c.Goodput.Value || c.Goodput.High != c.Goodput.Value || c.Steady == nil {
		t.Errorf("the sender's seconds are the range of what was received: %+v", c.Goodput)
	}
	if c.Reconciled == nil || c.Reconciled.ReceivedBytes != 900 {
		t.Errorf("both ends are %+v", c.Reconciled)
	}
	receiver.TotalBytes = 0 // it reports only the measured time
	if Summarise(c, nil, Link{}); c.Reconciled == nil || !c.Reconciled.OfRates {
		t.Errorf("both ends are %+v", c.Reconciled)
	}
	receiver.Missing = []measure.NotChecked{{Fact: "bytes_read", Why: "it reports nothing"}}
	if Summarise(c, nil, Link{}); c.Reconciled != nil {
		t.Errorf("what the sender saw acknowledged is the receiver's word: %+v", c.Reconciled)
	}
}

// Data sent after the end of a foreign receiver's count is no loss.
func TestForeignReceiverEndsItsCount(t *testing.T) {
	sender, receiver := own(1000, true), foreignEnd(900)
	sender.Streams[0].Datagrams, sender.Streams[0].DatagramsAll = &measure.Datagrams{Packets: 100}, &measure.Datagrams{Packets: 130}
	receiver.Streams[0].Datagrams, receiver.Streams[0].DatagramsAll = &measure.Datagrams{Packets: 98, Lost: 2}, &measure.Datagrams{Packets: 98, Lost: 2}
	sender.Host = &measure.HostSpan{}
	c := foreignCell(measure.UDP, sender, receiver)
	Summarise(c, nil, Link{})
	if c.Datagrams == nil || c.Datagrams.Lost != 2 || len(c.LossPlaces) != 1 || c.LossPlaces[0].Packets != 2 || c.LossPlaces[0].Place != measure.LossPathOrReceiver {
		t.Errorf("%+v lost, at %+v", c.Datagrams, c.LossPlaces)
	}
}

// A receiver's congestion control has no effect; a foreign sender's is not known.
func TestForeignCongestion(t *testing.T) {
	receiver := own(1000, false)
	receiver.Streams[0].Congestion = "cubic"
	c := foreignCell(measure.TCP, foreignEnd(1000), receiver)
	c.Spec.Congestion = "reno"
	Summarise(c, nil, Link{})
	said := strings.Join(c.Warnings, "\n")
	if strings.Contains(said, "kernel used") || !strings.Contains(said, "does not report which") {
		t.Errorf("warnings %q", said)
	}
}
