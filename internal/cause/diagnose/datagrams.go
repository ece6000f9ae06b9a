package diagnose

import ()

// Bars of datagrams, in percent.
const (
	SurplusBar = 3 // of loss, from where on more is sent than passes
)
