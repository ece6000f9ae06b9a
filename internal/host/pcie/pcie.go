// Package pcie knows what a link of PCI Express carries, for every system
// that tells its generation and lanes. It is pure.
package pcie

import "slices"

// MostLanes is the widest link that the specification has.
const MostLanes = 32

// Generation is that of PCI Express with so many GT/s on a lane; 0: none that
// we know.
func Generation(rate float64) int {
	return 1 + slices.Index([]float64{2.5, 5, 8, 16, 32, 64}, rate)
}

// UsableBps is what a link carries in each direction, in bit/s (methods.md,
// formula 7); 0 for a link that does not exist.
//
// Encoding takes 2 of 10 bits up to generation 2 and 2 of 130 up to 5. Then
// each packet of 256 bytes has 24 bytes around it, and 5% are allowed for the
// packets of the link itself. Generation 6 sends flits of 256 bytes, of which
// 242 carry packets and what the link needs; the bytes around a packet are 16.
func UsableBps(gen, lanes int) int64 {
	const payload = 256.0
	perLane := 0.0 // bit/s
	switch gen {
	case 1, 2:
		perLane = 2.5e9 * float64(gen) * 8 / 10 * payload / (payload + 24) * 0.95
	case 3, 4, 5:
		perLane = 8e9 * float64(int(1)<<(gen-3)) * 128 / 130 * payload / (payload + 24) * 0.95
	case 6:
		perLane = 64e9 * 242 / 256 * payload / (payload + 16)
	}
	if lanes < 0 || lanes > MostLanes {
		return 0
	}
	return int64(perLane * float64(lanes))
}
