package gate

import ()

// Bounds of round trips in ns.
const (
	LanRTT = 1e6 // below it a connection is within a site
)
