package faults

import (
	"maps"
	"slices"
)

// leftOut lists the causes that are left out, in order.
func leftOut() []string { return slices.Sorted(maps.Keys(LeftOut())) }
