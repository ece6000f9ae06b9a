package gate

import (
	"fmt"
)

// Doubled is twice the backlog that is set, within reason.
func Doubled(h *Host) string {
	n, ok := h.Number("net.core.netdev_max_backlog")
	if !ok {
		n = 1000
	}
	return fmt.Sprint(max(n, 2*min(n, 125_000)))
}
