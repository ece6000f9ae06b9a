package inventory

import (
	"thru/internal/doc"
	"thru/internal/measure"
)

// nicLimitText returns the rate limit of an adapter: of its port in each direction, and of Network I/O
// Control; "" if there is none.
func nicLimitText(n *measure.GuestNIC) string {
	control := shapeText(n.IOLimit)
	if control != "" {
		control += " by Network I/O Control"
	}
	return doc.Join(shapingText(n.LimitIn, n.Limit), control)
}
