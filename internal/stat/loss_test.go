package stat

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"thru/internal/measure"
)

// where words places briefly: "receiver socket 900, path 100".
func where(places []measure.LossPlace) string {
	var words []string
	for _, p := range places {
		words = append(words, fmt.Sprintf("%s %d", p.Place, p.Packets))
	}
	return strings.Join(words, ", ")
}

// TestLossPlaces loses 1000 datagrams of each of two streams, sets counters, and checks the places of the loss.
func TestLossPlaces(t *testing.T) {
	receiver := func(c *measure.Cell) *measure.Evidence { return flow(c).Receiver }
	sender := func(c *measure.Cell) *measure.Evidence { return flow(c).Sender }
	drops := func(c *measure.Cell, n int64) {
		for i := range receiver(c).Streams {
			receiver(c).Streams[i].Datagrams.SocketDrops = &n
		}
	}
	unknown := func(c *measure.Cell) {
		for i := range receiver(c).Streams {
			receiver(c).Streams[i].Datagrams.SocketDrops = nil
		}
	}
	veth := map[string]*measure.Facts{}
	for _, name := range []string{"local", "esx2"} {
		veth[name] = &measure.Facts{Interfaces: []measure.Interface{{Name: "eth0", MTU: new(1500), Driver: new("veth")}}}
	}
	tests := []struct {
		name  string
		lost  int64
		facts map[string]*measure.Facts
		set   func(*measure.Cell)
		want  string
	}{
		{"nothing lost", 0, nil, func(c *measure.Cell) { drops(c, 5) }, ""},
		{"no counter tells", 1000, nil, nil, "path 2000"},
		{"all at the socket", 1000, nil, func(c *measure.Cell) { drops(c, 1000) }, "receiver socket 2000"},
		{"some at the socket", 1000, nil, func(c *measure.Cell) { drops(c, 900) }, "receiver socket 1800, path 200"},
		{"more than was lost", 1000, nil, func(c *measure.Cell) { drops(c, 1e9) }, "receiver socket 2000"},
		{"own sockets before the host's counter", 1000, nil, func(c *measure.Cell) {
			drops(c, 100)
			receiver(c).Host.Proto["Udp.RcvbufErrors"] = 2000 // another program's
		}, "path 1800, receiver socket 200"},
		{"the host's counter", 1000, nil, func(c *measure.Cell) {
			unknown(c)
			receiver(c).Host.Proto["Udp.RcvbufErrors"], receiver(c).Host.Proto["Udp.MemErrors"] = 300, 200
		}, "path 1500, receiver socket 500"},
		{"what others dropped leaves the socket its share", 1000, nil, func(c *measure.Cell) {
			drops(c, 1000)
			receiver(c).Host.NIC.RxDropped = 7
		}, "receiver socket 2000"},
		{"queue of the sender, which the socket's counter has too", 1000, nil, func(c *measure.Cell) {
			sender(c).Host.Qdisc.Drops, sender(c).Host.Proto["Udp.SndbufErrors"] = 2000, 2000
		}, "sender qdisc 2000"},
		{"socket of the sender", 1000, nil, func(c *measure.Cell) {
			sender(c).Host.Qdisc.Drops, sender(c).Host.Proto["Udp.SndbufErrors"] = 500, 1200
		}, "path 800, sender socket 700, sender qdisc 500"},
		{"sends refused", 1000, nil, func(c *measure.Cell) { sender(c).Streams[0].Datagrams.SendErrors = 2000 }, "sender socket 2000"},
		{"ring, which rx_errors has too", 1000, nil, func(c *measure.Cell) {
			receiver(c).Host.NIC.RxRing, receiver(c).Host.NIC.RxErrors = new(uint64(1500)), 1500
		}, "receiver ring 1500, path 500"},
		{"backlog, which rx_dropped has too", 1000, nil, func(c *measure.Cell) {
			receiver(c).Host.Softnet, receiver(c).Host.NIC.RxDropped = []measure.Softnet{{Dropped: 600}, {Core: 1, Dropped: 400}}, 1000
		}, "receiver backlog 1000, path 1000"},
		{"veth, where the sender's interface counts it too", 1000, veth, func(c *measure.Cell) {
			receiver(c).Host.Softnet = []measure.Softnet{{Dropped: 2000}}
			receiver(c).Host.NIC.RxDropped, sender(c).Host.NIC.TxDropped = 2000, 2000
			sender(c).Host.Proto["Udp.SndbufErrors"] = 2000
		}, "receiver backlog 2000"},
		{"reassembly, where all fragments came", 1000, nil, func(c *measure.Cell) {
			c.Spec.Length.Send = 8192
			receiver(c).Host.Proto["Ip.ReasmFails"], receiver(c).Host.Proto["Ip.ReasmReqds"] = 2000, 2*424_592*6
		}, "receiver reassembly 2000"},
		{"reassembly, where some did not", 1000, nil, func(c *measure.Cell) {
			c.Spec.Length.Send = 8192
			receiver(c).Host.Proto["Ip.ReasmFails"], receiver(c).Host.Proto["Ip.ReasmReqds"] = 2000, 2*424_592*6-1500
		}, "path 1500, receiver reassembly 500"},
		{"reassembly of others", 1000, nil, func(c *measure.Cell) { receiver(c).Host.Proto["Ip.ReasmFails"] = 2000 }, "path 2000"},
		{"one count for many", 1000, nil, func(c *measure.Cell) {
			receiver(c).IO = measure.IOGSO // 20 datagrams per call
			drops(c, 45)
		}, "receiver socket 2000"},
		{"one count for many, and the path", 1000, nil, func(c *measure.Cell) {
			receiver(c).IO = measure.IOGSO
			drops(c, 10)
		}, "path 1554, receiver socket 446"},
		{"one count is one in batches of messages", 1000, nil, func(c *measure.Cell) { drops(c, 50) }, "path 1900, receiver socket 100"},
		{"all of it before the measured time", 1000, nil, func(c *measure.Cell) {
			for i := range receiver(c).Streams {
				receiver(c).Streams[i].Datagrams.Lost = 0
			}
		}, ""},
	}
	for _, tt := range tests {
		c := datagramCell(tt.lost)
		if tt.set != nil {
			tt.set(c)
		}
		Summarise(c, tt.facts, Link{})
		if got := where(c.LossPlaces); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
		for _, p := range c.LossPlaces {
			if p.Counter == "" || p.Fix == "" || (p.EndPoint == "") != (p.Place == measure.LossPath) {
				t.Errorf("%s: %+v", tt.name, p)
			}
		}
	}
}

