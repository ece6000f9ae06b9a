package advise

import (
	"fmt"

	"thru/internal/cause/diagnose"
	"thru/internal/cause/knob"
	"thru/internal/measure"
	"thru/internal/unit"
)

// Streams is a test with another number of them.
func Streams(w *Way, n int, x *measure.Cell) Draft {
	d := Draft{Id: fmt.Sprintf("%s=%d", knob.Streams, n), Title: unit.Count(int64(n)) + " streams", Test: &measure.TestOptions{Streams: n, Flags: fmt.Sprintf("-P %d", n)}}.ForWay(w)
	if n == 1 {
		d.Title = "one stream"
	}
	if x != nil {
		d = w.Shown(d, x)
	}
	return d
}

// MoreStreams are as many as did best in this result, else as many as the end
// with the fewer CPUs has.
func MoreStreams(r Request) []Draft {
	c := r.Way.Cell
	if c == nil {
		return nil
	}
	if x := r.Way.Best(func(x *measure.Cell) bool { return x.Streams > c.Streams && x.Streams <= measure.MaxStreams }); x != nil {
		if x.Goodput.Value < diagnose.GroupGainBar*r.Way.Goodput() {
			return nil // they were measured, and brought nothing
		}
		return []Draft{Streams(r.Way, x.Streams, x)}
	}
	const most = 8 // the default of `thru test` goes no further
	n := most
	for _, h := range Both(r.Way) {
		if h.CPUs() > 0 {
			n = min(n, h.CPUs())
		}
	}
	if n <= c.Streams {
		return nil
	}
	return []Draft{Streams(r.Way, n, nil)}
}
