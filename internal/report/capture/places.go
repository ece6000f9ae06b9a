package capture

import (
	"cmp"
	"fmt"

	"thru/internal/doc"
	"thru/internal/measure"
	"thru/internal/report/result"
)

// Limits of what is shown of captures. The JSON document has all of it.
const (
	maxConns     = 4     // connections of one flow
	maxKinds     = 4     // kinds of packets, routers, rewritten fields
	wholePackets = 65535 // a snap length that cuts nothing: the largest IP packet
)

// PlacesOf returns the capture nearer to the sender, from which a flow's figures are taken, and the other
// one; nil if there is none.
func PlacesOf(f *measure.Flow) (near, far *measure.Capture) {
	left, right := 0, 1
	if x := f.Crossing; x != nil {
		left, right = x.Left, x.Right
	} else if len(f.Captures) > 1 && (f.Captures[1].Place == measure.AtSender || f.Captures[0].Place == measure.AtReceiver) {
		left, right = 1, 0
	}
	at := func(i int) *measure.Capture {
		if i < 0 || i >= len(f.Captures) {
			return nil
		}
		return &f.Captures[i]
	}
	if at(left) == nil {
		return &f.Captures[0], nil
	}
	if left == right {
		right = -1
	}
	return at(left), at(right)
}

// captureName returns the name of the file, or the end point that captured.
func captureName(c *measure.Capture) string {
	name := result.BaseName(c.File)
	for _, other := range []string{c.EndPoint, c.Interface, "capture"} {
		name = cmp.Or(name, other)
	}
	if c.File != "" && c.Number > 0 {
		name += fmt.Sprintf(" #%d", c.Number)
	}
	return doc.CleanUpTo(name, result.LongestPlace)
}

// SideName names a capture in short: by its side if end points captured at both ends.
func SideName(f *measure.Flow, c *measure.Capture) string {
	near, far := PlacesOf(f)
	if c.EndPoint == "" && far != nil && near.Place == measure.AtSender && far.Place == measure.AtReceiver {
		if c == near {
			return "the sender's"
		}
		return "the receiver's"
	}
	return captureName(c)
}
