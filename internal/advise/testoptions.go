package advise

import (
	"fmt"

	"thru/internal/knob"
	"thru/internal/measure"
	"thru/internal/unit"
)

// testRules are for options of the test itself, which need no privilege and
// change no host.
func testRules() []rule {
	return []rule{
		{"single-flow", moreStreams},
		{"lag-one-member", moreStreams},
		{"sender-cpu", severalStreams},
		{"receiver-cpu", severalStreams},
		{"too-many-streams", fewerStreams},
		{"app-limited", longerMessages},
	}
}

// gainBar is from where on another measurement speaks for what it did: a change
// has to bring 2% (package stat).
const gainBar = 1.02

// streams is a test with another number of them.
func (w *way) streams(n int, x *measure.Cell) draft {
	d := draft{id: fmt.Sprintf("%s=%d", knob.Streams, n), title: unit.Count(int64(n)) + " streams", test: &measure.TestOptions{Streams: n, Flags: fmt.Sprintf("-P %d", n)}}.forWay(w)
	if n == 1 {
		d.title = "one stream"
	}
	if x != nil {
		d = w.shown(d, x)
	}
	return d
}

// moreStreams are as many as did best in this result, else as many as the end
// with the fewer CPUs has.
func moreStreams(r request) []draft {
	c := r.way.cell
	if c == nil {
		return nil
	}
	if x := r.way.best(func(x *measure.Cell) bool { return x.Streams > c.Streams && x.Streams <= measure.MaxStreams }); x != nil {
		if x.Goodput.Value < gainBar*r.way.goodput() {
			return nil // they were measured, and brought nothing
		}
		return []draft{r.way.streams(x.Streams, x)}
	}
	const most = 8 // the default of `thru test` goes no further
	n := most
	for _, h := range r.way.both() {
		if h.cpus() > 0 {
			n = min(n, h.cpus())
		}
	}
	if n <= c.Streams {
		return nil
	}
	return []draft{r.way.streams(n, nil)}
}

// severalStreams are for one stream whose CPU is full: last, since a program
// that has only one connection has nothing of it.
func severalStreams(r request) []draft {
	if r.way.cell == nil || r.way.cell.Streams > 1 {
		return nil
	}
	list := moreStreams(r)
	for i := range list {
		list[i] = list[i].atLast()
	}
	return list
}

func fewerStreams(r request) []draft {
	c := r.way.cell
	if c == nil || c.Streams <= 1 {
		return nil
	}
	if x := r.way.best(func(x *measure.Cell) bool { return x.Streams < c.Streams && x.Streams > 0 }); x != nil {
		if x.Goodput.Value < gainBar*r.way.goodput() {
			return nil
		}
		return []draft{r.way.streams(x.Streams, x)}
	}
	return []draft{r.way.streams(max(1, c.Streams/2), nil)}
}

// longerMessages are for a program that hands over little at a time.
func longerMessages(r request) []draft {
	c := r.way.cell
	const want = 1 << 20
	if c == nil || c.Protocol != measure.TCP || c.Spec.Rate > 0 || c.Spec.Length == (measure.Pair{}) || min(c.Spec.Length.Send, c.Spec.Length.Recv) >= 64<<10 {
		return nil
	}
	d := draft{id: knob.Length + "=1M", title: "messages of 1 MiB", test: &measure.TestOptions{Length: &measure.Pair{Send: want, Recv: want}, Flags: "-l 1M"}}.forWay(r.way).
		bring(0, "docs/causes.md, app-limited", "fewer calls for the same data: 0.74 to 13.8 Gb/s where this was the fault")
	if x := r.way.best(func(x *measure.Cell) bool { return x.Spec.Length.Send == want && x.Streams == c.Streams }); x != nil {
		d = r.way.shown(d, x)
	}
	return []draft{d}
}
