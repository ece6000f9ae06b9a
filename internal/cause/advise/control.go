package advise

import (
	"thru/internal/measure"
	"thru/internal/unit"
)

// Shown expects what another measurement of the document has shown.
func (w *Way) Shown(d Draft, x *measure.Cell) Draft {
	return d.Bring(x.Goodput.Value, "measured in this result", "%s, as the same traffic carried with it in this result", unit.Rate(x.Goodput.Value))
}
