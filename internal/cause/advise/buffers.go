package advise

import (
	"thru/internal/cause/knob"
	"thru/internal/cause/scene"
)

// Side is one of the two buffers of a direction.
type Side struct {
	Knob  string
	H     *scene.Host
	Usual int64 // what Linux begins with on a host with memory enough: a host that has less was set so by somebody
	Part  int64 // of it so much can be under way: a half of the receiver's (bookkeeping), all of the sender's
	What  string
}

// Receiver is the receive buffer of the direction.
func (w *Direction) Receiver() Side {
	return Side{knob.TCPRmem, w.To, scene.MostRmem, 2, "receive windows"}
}

// Sender is the send buffer of the direction.
func (w *Direction) Sender() Side {
	return Side{knob.TCPWmem, w.From, scene.MostWmem, 1, "send buffers"}
}

// Holds is what one connection can have under way now, in bytes; 0 not known.
func (s Side) Holds() int64 { return s.H.State(s.Knob, "").Number() / s.Part }

// IsTight tells that a request is about this buffer, and that it is known to hold less
// than the path needs.
func (r Request) IsTight(own Side) bool {
	holds := own.Holds()
	return r.Direction.MayBeLimited() && own.H == r.At && holds > 0 && holds < r.Direction.Window()
}
