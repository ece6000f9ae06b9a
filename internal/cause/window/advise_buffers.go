package window

import (
	"fmt"
	"strings"

	"thru/internal/cause/advise"
	"thru/internal/knob"
	"thru/internal/measure"
	"thru/internal/unit"
)

// BufferProposals are for what holds less than the path does: the buffers of both
// ends, and those that were set by hand.
func BufferProposals() []advise.Rule {
	return []advise.Rule{
		{Cause: "receive-window", Propose: receiveWindowProposal},
		{Cause: "send-buffer", Propose: sendBufferProposal},
		{Cause: "fixed-window", Propose: fixedWindowProposal},
	}
}

// mostBuffer is the greatest that is proposed, in bytes.
const mostBuffer = 1 << 30

// raise is the change that lets a connection of this side have what the path
// needs under way: three times the window, as package gate says it: twice for
// what the kernel keeps of it, and half as much again for the queue of the
// path. It is never less than Linux's own default, nor than twice of what it is
// where a finding says that it binds. ok is false where it is large enough.
func raise(s advise.Side, w *advise.Way, binds bool) (d advise.Draft, ok bool) {
	has := s.H.State(s.Knob, "")
	if w.Cell != nil && (s.Part == 1 && w.Cell.Spec.Window.Send > 0 || s.Part > 1 && w.Cell.Spec.Window.Recv > 0) {
		return advise.Draft{}, false // it was set by hand: what the kernel would tune does not count
	}
	want := max(3*w.Window(), s.Usual)
	if n := has.Number(); binds && n >= want {
		want = 2 * min(n, mostBuffer)
	}
	step := int64(64 << 10)
	if want > 16<<20 {
		step = 1 << 20
	}
	want = min(advise.RoundUp(want, step), mostBuffer)
	if has.Number() >= want {
		return advise.Draft{}, false
	}
	lower := s.Lower
	if f := strings.Fields(has.Value); len(f) == 3 {
		lower = f[0] + " " + f[1]
	}
	holds := want / s.Part
	d = advise.Change(s.H, s.Knob, "", fmt.Sprintf("%s %d", lower, want), "%s of up to %s at %s", s.What, unit.Size(holds), s.H.Name).ForWay(w)
	return expect(s, d, w, holds), true
}

// anyRateProposal is one that no single connection exceeds, in bit/s: a window for that is no figure to expect.
const anyRateProposal = 100e9

// expect words what the window carries.
func expect(s advise.Side, d advise.Draft, w *advise.Way, holds int64) advise.Draft {
	carries := w.Carries(holds)
	if carries <= 0 {
		return d
	}
	if w.Ceiling() <= 0 && carries >= anyRateProposal {
		return d.Bring(0, "RFC 6349, section 3.3.1", "no longer a bound: %s of window are enough for any rate at %s of RTT", unit.Size(holds), unit.Duration(w.RTT()))
	}
	text := fmt.Sprintf("up to %s: %s of window x 8 / %s of RTT", unit.Rate(carries), unit.Size(holds), unit.Duration(w.RTT()))
	if w.Ceiling() > 0 && carries >= w.Ceiling() {
		text = fmt.Sprintf("up to the %s that the link carries: %s of window are enough at %s of RTT", unit.Rate(carries), unit.Size(holds), unit.Duration(w.RTT()))
	}
	if bps, of := w.Rate(); w.Ceiling() <= 0 && bps > 0 && carries > bps { // what a window would hold is no rate of a path
		carries, text = bps, fmt.Sprintf("enough for %s, %s: %s of window at %s of RTT", unit.Rate(bps), of, unit.Size(holds), unit.Duration(w.RTT()))
	}
	return d.Bring(carries, "RFC 6349, section 3.3.1", "%s", text)
}

func receiveWindowProposal(r advise.Request) []advise.Draft {
	return buffers(r, r.Way.Receiver(), r.Way.Sender())
}

func sendBufferProposal(r advise.Request) []advise.Draft {
	return buffers(r, r.Way.Sender(), r.Way.Receiver())
}

// buffers raises the one that binds. Where the other end's is too small for the
// path as well, each alone may show no gain: then that one, and both together.
func buffers(r advise.Request, own, other advise.Side) []advise.Draft {
	w := r.Way
	if r.Gate != nil && !w.MayBeHeld() {
		return nil
	}
	var list []advise.Draft
	first, ok := raise(own, w, r.Finding != nil && r.Finding.BecauseOf == "")
	if ok {
		list = append(list, first)
	}
	need := w.Window()
	if held := other.Holds(); need == 0 || held == 0 || held >= need {
		return list
	}
	second, too := raise(other, w, false)
	if too {
		list = append(list, second)
	}
	if ok && too {
		bps := min(first.Bps, second.Bps)
		both := first.And(second, "%s, and %s", first.Title, second.Title)
		text := "neither end's buffer holds the " + unit.Size(need) + " that the path needs"
		if bps > 0 {
			text = "up to " + unit.Rate(bps) + ": " + text
		}
		list = append(list, both.Bring(bps, first.Source, "%s", text))
	}
	return list
}

// fixedWindowProposal leaves -w out; where the kernel has cut what -w asks for, its
// limit is the other way.
func fixedWindowProposal(r advise.Request) []advise.Draft {
	w := r.Way
	c := w.Cell
	if c == nil || c.Spec.Window == (measure.Pair{}) {
		return nil
	}
	free := advise.Draft{Id: knob.Window + "=default", Title: "windows that the kernels tune (leave -w out)", Test: &measure.TestOptions{Window: &measure.Pair{}, Flags: "leave -w out"}}.ForWay(w)
	if x := w.Best(func(x *measure.Cell) bool { return x.Spec.Window == (measure.Pair{}) && x.Streams == c.Streams }); x != nil {
		free = free.Bring(x.Goodput.Value, "measured in this result", "%s passed without it", unit.Rate(x.Goodput.Value))
	} else if holds := min(w.Receiver().Holds(), w.Sender().Holds()); w.Carries(holds) > w.Goodput() {
		free = free.Bring(w.Carries(holds), "RFC 6349, section 3.3.1", "up to %s: windows grow up to %s, which is enough for that at %s of RTT", unit.Rate(w.Carries(holds)), unit.Size(holds), unit.Duration(w.RTT()))
	} else {
		free = free.Bring(0, "socket(7)", "a window that grows to what the path needs, as far as the hosts let it")
	}
	list := []advise.Draft{free}
	for _, x := range []struct {
		id   string
		h    *advise.Host
		want int64
	}{{knob.RmemMax, w.To, c.Spec.Window.Recv}, {knob.WmemMax, w.From, c.Spec.Window.Send}} {
		if now := x.h.State(x.id, ""); now.Known && now.Number() > 0 && now.Number() < x.want {
			list = append(list, advise.Change(x.h, x.id, "", fmt.Sprint(x.want), "let -w have the %s that it asks for at %s", unit.Size(x.want), x.h.Name).ForWay(w))
		}
	}
	return list
}
