package diagnose

import (
	"math"

	"thru/internal/measure"
)

// A queue is judged by how many packets stand in it, which is its delay times
// the rate of its port: 1 ms is one packet at 10 Mb/s, and 800 at 10 Gb/s.
const (
	ShortRow = 16  // packets wait behind each other on any path; a queue that is full has more
	fewRow   = 4   // of a slow port, where a round trip that more than doubles is theirs
	longRow  = 128 // of a fast port, where so many wait for less than hosts may take
)

// Queued tells by how many times its least the round trip grew under load, and
// by how much in ns.
func (f *Flow) Queued() (times, by float64, ok bool) {
	loaded, base, ok := f.RTT()
	if !ok || base <= 0 {
		return 0, 0, false
	}
	return loaded / base, loaded - base, true
}

// HasQueue tells whether a queue on the path is filled by the flow itself.
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

// mostQueued is by how much the longest reading of the round trip exceeds the
// least, in ns; 0 where only means are known.
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

// empties tells that the queue ran empty within the run: it holds bursts, and does not stand.
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

// Bars of what a window or a buffer holds, of what the empty path does at this rate.
const (
	FitsBar  = 1.5 // below it nearly all of it is under way
	roomyBar = 2   // from here on half of it or more stands in a queue
)

// Room is by how many times a window or buffer of so many bytes a stream
// exceeds what the empty path holds at this rate; 0 where it is not known.
func (f *Flow) Room(bytes float64) float64 {
	base, ok := f.BaseRTT()
	bps := f.Rate()
	if !ok || base <= 0 || bps <= 0 {
		return 0
	}
	return bytes * 8e9 / base * float64(max(1, len(f.Sender.Streams()))) / bps
}

// Lengthens tells that more than so many bytes a stream would only make a queue
// longer: the path is full with half of them, which a flat rate shows, or with far less.
func (f *Flow) Lengthens(bytes float64) bool {
	flat, known := f.Flatness()
	room := f.Room(bytes)
	return f.HasQueue() && (room >= 2*roomyBar || room >= roomyBar && known && flat < FlatBar)
}

// WindowBinds tells whether the receiver's window is what holds the sender up,
// and no queue that it fills.
func (f *Flow) WindowBinds() bool {
	held, _, _ := f.WindowLimited()
	w, _ := f.SendWindow()
	behind, _ := f.UnreadShare()
	return held > RwndBar && (behind > UnreadBar || !f.Lengthens(w))
}

// Bars of what datagrams waited, in ns.
const (
	hostWait   = 100e3 // bursts of a sender and batches of a receiver make so much without a queue
	unseenWait = 1e6   // where the greatest delay is not known, a host that stood still for once may have made less
)

// fullShare is how large the mean delay is at least, of the greatest, behind a
// queue that stays full: 0.4 to 1 were measured of round trips; where a host stood
// still for once it is far less.
const (
	fullShare  = 0.25
	stillShare = 0.1 // far less
)

// Two clocks drift apart by 100 ppm at most: a port of Ethernet keeps its own
// within 100 (IEEE 802.3), an oscillator of a host mostly within 50. Delays that
// grow evenly are half of their greatest on average.
const (
	driftShare = 100e-6 / 2
	evenGrowth = 0.6
)

// Wait is how long the datagrams that came through waited over the least.
type Wait struct {
	Mean, most float64 // ns; 0: not known
	row        float64 // ns that shortRow packets take at the rate that came through
	drift      float64 // ns of the mean that clocks may have made which drift apart
	known      bool
}

// WaitOf is that of a cell.
func WaitOf(c *measure.Cell) Wait {
	d := c.Datagrams
	if d == nil || d.DelayMeanNs == nil {
		return Wait{}
	}
	w := Wait{Mean: float64(*d.DelayMeanNs), row: hostWait, drift: driftShare * float64(c.Spec.Duration), known: true}
	if bps := RateOf(c); bps > 0 {
		w.row = max(hostWait, ShortRow*8e9*float64(d.Bytes)/bps)
	}
	if d.SkewPPM != nil { // the receiver took it out
		w.drift = 0
	}
	if d.DelayMaxNs != nil {
		w.most = float64(*d.DelayMaxNs)
	}
	return w
}

// Stands tells that they stood in a queue that was full all along. Neither this
// nor isClear holds where it cannot be told.
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

// IsClear tells that no queue stood: they hardly waited, or little longer since
// a host stood still now and then.
func (w Wait) IsClear() bool {
	return w.known && (w.Mean < w.row || w.Mean < 2*w.row && w.Mean < stillShare*w.most)
}
