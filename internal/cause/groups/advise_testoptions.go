package groups

import (
	"fmt"

	"thru/internal/cause/advise"
	"thru/internal/cause/window"
	"thru/internal/knob"
	"thru/internal/measure"
	"thru/internal/unit"
)

// TestProposals are for options of the test itself, which need no privilege and
// change no host.
func TestProposals() []advise.Rule {
	return []advise.Rule{
		{Cause: "single-flow", Propose: moreStreams},
		{Cause: "lag-one-member", Propose: moreStreams},
		{Cause: "sender-cpu", Propose: severalStreams},
		{Cause: "receiver-cpu", Propose: severalStreams},
		{Cause: "too-many-streams", Propose: fewerStreams},
		{Cause: "app-limited", Propose: longerMessages},
	}
}

// gainBar is from where on another measurement speaks for what it did: a change
// has to bring 2% (package stat).
const gainBar = 1.02

// streams is a test with another number of them.
func streams(w *advise.Way, n int, x *measure.Cell) advise.Draft {
	d := advise.Draft{Id: fmt.Sprintf("%s=%d", knob.Streams, n), Title: unit.Count(int64(n)) + " streams", Test: &measure.TestOptions{Streams: n, Flags: fmt.Sprintf("-P %d", n)}}.ForWay(w)
	if n == 1 {
		d.Title = "one stream"
	}
	if x != nil {
		d = w.Shown(d, x)
	}
	return d
}

// moreStreams are as many as did best in this result, else as many as the end
// with the fewer CPUs has.
func moreStreams(r advise.Request) []advise.Draft {
	c := r.Way.Cell
	if c == nil {
		return nil
	}
	if x := r.Way.Best(func(x *measure.Cell) bool { return x.Streams > c.Streams && x.Streams <= measure.MaxStreams }); x != nil {
		if x.Goodput.Value < gainBar*r.Way.Goodput() {
			return nil // they were measured, and brought nothing
		}
		return []advise.Draft{streams(r.Way, x.Streams, x)}
	}
	const most = 8 // the default of `thru test` goes no further
	n := most
	for _, h := range window.Both(r.Way) {
		if h.CPUs() > 0 {
			n = min(n, h.CPUs())
		}
	}
	if n <= c.Streams {
		return nil
	}
	return []advise.Draft{streams(r.Way, n, nil)}
}

// severalStreams are for one stream whose CPU is full: last, since a program
// that has only one connection has nothing of it.
func severalStreams(r advise.Request) []advise.Draft {
	if r.Way.Cell == nil || r.Way.Cell.Streams > 1 {
		return nil
	}
	list := moreStreams(r)
	for i := range list {
		list[i] = list[i].AtLast()
	}
	return list
}

func fewerStreams(r advise.Request) []advise.Draft {
	c := r.Way.Cell
	if c == nil || c.Streams <= 1 {
		return nil
	}
	if x := r.Way.Best(func(x *measure.Cell) bool { return x.Streams < c.Streams && x.Streams > 0 }); x != nil {
		if x.Goodput.Value < gainBar*r.Way.Goodput() {
			return nil
		}
		return []advise.Draft{streams(r.Way, x.Streams, x)}
	}
	return []advise.Draft{streams(r.Way, max(1, c.Streams/2), nil)}
}

// longerMessages are for a program that hands over little at a time.
func longerMessages(r advise.Request) []advise.Draft {
	c := r.Way.Cell
	const want = 1 << 20
	if c == nil || c.Protocol != measure.TCP || c.Spec.Rate > 0 || c.Spec.Length == (measure.Pair{}) || min(c.Spec.Length.Send, c.Spec.Length.Recv) >= 64<<10 {
		return nil
	}
	d := advise.Draft{Id: knob.Length + "=1M", Title: "messages of 1 MiB", Test: &measure.TestOptions{Length: &measure.Pair{Send: want, Recv: want}, Flags: "-l 1M"}}.ForWay(r.Way).
		Bring(0, "docs/causes.md, app-limited", "fewer calls for the same data: 0.74 to 13.8 Gb/s where this was the fault")
	if x := r.Way.Best(func(x *measure.Cell) bool { return x.Spec.Length.Send == want && x.Streams == c.Streams }); x != nil {
		d = r.Way.Shown(d, x)
	}
	return []advise.Draft{d}
}
