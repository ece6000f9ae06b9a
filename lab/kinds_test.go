package lab_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"thru/internal/measure"
	"thru/lab"
)

// datagram fills MTU 1500 with IPv4; frame is its size as a token bucket counts it.
const (
	datagram = 1500 - 20 - 8
	frame    = 1514
	slow     = 100e6 // a rate that every machine can overload
)

// udpCell runs one direction of datagrams and returns its cell.
func udpCell(t *testing.T, p *lab.Pair, args ...string) measure.Cell {
	t.Helper()
	doc := test(t, p.A, append([]string{p.Data.B4.String(), "-u", "--one-way"}, args...)...)
	if doc.Cells[0].Datagrams == nil {
		t.Fatalf("no figures of datagrams: %+v", doc.Cells[0].Missing)
	}
	return doc.Cells[0]
}

// placed is the share of the located packet loss that is at one place, in percent.
func placed(c measure.Cell, place string) float64 {
	var all, here int64
	for _, l := range c.LossPlaces {
		all += l.Packets
		if l.Place == place {
			here += l.Packets
		}
	}
	return 100 * float64(here) / math.Max(float64(all), 1)
}

// TestDatagramsThroughALink: below the rate of a link no packet is lost and the interface counts what thru
// measures; above it the queue of the link drops the rest, and thru names the queue; without a rate the queue
// slows the sender.
func TestDatagramsThroughALink(t *testing.T) {
	p := lab.NewPair(t, lab.Options{Rate: slow})
	serve(t, p.B, "--no-auth")

	var c measure.Cell
	for try := 0; try == 0 || try < 3 && stoodStill(frame-datagram, c); try++ {
		c = udpCell(t, p, "-t", "1", "-O", "0.5", "-b", "50M")
	}
	if c.Datagrams.Lost != 0 || c.Goodput == nil || !near(c.Goodput.Value, 50e6, 1) {
		t.Errorf("at half the rate: %+v, goodput %+v", c.Datagrams, c.Goodput)
	}
	checkEvidence(t, c, frame-datagram)

	c = udpCell(t, p, "-t", "1", "-O", "0.5", "-b", "200M")
	if want := slow * datagram / frame; c.Goodput == nil || !near(c.Goodput.Value, want, 3) {
		t.Errorf("at twice the rate: goodput %+v, want %.1f Mb/s", c.Goodput, want/1e6)
	}
	if c.Datagrams.LossPct < 30 || placed(c, measure.LossQdisc) < 90 {
		t.Errorf("at twice the rate: %.1f%% lost, at %+v", c.Datagrams.LossPct, c.LossPlaces)
	}

	// Without a rate the queue of the sender's own host slows it, and drops little.
	c = udpCell(t, p, "-t", "1", "-O", "0.5", "-b", "0")
	if want := slow * datagram / frame; c.Goodput == nil || !near(c.Goodput.Value, want, 3) || c.Datagrams.LossPct > 10 {
		t.Errorf("as fast as it goes: goodput %+v, want %.1f Mb/s; %.1f%% lost", c.Goodput, want/1e6, c.Datagrams.LossPct)
	}
}

// TestReceiverOverflows: loss at the receiver's socket is not attributed to the path.
func TestReceiverOverflows(t *testing.T) {
	p := lab.NewPair(t, lab.Options{})
	serve(t, p.B, "--no-auth")
	c := udpCell(t, p, "-t", "1", "-O", "0.3", "-b", "0", "-w", "4M/2K")
	if c.Datagrams.Lost == 0 || placed(c, measure.LossSocket) < 95 {
		t.Errorf("%d of %d lost, at %+v", c.Datagrams.Lost, c.Datagrams.Sent, c.LossPlaces)
	}
	if said := strings.Join(c.Warnings, "\n"); !strings.Contains(said, "socket buffer") {
		t.Errorf("the warnings do not name the socket buffer:\n%s", said)
	}
}

