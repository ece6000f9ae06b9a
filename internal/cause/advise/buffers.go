package advise

import (
	"thru/internal/cause/knob"
	"thru/internal/cause/scene"
)

// Side is the send or the receive buffer of a direction.
type Side struct {
	Knob  string
	H     *scene.Host
	Usual int64 // Linux default on a host with enough memory: a lower value was set deliberately
	Part  int64 // 1/Part of it can be in flight: half of a receive buffer (bookkeeping), all of a send buffer
	What  string
}

// Receiver returns the receive buffer of the direction.
func (w *Direction) Receiver() Side {
	return Side{knob.TCPRmem, w.To, scene.MostRmem, 2, "receive windows"}
}

// Sender returns the send buffer of the direction.
func (w *Direction) Sender() Side {
	return Side{knob.TCPWmem, w.From, scene.MostWmem, 1, "send buffers"}
}

// Holds returns how many bytes one connection can have in flight now; 0: not known.
func (s Side) Holds() int64 { return s.H.State(s.Knob, "").Number() / s.Part }

// IsTight reports whether a request is about this buffer, and it is known to hold less than the path needs.
func (r Request) IsTight(own Side) bool {
	holds := own.Holds()
	return r.Direction.MayBeLimited() && own.H == r.At && holds > 0 && holds < r.Direction.Window()
}
