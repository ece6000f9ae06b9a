//go:build vmlab

package vm

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"thru/internal/measure"
)

// guest is the name of the VM in a journey with one VM.
const guest = "guest"

// directions are the senders, in the order in which thru prints them.
var directions = []string{"local", guest}

// TestAdapters measures the same guest with each model of adapter: thru names emulated adapters as the cause,
// and they use more CPU for less rate (S-02).
func TestAdapters(t *testing.T) {
	say("\nadapter         queues   direction        Mb/s   guest's CPU per Gb/s   why not more")
	found := map[string]map[string]*measure.Cell{}
	for _, nic := range []string{E1000, E1000E, VMXNET3, Virtio} {
		t.Run(nic, func(t *testing.T) {
			d := measureAdapter(t, nic)
			judgeDriver(t, d, nic)
			found[nic] = map[string]*measure.Cell{}
			for _, from := range directions {
				c := base(t, d, from)
				found[nic][from] = c
				say("%-15s %6d   %-11s %9.0f %19.0f %%   %s", nic, queues(d), from+" ->", c.Goodput.Value/1e6, perGbps(t, c), causes(c))
				judgeEmulated(t, c, nic == E1000 || nic == E1000E)
			}
		})
	}
	if !t.Failed() {
		judgeModels(t, found[E1000], found[VMXNET3])
	}
}

// judgeModels checks that a paravirtual adapter carries more than an emulated one, for less CPU of the guest.
// It sums both directions, as this machine may be busy in one.
func judgeModels(t *testing.T, emulated, paravirtual map[string]*measure.Cell) {
	t.Helper()
	var slow, fast, dear, cheap float64
	for _, from := range directions {
		slow, fast = slow+emulated[from].Goodput.Value, fast+paravirtual[from].Goodput.Value
		dear, cheap = dear+perGbps(t, emulated[from]), cheap+perGbps(t, paravirtual[from])
	}
	say("vmxnet3 carries %.2f times what e1000 does, for %.2f times less CPU", fast/slow, dear/cheap)
	if fast <= slow || cheap >= dear {
		t.Error("vmxnet3 is not better than e1000")
	}
}

// measureAdapter boots a VM, measures both directions, and ends the VM.
func measureAdapter(t *testing.T, nic string) *measure.Document {
	t.Helper()
	o := newOperator(t)
	o.boot(Spec{Name: guest, Number: 11, NIC: nic})
	return o.measure("test", guest, "-t", "3")
}

// judgeDriver compares what thru says of the guest's adapter with its model.
func judgeDriver(t *testing.T, d *measure.Document, nic string) {
	t.Helper()
	dev := adapter(t, d)
	want := map[string][2]string{E1000: {"e1000", "emulated"}, E1000E: {"e1000e", "emulated"}, VMXNET3: {"vmxnet3", "paravirtual"}, Virtio: {"virtio_net", "paravirtual"}}[nic]
	if dev.Driver == nil || *dev.Driver != want[0] || dev.Kind == nil || *dev.Kind != want[1] {
		t.Errorf("the adapter is %v by %v, want %v", text(dev.Kind), text(dev.Driver), want)
	}
	if dev.InTree == nil || !*dev.InTree {
		t.Error("the driver is the kernel's own, and that is not said")
	}
}

// judgeEmulated checks the findings of a direction: an emulated adapter is a finding of its own, likely while
// a CPU of the guest is full; a guest that responds slowly must not count as a TCP proxy.
func judgeEmulated(t *testing.T, c *measure.Cell, is bool) {
	t.Helper()
	f := finding(c, "emulated-nic")
	if p := finding(c, "tcp-proxy"); p != nil {
		t.Errorf("from %s: nothing lies between, and %s", c.From, p.Summary)
	}
	switch {
	case !is && f != nil:
		t.Errorf("from %s: the adapter is said to be emulated: %s", c.From, f.Summary)
	case is && (f == nil || f.Where.EndPoint != guest || f.BecauseOf != "" || f.Confidence == measure.Possible):
		t.Errorf("from %s: emulated-nic is not named as a cause: %+v", c.From, f)
	}
}

