package inventory

import (
	"thru/internal/doc"
	"thru/internal/measure"
)

// nicLimitText is what an adapter is held to: by its port in each direction, and
// beside that by Network I/O Control; "" where by nothing.
func nicLimitText(n *measure.GuestNIC) string {
	control := shapeText(n.IOLimit)
	if control != "" {
		control += " by Network I/O Control"
	}
	return doc.Join(shapingText(n.LimitIn, n.Limit), control)
}
