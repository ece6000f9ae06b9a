// Package pcie computes what a PCI Express link carries from its generation
// and lanes, for every system that reports these. It is pure.
package pcie

import "slices"

// MostLanes is the width of the widest link that the specification allows.
const MostLanes = 32

// Generation returns the PCI Express generation of a rate in GT/s per lane; 0
// for an unknown rate.
func Generation(rate float64) int {
	return 1 + slices.Index([]float64{2.5, 5, 8, 16, 32, 64}, rate)
}

// UsableBps returns what a link carries in each direction, in bit/s
// (methods.md, formula 7); 0 for a link that does not exist.
//
// Encoding takes 2 of 10 bits up to generation 2 and 2 of 130 up to 5. Each
// packet of 256 bytes has 24 bytes of overhead, and 5% are allowed for the
// link's own packets. Generation 6 sends flits of 256 bytes, of which 242
// carry packets and link overhead; the overhead of a packet is 16 bytes.
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
