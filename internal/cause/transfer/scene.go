package transfer

import (
	"thru/internal/cause/diagnose"
	"thru/internal/measure"
)

// Causes that only a file transfer has.
const (
	causeDisk       = "disk"        // a disk is no faster
	causeNetwork    = "network"     // the rate from memory to memory is reached
	causeClient     = "client"      // the program that moves the bytes is no faster
	causeCipher     = "cipher-cpu"  // one stream's cipher takes a whole CPU
	causeRoundTrips = "round-trips" // the protocol waits for answers: requests in flight / RTT
)

// Thresholds of transfers.
const (
	reachedShare = 0.85 // of a layer's rate: from there ...
	nearlyMore   = 1.05 // a rate up to this ratio above a layer's is "about as much"
	beyondShare  = 1.25 // ... to here that layer binds; a transfer that carried more did not depend on it
	waitedShare  = 60.0 // percent of the time spent in this end's file: it binds from here
	busyCores    = 0.85 // of one CPU, used by this process: one stream fills it
	busyMachine  = 95.0 // percent of all CPUs of this machine
	farNs        = 1e6  // round trip in ns from which waiting for answers costs
	briefNs      = 1e9  // a run shorter than this says little
	windowLow    = 0.6  // of window over round trip: a rate from here ...
	nearLow      = 0.2  // the same on a short path, where a window also waits for the program to wake up
	sentLow      = 0.4  // the same for a send buffer, in which a kernel includes its own overhead
	windowHigh   = 1.3  // ... to here the rate is that of the window, or of the requests in flight
)

// scene is one transfer with the data that its rules need.
type scene struct {
	doc *measure.Document
	cat *diagnose.Catalogue
	t   *measure.Transfer
	run *measure.TransferRun // over memory, else the whole transfer
	bps float64              // the rate of run
}

// bound is the result of a rule of transfers.
type bound struct {
	cause string
	diagnose.Outcome
}

func binds(cause, confidence, format string, args ...any) *bound {
	return &bound{cause, *diagnose.HoldsWith(confidence, format, args...)}
}

func newScene(d *measure.Document) *scene {
	t := d.Transfer
	c := &scene{doc: d, t: t}
	for i := range t.Runs {
		r := &t.Runs[i]
		if r.Bps != nil && r.Error == nil && (c.run == nil || r.Layer == measure.LayerMemory) {
			c.run, c.bps = r, r.Bps.Value
		}
	}
	if c.run == nil {
		return nil
	}
	if _, _, refuted := MemoryRefuted(t); refuted {
		c.run = c.wholeRun()
		c.bps = c.run.Bps.Value
	}
	return c
}

// rate returns that of a layer; false if it was not measured.
func (c *scene) rate(name string) (float64, bool) {
	for _, l := range c.t.Layers {
		if l.Name == name && l.Bps != nil && *l.Bps > 0 {
			return *l.Bps, true
		}
	}
	return 0, false
}

func (c *scene) here() measure.Where {
	place := measure.AtReceiver
	if c.t.Direction == measure.Upload {
		place = measure.AtSender
	}
	return measure.Where{Place: place, EndPoint: "local"}
}

func (c *scene) there() measure.Where {
	place := measure.AtSender
	if c.t.Direction == measure.Upload {
		place = measure.AtReceiver
	}
	return measure.Where{Place: place}
}

func (c *scene) proof(counter string, value float64, unitName string) measure.Proof {
	return proofOf(c.run, counter, value, unitName)
}

// wholeRun returns the run over this end's disk; nil if there was none.
func (c *scene) wholeRun() *measure.TransferRun {
	for i := range c.t.Runs {
		if r := &c.t.Runs[i]; r.Layer == measure.LayerWhole && r.Bps != nil && r.Error == nil {
			return r
		}
	}
	return nil
}

// clients returns how many work at once; every layer is the sum of that many.
func (c *scene) clients() int { return max(c.t.Asked.Clients, 1) }

// connections returns how many carry data at once: a client may open them one after the other.
func (c *scene) connections() int { return max(min(len(c.run.Sockets), c.clients()), 1) }

// socket returns the connection that carried the most; nil if none was read.
func (c *scene) socket() *measure.Stream {
	if len(c.run.Sockets) == 0 || c.run.Sockets[0].TCP == nil {
		return nil
	}
	return &c.run.Sockets[0]
}

// inRoundTrip returns what a connection carries in a round trip, in bytes.
func (c *scene) inRoundTrip(rtt int64) float64 {
	return c.bps * float64(rtt) / 8e9 / float64(c.connections())
}

// halfOfNetwork reports whether the network carries more than twice as much from memory to memory, with the
// kernel's own buffers.
func (c *scene) halfOfNetwork() bool {
	net, known := c.rate(measure.LayerNetwork)
	return known && c.bps < net/2
}

// server returns the name of the agent at the server; empty without one.
func (c *scene) server() string {
	for _, e := range c.doc.EndPoints {
		if e.Name != "local" {
			return e.Name
		}
	}
	return ""
}

// farEnd returns the place of a cause at the server.
func (c *scene) farEnd() measure.Where {
	w := c.there()
	w.EndPoint = c.server()
	return w
}

func (c *scene) farProof(counter string, value float64, unitName string) measure.Proof {
	p := c.proof(counter, value, unitName)
	p.EndPoint = c.server()
	return p
}

// proofOf returns a reading at this end over the time of a run.
func proofOf(run *measure.TransferRun, counter string, value float64, unitName string) measure.Proof {
	return measure.Proof{EndPoint: "local", Counter: counter, Value: value, Unit: unitName, SpanNs: run.ElapsedNs}
}

// lowerLayers returns the layers below a transfer over memory.
func lowerLayers() []string {
	return []string{measure.LayerDiskFar, measure.LayerNetwork, measure.LayerLibrary}
}

// fills reports whether a rate is about that of a layer. A rate above it does not depend on the layer.
func fills(bps, most float64) bool { return bps >= reachedShare*most && bps <= beyondShare*most }

// Exceeds reports whether a rate is clearly above another.
func Exceeds(bps, than float64) bool { return bps > nearlyMore*than }

// MemoryRefuted reports whether a transfer carried clearly less over memory than over the disk, in bit/s: a layer
// cannot carry more than the one below it, so that layer was measured wrong, and does not bind.
func MemoryRefuted(t *measure.Transfer) (memory, whole float64, refuted bool) {
	for i := range t.Runs {
		switch r := &t.Runs[i]; {
		case r.Bps == nil || r.Error != nil:
		case r.Layer == measure.LayerMemory:
			memory = r.Bps.Value
		case r.Layer == measure.LayerWhole:
			whole = r.Bps.Value
		}
	}
	return memory, whole, memory > 0 && Exceeds(whole, memory)
}

// networkCell returns the test of the network; nil if there was none.
func (c *scene) networkCell() *measure.Cell {
	if len(c.t.Cells) == 0 || c.t.Cells[0] < 0 || c.t.Cells[0] >= len(c.doc.Cells) {
		return nil
	}
	return &c.doc.Cells[c.t.Cells[0]]
}