// TestLossWithoutGaps: a path that stops carrying data leaves no gaps, and a full queue of the sender is found
// nevertheless.
func TestLossWithoutGaps(t *testing.T) {
	c := datagramCell(0)
	f := flow(c)
	for i := range f.Receiver.Streams {
		x := &f.Receiver.Streams[i]
		x.Datagrams.Packets, x.DatagramsAll.Packets = 0, 15
	}
	f.Receiver.Bytes = 0
	f.Sender.Host.Qdisc.Drops = 1e9
	Summarise(c, twoHosts(), Link{})
	if got := where(c.LossPlaces); got != "sender qdisc 849184" || isMissing(c, "loss_places") {
		t.Errorf("%q, missing %v", got, c.Missing)
	}
}

// TestOneHostCountsOnce: both ends read the same host, and each counter belongs to one place only.
func TestOneHostCountsOnce(t *testing.T) {
	c := datagramCell(1000)
	c.To = c.From
	f := flow(c)
	f.To = c.From
	f.Receiver.EndPoint = c.From
	for _, e := range []*measure.Evidence{f.Sender, f.Receiver} {
		e.Route.Interface, e.PeerAddr = "lo", "127.0.0.1:5201"
		e.Host.Proto = map[string]uint64{"Udp.RcvbufErrors": 700}
		e.Host.Softnet = []measure.Softnet{{Dropped: 600}}
		e.Host.NIC = &measure.NICSpan{Name: "lo", RxDropped: 600}
		for i := range e.Streams {
			e.Streams[i].Datagrams.SocketDrops = nil
		}
	}
	Summarise(c, nil, Link{})
	if got := where(c.LossPlaces); got != "receiver socket 700, path 700, receiver backlog 600" {
		t.Errorf("%q", got)
	}
	if isMissing(c, "loss at the receiver ring") {
		t.Errorf("lo has no ring to miss: %v", c.Missing)
	}
}

// TestUnseen: if counters are missing, the path's share says so.
func TestUnseen(t *testing.T) {
	c := datagramCell(1000)
	flow(c).Sender.Host, flow(c).Receiver.Host.NIC = nil, nil
	Summarise(c, twoHosts(), Link{})
	for _, place := range []string{measure.LossSender, measure.LossQdisc, measure.LossSendNIC, measure.LossRing, measure.LossRecvNIC} {
		if !isMissing(c, "loss at the "+place) {
			t.Errorf("%s is not said to be unseen: %v", place, c.Missing)
		}
	}
	if isMissing(c, "loss at the "+measure.LossSocket) || isMissing(c, "loss at the "+measure.LossBacklog) {
		t.Errorf("places that were read are missing: %v", c.Missing)
	}
}

// TestAttributeNeverExceeds: places sum to the loss, whatever the counters say.
func TestAttributeNeverExceeds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lost := rapid.Int64Range(-5, math.MaxInt64).Draw(t, "lost")
		all := rapid.SliceOf(rapid.Custom(func(t *rapid.T) drops {
			return drops{place: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "place"), n: rapid.Int64Min(1).Draw(t, "n"),
				each: rapid.Float64Range(1, 128).Draw(t, "each"), exact: rapid.Bool().Draw(t, "exact")}
		})).Draw(t, "counters")
		var sum int64
		for _, p := range attribute(lost, all) {
			if p.Packets <= 0 {
				t.Fatalf("%+v", p)
			}
			sum += p.Packets
		}
		if sum != max(lost, 0) {
			t.Fatalf("%d of %d are laid to a place", sum, lost)
		}
	})
}

