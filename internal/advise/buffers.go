package advise

import (
	"fmt"
	"strings"

	"thru/internal/knob"
	"thru/internal/measure"
	"thru/internal/unit"
)

// bufferRules are for what holds less than the path does: the buffers of both
// ends, and those that were set by hand.
func bufferRules() []rule {
	return []rule{
		{"receive-window", receiveWindow},
		{"send-buffer", sendBuffer},
		{"fixed-window", fixedWindow},
	}
}

// Greatest buffers that Linux begins with on a host with memory enough
// (ip-sysctl.rst). A host that has less was set so by somebody.
const (
	usualRmem = 6 << 20
	usualWmem = 4 << 20
)

// mostBuffer is the greatest that is proposed, in bytes.
const mostBuffer = 1 << 30

// side is one of the two buffers of a direction.
type side struct {
	knob  string
	h     *host
	usual int64
	part  int64 // of it so much can be under way: a half of the receiver's (bookkeeping), all of the sender's
	what  string
	lower string // least and first size where they are not known (tcp(7))
}

func (w *way) receiver() side {
	return side{knob.TCPRmem, w.to, usualRmem, 2, "receive windows", "4096 131072"}
}

func (w *way) sender() side {
	return side{knob.TCPWmem, w.from, usualWmem, 1, "send buffers", "4096 16384"}
}

// holds is what one connection can have under way now, in bytes; 0 not known.
func (s side) holds() int64 { return s.h.state(s.knob, "").number() / s.part }

// raise is the change that lets a connection of this side have what the path
// needs under way: three times the window, as package gate says it: twice for
// what the kernel keeps of it, and half as much again for the queue of the
// path. It is never less than Linux's own default, nor than twice of what it is
// where a finding says that it binds. ok is false where it is large enough.
func (s side) raise(w *way, binds bool) (d draft, ok bool) {
	has := s.h.state(s.knob, "")
	if w.cell != nil && (s.part == 1 && w.cell.Spec.Window.Send > 0 || s.part > 1 && w.cell.Spec.Window.Recv > 0) {
		return draft{}, false // it was set by hand: what the kernel would tune does not count
	}
	want := max(3*w.window(), s.usual)
	if n := has.number(); binds && n >= want {
		want = 2 * min(n, mostBuffer)
	}
	step := int64(64 << 10)
	if want > 16<<20 {
		step = 1 << 20
	}
	want = min(roundUp(want, step), mostBuffer)
	if has.number() >= want {
		return draft{}, false
	}
	lower := s.lower
	if f := strings.Fields(has.value); len(f) == 3 {
		lower = f[0] + " " + f[1]
	}
	holds := want / s.part
	d = change(s.h, s.knob, "", fmt.Sprintf("%s %d", lower, want), "%s of up to %s at %s", s.what, unit.Size(holds), s.h.name).forWay(w)
	return s.expect(d, w, holds), true
}

// anyRate is one that no single connection exceeds, in bit/s: a window for that is no figure to expect.
const anyRate = 100e9

// expect words what the window carries.
func (s side) expect(d draft, w *way, holds int64) draft {
	carries := w.carries(holds)
	if carries <= 0 {
		return d
	}
	if w.ceiling() <= 0 && carries >= anyRate {
		return d.bring(0, "RFC 6349, section 3.3.1", "no longer a bound: %s of window are enough for any rate at %s of RTT", unit.Size(holds), unit.Duration(w.rtt()))
	}
	text := fmt.Sprintf("up to %s: %s of window x 8 / %s of RTT", unit.Rate(carries), unit.Size(holds), unit.Duration(w.rtt()))
	if w.ceiling() > 0 && carries >= w.ceiling() {
		text = fmt.Sprintf("up to the %s that the link carries: %s of window are enough at %s of RTT", unit.Rate(carries), unit.Size(holds), unit.Duration(w.rtt()))
	}
	if bps, of := w.rate(); w.ceiling() <= 0 && bps > 0 && carries > bps { // what a window would hold is no rate of a path
		carries, text = bps, fmt.Sprintf("enough for %s, %s: %s of window at %s of RTT", unit.Rate(bps), of, unit.Size(holds), unit.Duration(w.rtt()))
	}
	return d.bring(carries, "RFC 6349, section 3.3.1", "%s", text)
}

