// Package transfer holds the causes of file transfers: which layer of one binds, and why.
package transfer

import (
	"slices"
	"strings"

	"thru/internal/cause/diagnose"
	"thru/internal/measure"
)

// Causes are the causes of a slow file transfer beyond those of a flow: Transfer judges them by the measured
// layers.
func Causes() []diagnose.Rule {
	return []diagnose.Rule{Disk(), Network(), Client(), Cipher(), RoundTrips()}
}

// Transfer is cause.Transfer with this catalogue.
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
	f.Next = strings.Replace(f.Next, "--link-rate", "thru test --link-rate", 1) // no transfer has that flag
	if c.brief(layer) && f.Confidence != measure.Possible {
		f.Confidence, f.Next = measure.Possible, larger(t)+": this run took under a second"
	}
	t.Binds, t.Why = layer, f.Summary
	d.Findings = append([]measure.Finding{f}, c.ofNetwork(layer, f.Cause)...)
}

// brief reports whether the run that shows the layer was too short to be certain.
func (c *scene) brief(layer string) bool {
	run := c.run
	if w := c.wholeRun(); w != nil && (layer == measure.LayerDiskHere || layer == measure.LayerWhole) {
		run = w
	}
	return run.ElapsedNs < briefNs
}

// ofNetwork returns the findings of the network's own test that also apply to the transfer: if the transfer does
// not fill the network, they stay with that test.
func (c *scene) ofNetwork(layer, cause string) []measure.Finding {
	cell := c.networkCell()
	if layer != measure.LayerNetwork || cell == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(cell.Findings), func(x measure.Finding) bool { return x.Cause == measure.CauseNone || x.Cause == cause })
}

// larger says how to transfer more: an existing file has a fixed size.
func larger(t *measure.Transfer) string {
	if t.Asked.From == "generated" {
		return "a larger --size"
	}
	return "a larger file, or generated data"
}

// Outdone reports whether a layer is below a transfer that carried clearly more, and so does not limit it.
func Outdone(t *measure.Transfer, layer string) bool {
	c := newScene(&measure.Document{Transfer: t})
	if c == nil || !slices.Contains(lowerLayers(), layer) {
		return false
	}
	most, known := c.rate(layer)
	return known && c.bps > beyondShare*most
}

// FillsLayer reports whether a rate is that of a layer below the protocol.
func FillsLayer(t *measure.Transfer, bps float64) bool {
	c := scene{t: t}
	return slices.ContainsFunc(lowerLayers(), func(layer string) bool {
		most, known := c.rate(layer)
		return known && fills(bps, most)
	})
}

// judge names the layer that binds: first the disk of this end, then the lower layers that the protocol fills,
// then the protocol.
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

// floor holds if the protocol carries what a layer below it does: the slowest of those that it reaches. It does
// not depend on a layer that it exceeds: the file of a slow disk comes from memory.
func (c *scene) floor() (string, *bound) {
	least, name := 0.0, ""
	for _, l := range lowerLayers() {
		bps, ok := c.rate(l)
		if l == measure.LayerLibrary && isBusy(c.run.HereCPU) {
			continue // busy CPUs limited that layer alone as well: they are the cause
		}
		if ok && fills(c.bps, bps) && (name == "" || bps < least) {
			least, name = bps, l
		}
	}
	if name == "" {
		return "", nil
	}
	p := diagnose.Above(c.proof("share of the rate of the next lower layer", c.bps/least, ""), reachedShare)
	switch name {
	case measure.LayerDiskFar:
		return name, c.farDisk(least, p)
	case measure.LayerLibrary:
		return name, c.clientAlone(least, p)
	}
	return name, c.network(least, p)
}
