package diagnose

import (
	"math"

	"thru/internal/measure"
)

// A queue is judged by how many packets stand in it, which is its delay times
// the rate of its port: 1 ms is one packet at 10 Mb/s, and 800 at 10 Gb/s.
const (
	shortRow = 16  // packets wait behind each other on any path; a queue that is full has more
	fewRow   = 4   // of a slow port, where a round trip that more than doubles is theirs
	longRow  = 128 // of a fast port, where so many wait for less than hosts may take
)

// queued tells by how many times its least the round trip grew under load, and
// by how much in ns.
func (f *flow) queued() (times, by float64, ok bool) {
	loaded, base, ok := f.rtt()
	if !ok || base <= 0 {
		return 0, 0, false
	}
	return loaded / base, loaded - base, true
}

// hasQueue tells whether a queue on the path is filled by the flow itself.
func (f *flow) hasQueue() bool {
	times, by, ok := f.queued()
	if !ok || by <= 0 || by < fullShare*f.mostQueued() {
		return false
	}
	mss := f.mss()
	if mss <= 0 {
		mss = usualMSS
	}
	row := by / 1e9 * f.rate() / 8 / mss
	switch {
	case times > 2 && by > 3e6:
		return row >= fewRow
	case times > 1.4 && by > 0.7e6 || times > 1.15 && by > 3e6:
		return row >= shortRow
	}
	return times > 2 && by > 0.2e6 && row >= longRow && !f.sender.isFull() && !f.receiver.isFull()
}

// mostQueued is by how much the longest reading of the round trip exceeds the
// least, in ns; 0 where only means are known.
func (f *flow) mostQueued() float64 {
	base, _ := f.baseRTT()
	most := 0.0
	for _, s := range f.sender.streams() {
		if s.Course != nil && s.Course.RTT != nil {
			most = max(most, s.Course.RTT.Max-base)
		}
	}
	return most
}

// empties tells that the queue ran empty within the run: it holds bursts, and does not stand.
func (f *flow) empties() bool {
	base, ok := f.baseRTT()
	least := math.Inf(1)
	for _, s := range f.sender.streams() {
		if s.Course != nil && s.Course.RTT != nil {
			least = min(least, s.Course.RTT.Min)
		}
	}
	return ok && least-base < stillShare*f.mostQueued()
}

// Bars of what a window or a buffer holds, of what the empty path does at this rate.
const (
	fitsBar  = 1.5 // below it nearly all of it is under way
	roomyBar = 2   // from here on half of it or more stands in a queue
)

// room is by how many times a window or buffer of so many bytes a stream
// exceeds what the empty path holds at this rate; 0 where it is not known.
func (f *flow) room(bytes float64) float64 {
	base, ok := f.baseRTT()
	bps := f.rate()
	if !ok || base <= 0 || bps <= 0 {
		return 0
	}
	return bytes * 8e9 / base * float64(max(1, len(f.sender.streams()))) / bps
}

// lengthens tells that more than so many bytes a stream would only make a queue
// longer: the path is full with half of them, which a flat rate shows, or with far less.
func (f *flow) lengthens(bytes float64) bool {
	flat, known := f.flatness()
	room := f.room(bytes)
	return f.hasQueue() && (room >= 2*roomyBar || room >= roomyBar && known && flat < flatBar)
}

// windowBinds tells whether the receiver's window is what holds the sender up,
// and no queue that it fills.
func (f *flow) windowBinds() bool {
	held, _, _ := f.windowHeld()
	w, _ := f.sendWindow()
	behind, _ := f.unreadShare()
	return held > rwndBar && (behind > unreadBar || !f.lengthens(w))
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

// wait is how long the datagrams that came through waited over the least.
type wait struct {
	mean, most float64 // ns; 0: not known
	row        float64 // ns that shortRow packets take at the rate that came through
	drift      float64 // ns of the mean that clocks may have made which drift apart
	known      bool
}

// waitOf is that of a cell.
func waitOf(c *measure.Cell) wait {
	d := c.Datagrams
	if d == nil || d.DelayMeanNs == nil {
		return wait{}
	}
	w := wait{mean: float64(*d.DelayMeanNs), row: hostWait, drift: driftShare * float64(c.Spec.Duration), known: true}
	if bps := rateOf(c); bps > 0 {
		w.row = max(hostWait, shortRow*8e9*float64(d.Bytes)/bps)
	}
	if d.SkewPPM != nil { // the receiver took it out
		w.drift = 0
	}
	if d.DelayMaxNs != nil {
		w.most = float64(*d.DelayMaxNs)
	}
	return w
}

// stands tells that they stood in a queue that was full all along. Neither this
// nor isClear holds where it cannot be told.
func (w wait) stands() bool {
	switch {
	case !w.known || w.mean < w.row:
		return false
	case w.most <= 0:
		return w.mean >= unseenWait && w.mean > w.drift
	case w.mean <= w.drift:
		return w.mean >= evenGrowth*w.most
	}
	return w.mean >= fullShare*w.most
}

// isClear tells that no queue stood: they hardly waited, or little longer since
// a host stood still now and then.
func (w wait) isClear() bool {
	return w.known && (w.mean < w.row || w.mean < 2*w.row && w.mean < stillShare*w.most)
}