// TestBrokenTSO drops all packets that the adapter should cut into segments, as a broken adapter does: thru
// explain names it (S-06), thru tune repairs it (S-07), and a rollback reverts the change (S-10).
func TestBrokenTSO(t *testing.T) {
	o := newOperator(t)
	v := o.boot(Spec{Name: guest, Number: 11, NIC: VMXNET3})[0]
	// At the tap's ingress the guest's packets are still whole: nothing has cut them yet.
	o.site.Switch.Nft(fmt.Sprintf(`table netdev adapter {
  chain broken {
    type filter hook ingress device %s priority 0
    meta length > 1514 drop
  }
}
`, v.Tap()))

	c := base(t, o.measure("explain", guest, "--reverse", "-t", "3", "--budget", "40"), guest)
	say("\nbroken TSO at the guest: %.2f Mb/s: %s", c.Goodput.Value/1e6, causes(c))
	if f := c.Findings; len(f) == 0 || f[0].Cause != "broken-tso" || f[0].Where.EndPoint != guest {
		t.Errorf("thru explain finds %s, want broken-tso first", causes(c))
	}

	d := o.measure("tune", guest, "--yes", "--reverse", "-t", "2", "--budget", "150s")
	first, last := rateAt(t, d, 0), rateAt(t, d, len(d.Tuning.Journey)-1)
	say("thru tune: %.2f -> %.0f Mb/s: %s", first/1e6, last/1e6, kept(d))
	if !slices.ContainsFunc(d.Tuning.Attempts, keptTSO) || last < 10*first {
		t.Errorf("thru tune has not switched TSO off for more than 10 times the rate: %s", kept(d))
	}
	if out, code := o.thru("", "tune", "--rollback", guest); code != 0 {
		t.Errorf("thru tune --rollback: exit %d: %s", code, out)
	}
	dev := adapter(t, o.measure("test", guest, "-t", "1", "-b", "1M", "--reverse"))
	if !dev.Offloads["tcp-segmentation-offload"] {
		t.Error("after thru tune --rollback TSO is still off")
	}
}

// keptTSO reports whether an attempt changed segmentation offload and was kept.
func keptTSO(a measure.Attempt) bool {
	return a.Outcome == measure.Kept && slices.ContainsFunc(a.Changed, func(c measure.Changed) bool { return c.Knob == "tso" })
}

// kept lists the outcomes of a tuning's attempts.
func kept(d *measure.Document) string {
	var all []string
	for _, a := range d.Tuning.Attempts {
		all = append(all, a.Outcome+" "+a.Title)
	}
	return strings.Join(all, ", ")
}

// rateAt is the goodput in bit/s of data from the guest at a row of a tuning's journey.
func rateAt(t *testing.T, d *measure.Document, row int) float64 {
	t.Helper()
	for _, i := range d.Tuning.Journey[row].Cells {
		if c := d.Cells[i]; c.From == guest && c.Goodput != nil {
			return c.Goodput.Value
		}
	}
	t.Fatalf("row %d of the journey has no rate", row)
	return 0
}

// adapter is the guest's adapter in a document.
func adapter(t *testing.T, d *measure.Document) *measure.Interface {
	t.Helper()
	for _, e := range d.EndPoints {
		if dev := e.Facts.Interface("eth0"); e.Name == guest && dev != nil {
			return dev
		}
	}
	t.Fatal("the document has no adapter of the guest")
	return nil
}

// queues counts the receive queues of the guest's adapter that have counters.
func queues(d *measure.Document) (n int) {
	for _, e := range d.EndPoints {
		if dev := e.Facts.Interface("eth0"); e.Name == guest && dev != nil {
			for _, q := range dev.Counters {
				if strings.HasPrefix(q.Queue, "rx-") {
					n++
				}
			}
		}
	}
	return n
}

// perGbps is the guest's CPU per Gb/s, in percent of one CPU.
func perGbps(t *testing.T, c *measure.Cell) float64 {
	t.Helper()
	cpu := c.ReceiverCPU
	if c.From == guest {
		cpu = c.SenderCPU
	}
	if cpu == nil || cpu.PctPerGbps == nil {
		t.Fatalf("from %s: no CPU figure of the guest", c.From)
	}
	return *cpu.PctPerGbps
}

// finding is the finding with that cause, or nil.
func finding(c *measure.Cell, cause string) *measure.Finding {
	for i := range c.Findings {
		if c.Findings[i].Cause == cause {
			return &c.Findings[i]
		}
	}
	return nil
}

// causes lists the causes of a cell, without those that are only possible.
func causes(c *measure.Cell) string {
	var all []string
	for _, f := range c.Findings {
		if f.Confidence != measure.Possible {
			all = append(all, f.Cause+"@"+f.Where.Place)
		}
	}
	return strings.Join(all, " ")
}

// text prints a text that may be absent.
func text(s *string) string {
	if s == nil {
		return "none"
	}
	return *s
}
