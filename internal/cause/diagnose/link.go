package diagnose

import (
	"thru/internal/stat"
)

// Bars of the link rules, in percent of the ceiling.
const (
	LinkFullBar = stat.PassPct // from here on the link is full
	NearBar     = 90           // from here on headers that nobody knows of may be the rest
)

// LinkFull is the cause of a link that carries all that it can.
const LinkFull = "link-rate"
