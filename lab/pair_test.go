package lab_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"thru/internal/measure"
	"thru/lab"
)

// TestGoodputIsWhatTheLinkCarries measures a capped link in both directions and compares the goodput with the
// computed value, and with the counters of the interface.
func TestGoodputIsWhatTheLinkCarries(t *testing.T) {
	tests := []struct {
		name   string
		addr   func(lab.Link) netip.Addr
		want   float64 // bit/s
		header uint64  // bytes before the payload in each packet, with TCP timestamps
	}{
		{"IPv4", func(l lab.Link) netip.Addr { return l.B4 }, goodput4, 14 + 20 + 32},
		{"IPv6", func(l lab.Link) netip.Addr { return l.B6 }, goodput6, 14 + 40 + 32},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := lab.NewPair(t, lab.Options{Rate: gigabit})
			serve(t, p.B, "--no-auth")
			var doc measure.Document
			var a, b lab.Counters
			slow := func(c measure.Cell) bool { return c.Goodput == nil || !near(c.Goodput.Value, tt.want, 2) }
			for try := 0; try == 0 || try < 3 && (stoodStill(tt.header, mainCells(doc)...) || slices.ContainsFunc(mainCells(doc), slow)); try++ {
				beforeA, beforeB := p.A.Counters(lab.DataDev), p.B.Counters(lab.DataDev)
				doc = test(t, p.A, tt.addr(p.Data).String(), "-t", "2", "-O", "1", "--link-rate", "1G/l2")
				a = p.A.Counters(lab.DataDev).Sub(beforeA)
				b = p.B.Counters(lab.DataDev).Sub(beforeB)
			}

			cells := mainCells(doc)
			if len(cells) != 2 || cells[0].From == cells[1].From {
				t.Fatalf("%d main cells, want one in each direction", len(cells))
			}
			for _, c := range cells {
				checkGoodput(t, c, tt.want)
				checkEvidence(t, c, tt.header)
			}
			if doc.Verdict == nil || !doc.Verdict.Pass {
				t.Errorf("verdict %+v, want a pass: the link carries what it can", doc.Verdict)
			}
			checkTotals(t, doc, map[bool]uint64{
				true:  a.RxBytes - tt.header*a.RxPackets, // local received it
				false: b.RxBytes - tt.header*b.RxPackets,
			})
		})
	}
}

// checkGoodput compares a cell with the computed goodput of its link.
func checkGoodput(t *testing.T, c measure.Cell, want float64) {
	t.Helper()
	if c.Goodput == nil || !near(c.Goodput.Value, want, 2) {
		t.Errorf("%s to %s: goodput %+v, want %.1f Mb/s within 2%%", c.From, c.To, c.Goodput, want/1e6)
	}
	if c.Ceiling == nil || !near(c.Ceiling.Bps, want, 0.1) {
		t.Errorf("%s to %s: ceiling %+v, want %.1f Mb/s", c.From, c.To, c.Ceiling, want/1e6)
	}
}

// checkEvidence compares the receiver's payload in the measured time with the count of its interface in that
// time, without headers.
func checkEvidence(t *testing.T, c measure.Cell, header uint64) {
	t.Helper()
	for _, fault := range evidenceFaults(c, header) {
		t.Error(fault)
	}
}

// stoodStill reports whether the payload of a cell is not what the interface counted. That also happens where the machine
// itself is stopped for some milliseconds between two readings, as virtual ones are: such a measurement is repeated.
func stoodStill(header uint64, cells ...measure.Cell) bool {
	return slices.ContainsFunc(cells, func(c measure.Cell) bool { return len(evidenceFaults(c, header)) > 0 })
}

// evidenceFaults returns where the payload and the count of the interface differ by more than 1%.
func evidenceFaults(c measure.Cell, header uint64) (faults []string) {
	for _, run := range c.Runs {
		for _, f := range run.Flows {
			r := f.Receiver
			if r == nil || r.Host == nil || r.Host.NIC == nil || r.Host.Span == 0 || r.MeasuredNs == 0 {
				faults = append(faults, fmt.Sprintf("%s to %s: the receiver's evidence lacks its interface or its time", f.From, f.To))
				continue
			}
			nic := r.Host.NIC
			wire := float64(nic.RxBytes-header*nic.RxPackets) / float64(r.Host.Span)
			payload := float64(r.Bytes) / float64(r.MeasuredNs)
			if !near(payload, wire, 1) {
				faults = append(faults, fmt.Sprintf("%s to %s: %.1f Mb/s of payload, %.1f Mb/s by the counters of %s", f.From, f.To, payload*8e3, wire*8e3, nic.Name))
			}
		}
	}
	return faults
}

// checkTotals compares the payload of a document with the lab's own reading of the counters of both hosts;
// the key is toLocal.
func checkTotals(t *testing.T, doc measure.Document, wire map[bool]uint64) {
	t.Helper()
	total := map[bool]int64{}
	for _, f := range flows(doc) {
		if f.Receiver != nil {
			total[f.To == "local"] += f.Receiver.TotalBytes
		}
	}
	for toLocal, counted := range wire {
		if !near(float64(total[toLocal]), float64(counted), 1) {
			t.Errorf("to local %v: the document has %d bytes, the interface %d", toLocal, total[toLocal], counted)
		}
	}
}

// TestControlAndDataApart connects the hosts by two links: the session uses one, the data the other.
func TestControlAndDataApart(t *testing.T) {
	t.Parallel()
	p := lab.NewPair(t, lab.Options{Rate: gigabit, Control: true})
	serve(t, p.B, "--no-auth", "--data-addr", p.Data.B4.String())
	before, beforeControl := p.B.Counters(lab.DataDev), p.B.Counters(lab.ControlDev)
	doc := test(t, p.A, p.Control.B4.String(), "-t", "1")
	data := p.B.Counters(lab.DataDev).Sub(before)
	control := p.B.Counters(lab.ControlDev).Sub(beforeControl)

	var payload uint64
	for _, f := range flows(doc) {
		for _, e := range []*measure.Evidence{f.Sender, f.Receiver} {
			switch {
			case e == nil:
				t.Errorf("%s to %s: evidence of one end is missing", f.From, f.To)
			case e.Route == nil || e.Route.Interface != lab.DataDev:
				t.Errorf("%s to %s: the route at %s is %+v, want %s", f.From, f.To, e.EndPoint, e.Route, lab.DataDev)
			case !strings.HasPrefix(e.LocalAddr, "10.77.") || !strings.HasPrefix(e.PeerAddr, "10.77."):
				t.Errorf("%s to %s: addresses %s and %s, want those of the data link", f.From, f.To, e.LocalAddr, e.PeerAddr)
			}
		}
		if f.Receiver != nil {
			payload += uint64(f.Receiver.TotalBytes)
		}
	}
	if moved := data.RxBytes + data.TxBytes; moved < payload {
		t.Errorf("the data link moved %d bytes of %d", moved, payload)
	}
	if moved := control.RxBytes + control.TxBytes; moved > payload/100 || moved == 0 {
		t.Errorf("the control link moved %d bytes beside %d of data", moved, payload)
	}
}
