package mtu

import (
	"fmt"

	"thru/internal/cause/below"
	"thru/internal/cause/diagnose"
	"thru/internal/measure"
)

// jumboMismatch joins what the path's search says with the MTUs below the ends.
func jumboMismatch(f *diagnose.Flow) *diagnose.Outcome {
	own := jumboSeen(f)
	n := below.Narrowest(f)
	if n == nil || own == nil || f.OnOneMachine() {
		return own
	}
	proof := diagnose.Below(measure.Proof{EndPoint: n.End.Name, Counter: "MTU of " + diagnose.Line(n.Name), Value: float64(n.MTU), Unit: "bytes"}, float64(n.Wants))
	s, searched := sizes(f)
	switch {
	case own.State == diagnose.Holds && s.Bytes <= n.MTU:
		own.Text += fmt.Sprintf(": %s takes %d", n.Name, n.MTU)
		own.Where.Below = diagnose.Line(n.Name)
		return own.By(proof).Mend(n.Widen())
	case own.State == diagnose.Holds || searched && s.passes() && f.Sender == n.End:
		return own
	}
	o := diagnose.Possible("%s takes packets of %d bytes, and the %s has an MTU of %d", n.Name, n.MTU, n.End.Place, n.Wants).By(proof)
	x, _ := Stalled(f)
	if dead := x.dead && packet(f, sized{PathMTU: &measure.PathMTU{Claimed: n.Wants}}) > float64(n.MTU); dead {
		o.Confidence = measure.Likely
	} else {
		o.Beside()
	}
	return o.At(below.OnBed(n.End, n.Name)).Then("`thru check` searches the size that passes").Mend(n.Widen())
}
