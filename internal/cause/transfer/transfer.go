// Package transfer holds the causes of file transfers: which layer of one binds, and
// why.
package transfer

import (
	"slices"
	"strings"

	"thru/internal/cause/diagnose"
	"thru/internal/measure"
)

// Causes are what a file transfer can hang on beside the causes of a flow: Transfer judges
// them by the layers that were measured.
func Causes() []diagnose.Rule {
	return []diagnose.Rule{Disk(), Network(), Client(), Cipher(), RoundTrips()}
}

// Transfer is Transfer by these rules.
func Transfer(d *measure.Document, cat *diagnose.Catalogue) {
	t := d.Transfer
	if t == nil {
		return
	}
	t.Binds, t.Why = "", ""
	c := newScene(d)
	if c == nil {
		return
	}
	c.cat = cat
	layer, o := c.judge()
	if o == nil {
		return
	}
	f := measure.Finding{
		Cause: o.cause, Where: o.Where, Confidence: o.Confidence, Summary: diagnose.Line(o.Text), Evidence: diagnose.Numbers(o.Evidence),
		Effect: o.Effect, Next: o.Next, Fix: o.Fix, Healthy: o.Healthy, Source: "causes.md; docs/transfer.md",
	}
	f.Next = strings.Replace(f.Next, "--link-rate", "thru test --link-rate", 1) // which no transfer has
	if c.brief(layer) && f.Confidence != measure.Possible {
		f.Confidence, f.Next = measure.Possible, larger(t)+": this run took under a second"
	}
	t.Binds, t.Why = layer, f.Summary
	d.Findings = append([]measure.Finding{f}, c.ofNetwork(layer, f.Cause)...)
}

// brief tells whether the run that shows the layer was too short to be sure.
func (c *scene) brief(layer string) bool {
	run := c.run
	if w := c.wholeRun(); w != nil && (layer == measure.LayerDiskHere || layer == measure.LayerWhole) {
		run = w
	}
	return run.ElapsedNs < briefNs
}

// ofNetwork are the findings of the network's own test that are said of the transfer
// too: those of a network that it does not fill stand with that test alone.
func (c *scene) ofNetwork(layer, cause string) []measure.Finding {
	cell := c.networkCell()
	if layer != measure.LayerNetwork || cell == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(cell.Findings), func(x measure.Finding) bool { return x.Cause == measure.CauseNone || x.Cause == cause })
}

// larger is how more is moved: a file that is there has the size that it has.
func larger(t *measure.Transfer) string {
	if t.Asked.From == "generated" {
		return "a larger --size"
	}
	return "a larger file, or generated data"
}

// Outdone tells whether a layer is one below a transfer that carried clearly more: so it
// holds nothing.
func Outdone(t *measure.Transfer, layer string) bool {
	c := newScene(&measure.Document{Transfer: t})
	if c == nil || !slices.Contains(lowerLayers(), layer) {
		return false
	}
	most, known := c.rate(layer)
	return known && c.bps > beyondShare*most
}

// FillsLayer tells whether a rate is what a layer below the protocol carries.
func FillsLayer(t *measure.Transfer, bps float64) bool {
	c := scene{t: t}
	return slices.ContainsFunc(lowerLayers(), func(layer string) bool {
		most, known := c.rate(layer)
		return known && fills(bps, most)
	})
}

// judge names the layer that binds: first what the disk of this end adds to the
// protocol, then the lower layers that the protocol fills, then the protocol.
func (c *scene) judge() (string, *bound) {
	if layer, o := c.diskHere(); o != nil {
		return layer, o
	}
	if layer, o := c.floor(); o != nil {
		return layer, o
	}
	for _, rule := range []func() *bound{c.buffer, c.sureTCP, c.cipher, c.tcp, c.peerWindow, c.roundTrips, c.open} {
		if o := rule(); o != nil {
			return c.run.Layer, o
		}
	}
	return "", nil
}

// floor holds where the protocol carries what a layer below it does: the least of
// those that it reaches. A layer that it exceeds it does not hang on: the file of a
// slow disk comes out of memory.
func (c *scene) floor() (string, *bound) {
	least, name := 0.0, ""
	for _, l := range lowerLayers() {
		bps, ok := c.rate(l)
		if l == measure.LayerLibrary && isBusy(c.run.HereCPU) {
			continue // busy CPUs held it alone as well: they are the cause
		}
		if ok && fills(c.bps, bps) && (name == "" || bps < least) {
			least, name = bps, l
		}
	}
	if name == "" {
		return "", nil
	}
	p := diagnose.Above(c.proof("share of the rate of the layer below", c.bps/least, ""), reachedShare)
	switch name {
	case measure.LayerDiskFar:
		return name, c.farDisk(least, p)
	case measure.LayerLibrary:
		return name, c.clientAlone(least, p)
	}
	return name, c.network(least, p)
}
