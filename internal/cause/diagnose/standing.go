package diagnose

import (
	"math"

	"thru/internal/measure"
)

// A queue is judged by the number of packets in it, which is its delay times the rate of its port: 1 ms is one
// packet at 10 Mb/s, and 800 at 10 Gb/s.
const (
	ShortRow = 16  // packets wait behind each other on any path; a full queue has more
	fewRow   = 4   // of a slow port, where they explain a round trip that more than doubles
	longRow  = 128 // of a fast port, where so many wait for less time than hosts may add
)

// Queued returns the ratio of the round-trip time under load to the minimum, and the difference in ns.
func (f *Flow) Queued() (times, by float64, ok bool) {
	loaded, base, ok := f.RTT()
	if !ok || base <= 0 {
		return 0, 0, false
	}
	return loaded / base, loaded - base, true
}

// HasQueue reports whether the flow itself fills a queue on the path.
func (f *Flow) HasQueue() bool {
	times, by, ok := f.Queued()
	if !ok || by <= 0 || by < fullShare*f.mostQueued() {
		return false
	}
	row := by / 1e9 * f.Rate() / 8 / f.Segment()
	switch {
	case times > 2 && by > 3e6:
		return row >= fewRow
	case times > 1.4 && by > 0.7e6 || times > 1.15 && by > 3e6:
		return row >= ShortRow
	}
	return times > 2 && by > 0.2e6 && row >= longRow && !f.Sender.IsFull() && !f.Receiver.IsFull()
}

// mostQueued returns by how much the longest round-trip reading exceeds the minimum, in ns; 0 if only means are
// known.
func (f *Flow) mostQueued() float64 {
	base, _ := f.BaseRTT()
	most := 0.0
	for _, s := range f.Sender.Streams() {
		if s.Timeline != nil && s.Timeline.RTT != nil {
			most = max(most, s.Timeline.RTT.Max-base)
		}
	}
	return most
}

// empties reports whether the queue ran empty within the run: it absorbs bursts, and is not a standing queue.
func (f *Flow) empties() bool {
	base, ok := f.BaseRTT()
	least := math.Inf(1)
	for _, s := range f.Sender.Streams() {
		if s.Timeline != nil && s.Timeline.RTT != nil {
			least = min(least, s.Timeline.RTT.Min)
		}
	}
	return ok && least-base < stillShare*f.mostQueued()
}

// Thresholds of a window's or buffer's size relative to what the empty path holds at this rate.
const (
	FitsBar  = 1.5 // below it nearly all of it is in flight
	roomyBar = 2   // from here half of it or more is in a queue
)

// Room returns the ratio of a window or buffer of so many bytes per stream to what the empty path holds at this
// rate; 0 if it is not known.
func (f *Flow) Room(bytes float64) float64 {
	base, ok := f.BaseRTT()
	bps := f.Rate()
	if !ok || base <= 0 || bps <= 0 {
		return 0
	}
	return bytes * 8e9 / base * float64(max(1, len(f.Sender.Streams()))) / bps
}

// Lengthens reports whether more than so many bytes per stream would only lengthen a queue: half of them already
// fill the path, as a flat rate shows, or far less.
func (f *Flow) Lengthens(bytes float64) bool {
	flat, known := f.Flatness()
	room := f.Room(bytes)
	return f.HasQueue() && (room >= 2*roomyBar || room >= roomyBar && known && flat < FlatBar)
}

// WindowBinds reports whether the receiver's window limits the sender, and not a queue that the window fills.
func (f *Flow) WindowBinds() bool {
	held, _, _ := f.WindowLimited()
	w, _ := f.SendWindow()
	behind, _ := f.UnreadShare()
	return held > RwndBar && (behind > UnreadBar || !f.Lengthens(w))
}

// Thresholds of the datagrams' waiting time, in ns.
const (
	hostWait   = 100e3 // bursts of a sender and batches of a receiver cause this much without a queue
	unseenWait = 1e6   // without a known maximum delay, a host that stalled once may have caused less
)

// fullShare is the least ratio of the mean to the maximum delay behind a queue that stays full: measured round
// trips gave 0.4 to 1; if a host stalled once it is far less.
const (
	fullShare  = 0.25
	stillShare = 0.1 // far less
)

// Two clocks drift apart by at most 100 ppm: an Ethernet port keeps within 100 (IEEE 802.3), a host's oscillator
// mostly within 50. Delays that grow evenly average half of their maximum.
const (
	driftShare = 100e-6 / 2
	evenGrowth = 0.6
)

// Wait is how long the received datagrams waited above the minimum.
type Wait struct {
	Mean, most float64 // ns; 0: not known
	row        float64 // ns that ShortRow packets take at the received rate
	drift      float64 // ns of the mean that clock drift may explain
	known      bool
}

// WaitOf returns the waiting time of a cell.
func WaitOf(c *measure.Cell) Wait {
	d := c.Datagrams
	if d == nil || d.DelayMeanNs == nil {
		return Wait{}
	}
	w := Wait{Mean: float64(*d.DelayMeanNs), row: hostWait, drift: driftShare * float64(c.Spec.Duration), known: true}
	if bps := RateOf(c); bps > 0 {
		w.row = max(hostWait, ShortRow*8e9*float64(d.Bytes)/bps)
	}
	if d.SkewPPM != nil { // the receiver removed it
		w.drift = 0
	}
	if d.DelayMaxNs != nil {
		w.most = float64(*d.DelayMaxNs)
	}
	return w
}

// Stands reports whether the datagrams stood in a queue that was full throughout. If that cannot be told, neither
// Stands nor IsClear is true.
func (w Wait) Stands() bool {
	switch {
	case !w.known || w.Mean < w.row:
		return false
	case w.most <= 0:
		return w.Mean >= unseenWait && w.Mean > w.drift
	case w.Mean <= w.drift:
		return w.Mean >= evenGrowth*w.most
	}
	return w.Mean >= fullShare*w.most
}

// IsClear reports whether there was no standing queue: datagrams hardly waited, or slightly longer because a host
// stalled now and then.
func (w Wait) IsClear() bool {
	return w.known && (w.Mean < w.row || w.Mean < 2*w.row && w.Mean < stillShare*w.most)
}