// TestPathLoses: loss that no counter of the ends has seen is attributed to the path.
func TestPathLoses(t *testing.T) {
	lab.Require(t, lab.Program("nft"))
	p := lab.NewPair(t, lab.Options{})
	serve(t, p.B, "--no-auth")
	p.B.Nft(`table netdev wire {
	chain in {
		type filter hook ingress device ` + lab.DataDev + ` priority 0
		udp length > 1000 numgen inc mod 10 == 0 drop
	}
}
`)
	c := udpCell(t, p, "-t", "1", "-O", "0.3", "-b", "20M", "--io", "mmsg")
	if !near(c.Datagrams.LossPct, 10, 20) || placed(c, measure.LossPath) < 99 {
		t.Errorf("%.2f%% lost, at %+v", c.Datagrams.LossPct, c.LossPlaces)
	}
}

// TestUDPIsBlocked: TCP passes, UDP does not, and the error says so with the ports.
func TestUDPIsBlocked(t *testing.T) {
	t.Parallel()
	lab.Require(t, lab.Program("nft"))
	p := lab.NewPair(t, lab.Options{})
	serve(t, p.B, "--no-auth")
	before := look(p.B)
	p.B.Nft(`table inet firewall {
	chain input {
		type filter hook input priority 0
		udp dport 5202-5233 drop
	}
}
`)
	doc := fails(t, p.A, 1, p.Data.B4.String(), "-u", "-t", "1")
	if said := doc.Error.Message + " " + doc.Error.Hint; !strings.Contains(said, "UDP ports 5202-5233") || !strings.Contains(said, "TCP") {
		t.Errorf("the error says: %s", said)
	}
	eventuallyIdle(t, p.B, before, lossLimit)
}

// fails runs a test that must fail and returns its document.
func fails(t *testing.T, h *lab.Host, code int, args ...string) measure.Document {
	t.Helper()
	p := start(t, h, t.TempDir(), "", append([]string{"test", "--json"}, args...)...)
	if got := p.wait(t, 2*lossLimit); got != code {
		t.Errorf("exit %d, want %d", got, code)
	}
	doc := p.document(t)
	if doc.Error == nil || doc.Error.Hint == "" {
		t.Fatalf("error %+v, want one with a hint", doc.Error)
	}
	return doc
}

// TestLargeDatagrams: datagrams above the MTU are fragmented, or refused with "don't fragment".
func TestLargeDatagrams(t *testing.T) {
	t.Parallel()
	p := lab.NewPair(t, lab.Options{})
	serve(t, p.B, "--no-auth")
	c := udpCell(t, p, "-t", "1", "-l", "8000", "-b", "50M")
	if c.Datagrams.Fragments != 6 || c.Datagrams.Received == 0 {
		t.Errorf("8000 bytes over MTU 1500: %+v", c.Datagrams)
	}
	doc := fails(t, p.A, 1, p.Data.B4.String(), "-u", "-t", "1", "-l", "8000", "--one-way", "--dont-fragment")
	if said := doc.Error.Message + " " + doc.Error.Hint; !strings.Contains(said, "1500") || !strings.Contains(said, "-l 1472") {
		t.Errorf("the error says: %s", said)
	}
}

// TestSearchFindsTheLink finds the capacity of a capped link, and a rate below it without loss.
func TestSearchFindsTheLink(t *testing.T) {
	p := lab.NewPair(t, lab.Options{Rate: slow})
	serve(t, p.B, "--no-auth")
	c := udpCell(t, p, "--search", "-t", "4")
	want := slow * datagram / frame
	if s := c.Search; s == nil || s.CapacityBps == nil || !near(*s.CapacityBps, want, 3) {
		t.Fatalf("capacity %+v, want %.1f Mb/s", c.Search, want/1e6)
	}
	if s := c.Search; s.LosslessBps == nil || *s.LosslessBps > *s.CapacityBps*1.01 || *s.LosslessBps < want*0.8 || len(s.Trials) == 0 {
		t.Errorf("without loss %+v", *s)
	}
}

