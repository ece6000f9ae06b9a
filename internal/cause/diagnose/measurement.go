package diagnose

import ()

// Bars of contradictions, in percent.
const (
	FaceBar = 80 // of the payload that the interface must have taken in: the two are not read in the same instant
)