// isTight tells that a request is about a buffer that is known to hold less than the path needs.
func (r request) isTight() bool {
	if r.way == nil || r.cause != "receive-window" && r.cause != "send-buffer" {
		return false
	}
	own := r.way.receiver()
	if r.cause == "send-buffer" {
		own = r.way.sender()
	}
	holds := own.holds()
	return r.way.mayBeHeld() && own.h == r.at && holds > 0 && holds < r.way.window()
}

func receiveWindow(r request) []draft { return r.buffers(r.way.receiver(), r.way.sender()) }
func sendBuffer(r request) []draft    { return r.buffers(r.way.sender(), r.way.receiver()) }

// buffers raises the one that binds. Where the other end's is too small for the
// path as well, each alone may show no gain: then that one, and both together.
func (r request) buffers(own, other side) []draft {
	w := r.way
	if r.gate != nil && !w.mayBeHeld() {
		return nil
	}
	var list []draft
	first, ok := own.raise(w, r.finding != nil && r.finding.BecauseOf == "")
	if ok {
		list = append(list, first)
	}
	need := w.window()
	if held := other.holds(); need == 0 || held == 0 || held >= need {
		return list
	}
	second, too := other.raise(w, false)
	if too {
		list = append(list, second)
	}
	if ok && too {
		bps := min(first.bps, second.bps)
		both := first.and(second, "%s, and %s", first.title, second.title)
		text := "neither end's buffer holds the " + unit.Size(need) + " that the path needs"
		if bps > 0 {
			text = "up to " + unit.Rate(bps) + ": " + text
		}
		list = append(list, both.bring(bps, first.source, "%s", text))
	}
	return list
}

// fixedWindow leaves -w out; where the kernel has cut what -w asks for, its
// limit is the other way.
func fixedWindow(r request) []draft {
	w := r.way
	c := w.cell
	if c == nil || c.Spec.Window == (measure.Pair{}) {
		return nil
	}
	free := draft{id: knob.Window + "=default", title: "windows that the kernels tune (leave -w out)", test: &measure.TestOptions{Window: &measure.Pair{}, Flags: "leave -w out"}}.forWay(w)
	if x := w.best(func(x *measure.Cell) bool { return x.Spec.Window == (measure.Pair{}) && x.Streams == c.Streams }); x != nil {
		free = free.bring(x.Goodput.Value, "measured in this result", "%s passed without it", unit.Rate(x.Goodput.Value))
	} else if holds := min(w.receiver().holds(), w.sender().holds()); w.carries(holds) > w.goodput() {
		free = free.bring(w.carries(holds), "RFC 6349, section 3.3.1", "up to %s: windows grow up to %s, which is enough for that at %s of RTT", unit.Rate(w.carries(holds)), unit.Size(holds), unit.Duration(w.rtt()))
	} else {
		free = free.bring(0, "socket(7)", "a window that grows to what the path needs, as far as the hosts let it")
	}
	list := []draft{free}
	for _, x := range []struct {
		id   string
		h    *host
		want int64
	}{{knob.RmemMax, w.to, c.Spec.Window.Recv}, {knob.WmemMax, w.from, c.Spec.Window.Send}} {
		if now := x.h.state(x.id, ""); now.known && now.number() > 0 && now.number() < x.want {
			list = append(list, change(x.h, x.id, "", fmt.Sprint(x.want), "let -w have the %s that it asks for at %s", unit.Size(x.want), x.h.name).forWay(w))
		}
	}
	return list
}