// TestLatencyUnderLoad: the queue of a slow link shows as added latency.
func TestLatencyUnderLoad(t *testing.T) {
	t.Parallel()
	p := lab.NewPair(t, lab.Options{Rate: slow})
	serve(t, p.B, "--no-auth")
	doc := test(t, p.A, p.Data.B4.String(), "-t", "2", "--one-way", "--latency")
	for _, c := range mainCells(doc) {
		if c.Goodput == nil {
			continue
		}
		u := c.UnderLoad
		if u == nil || u.Idle == nil || u.Loaded == nil || u.AddedNs == nil || u.Responsiveness == nil {
			t.Fatalf("latency under load %+v", u)
		}
		if u.Loaded.P50 < 2*u.Idle.P50 {
			t.Errorf("a full queue adds nothing: idle %d ns, loaded %d ns", u.Idle.P50, u.Loaded.P50)
		}
		if u.Grade != "A" && u.Grade != "B" { // the queue of the link holds 40 ms
			t.Errorf("%d ns more are grade %q", *u.AddedNs, u.Grade)
		}
		return
	}
	t.Error("no cell has a goodput")
}

// TestAmountOverALink: the requested number of bytes arrives at both ends and on the wire.
func TestAmountOverALink(t *testing.T) {
	const amount = 50 << 20
	p := lab.NewPair(t, lab.Options{Rate: gigabit})
	serve(t, p.B, "--no-auth")
	before := p.B.Counters(lab.DataDev)
	doc := test(t, p.A, p.Data.B4.String(), "-n", "50M", "-P", "3", "--one-way", "--verify")
	b := p.B.Counters(lab.DataDev).Sub(before)
	f := flows(doc)[0]
	if f.Sender.TotalBytes != amount || f.Receiver.TotalBytes != amount || f.Receiver.Bytes != amount {
		t.Errorf("sent %d, received %d, in the measured time %d of %d bytes", f.Sender.TotalBytes, f.Receiver.TotalBytes, f.Receiver.Bytes, amount)
	}
	const headers = 14 + 20 + 32
	if wire := float64(b.RxBytes - headers*b.RxPackets); !near(wire, amount, 2) {
		t.Errorf("the interface counted %.0f bytes of payload, of %d", wire, amount)
	}
	if c := doc.Cells[0].Checked; c == nil || c.Bytes != amount || c.WrongBytes != 0 {
		t.Errorf("compared %+v", c)
	}
}

// TestClasses: RRUL sends a stream of each class in each direction at once; they share the link, and its
// requests show the delay of each second.
func TestClasses(t *testing.T) {
	t.Parallel()
	p := lab.NewPair(t, lab.Options{Rate: slow})
	serve(t, p.B, "--no-auth")
	doc := test(t, p.A, p.Data.B4.String(), "-t", "3", "--rrul", "--samples")
	classes, asked := map[string]float64{}, false
	for _, c := range doc.Cells {
		if c.Spec.LatencyProbe {
			for _, f := range c.Runs[0].Flows {
				for _, b := range f.Sender.Bins {
					asked = asked || c.AtOnce > 1
					if b.Requests > 0 && (b.LatencyMean <= 0 || b.LatencyMax < b.LatencyMean) {
						t.Errorf("%d requests took %d ns, at most %d", b.Requests, b.LatencyMean, b.LatencyMax)
					}
				}
			}
			continue
		}
		if c.Goodput == nil || c.UnderLoad == nil || c.AtOnce != 9 {
			t.Fatalf("goodput %+v, latency %+v, %d at once", c.Goodput, c.UnderLoad, c.AtOnce)
		}
		classes[fmt.Sprint(c.From, " ", c.Spec.DSCP)] += c.Goodput.Value
	}
	sum := 0.0
	for _, bps := range classes {
		sum += bps
	}
	if want := 2 * slow * 1448 / 1514.0; len(classes) != 8 || sum < 0.7*want || sum > 1.05*want || !asked {
		t.Errorf("%.1f of 2 x %.1f Mb/s in %v", sum/1e6, want/2e6, classes)
	}
}
