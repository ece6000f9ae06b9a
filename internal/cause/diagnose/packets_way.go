package diagnose

import (
	"thru/internal/measure"
)

// HopsBetween is by how much the time to live fell from one place to the other;
// false where there are several, or it rose.
func HopsBetween(from, to *Spot, way func(*measure.Connection) measure.Way) (int, bool) {
	a, b := way(from.Main()).TTLs, way(to.Main()).TTLs
	if len(a) != 1 || len(b) != 1 || b[0] > a[0] {
		return 0, false
	}
	return a[0] - b[0], true
}