// TestDatagramWarnings breaks one thing at a time.
func TestDatagramWarnings(t *testing.T) {
	tests := []struct {
		name string
		lost int64
		set  func(*measure.Cell)
		want string
	}{
		{"at the socket", 10_000, func(c *measure.Cell) {
			for i := range flow(c).Receiver.Streams {
				flow(c).Receiver.Streams[i].Datagrams.SocketDrops = new(int64(10_000))
			}
		}, "2.14% of the datagrams were lost, all of them at the receiver's socket buffer: not the path"},
		{"the sender is faster than the receiver", 10_000, func(c *measure.Cell) { flow(c).Receiver.Host.NIC.RxErrors = 20_000 }, "the sender is faster than the receiver"},
		{"on the path", 10_000, nil, "2.14% of the datagrams were lost, all of them on the path"},
		{"two places", 10_000, func(c *measure.Cell) { flow(c).Sender.Host.Qdisc.Drops = 5000 }, "75% of them on the path, 25% of them in the sender's queue (qdisc)"},
		{"as fast as it goes", 10_000, func(c *measure.Cell) { c.Spec.Rate = 0 }, "faster than the path carries: set a rate (-b)"},
		{"not the rate asked for", 0, func(c *measure.Cell) { c.Spec.Rate = 2e9 }, "the sender reached only 1.00 Gb/s of the requested 2.00 Gb/s: none of its CPUs was full"},
		{"not the rate for want of CPU", 0, func(c *measure.Cell) { c.Spec.Rate, flow(c).Sender.Host = 2e9, hostSpan(97, 5) }, "its CPU 0 was 97% busy; more streams (-P)"},
		{"fragments", 0, func(c *measure.Cell) { c.Spec.Length.Send = 8192 }, "each datagram is sent in 6 fragments, and the loss of one loses the datagram: -l 1472 fits the MTU of 1500"},
		{"late ones", 0, func(c *measure.Cell) {
			d := flow(c).Receiver.Streams[0].DatagramsAll
			d.Reordered, d.ReorderMost = 9341, 12
		}, "1% of the datagrams arrived out of order, up to 12 places late"},
		{"twice", 0, func(c *measure.Cell) { flow(c).Receiver.Streams[0].DatagramsAll.Duplicates = 1 }, "1 datagram arrived more than once"},
		{"of others", 0, func(c *measure.Cell) { flow(c).Receiver.Streams[0].Datagrams.Foreign = 3 }, "3 datagrams of other senders arrived at the test's port"},
		{"damaged on the way", 0, func(c *measure.Cell) { flow(c).Receiver.Host.Proto["Udp.InCsumErrors"] = 4 }, "4 datagrams arrived damaged at the receiver's host"},
		{"most of it before the measured time", 1000, func(c *measure.Cell) {
			for i := range flow(c).Receiver.Streams {
				flow(c).Receiver.Streams[i].Datagrams.Lost = 10
			}
		}, "of the datagrams were lost; of the 20 lost in the measured time"},
		{"damaged", 0, func(c *measure.Cell) {
			flow(c).Receiver.Streams[1].Checked = &measure.Checked{Bytes: 1e6, WrongBytes: 12, FirstWrong: new(int64(77))}
		}, "the data arrived damaged: 12 of 1 000 000 bytes differ from what was sent, first in datagram 77"},
	}
	for _, tt := range tests {
		c := datagramCell(tt.lost)
		if Summarise(c, twoHosts(), Link{}); tt.set != nil && warned(c, tt.want) {
			t.Errorf("%s: warned without a cause: %q", tt.name, c.Warnings)
		}
		if tt.set != nil {
			tt.set(c)
		}
		if Summarise(c, twoHosts(), Link{}); !warned(c, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, c.Warnings, tt.want)
		}
	}
	quiet := datagramCell(0)
	if Summarise(quiet, twoHosts(), Link{}); len(quiet.Warnings) != 1 {
		t.Errorf("warnings of a clean run: %q", quiet.Warnings)
	}
}

func TestVerified(t *testing.T) {
	c := datagramCell(0)
	c.Spec.Verify = true
	if Summarise(c, nil, Link{}); c.Checked != nil || !isMissing(c, "verified") {
		t.Errorf("%+v, missing %v", c.Checked, c.Missing)
	}
	for i := range flow(c).Receiver.Streams {
		flow(c).Receiver.Streams[i].Checked = &measure.Checked{Bytes: 100}
	}
	if Summarise(c, nil, Link{}); c.Checked == nil || c.Checked.Bytes != 200 || isMissing(c, "verified") {
		t.Errorf("%+v, missing %v", c.Checked, c.Missing)
	}
}
