package stat

import "thru/internal/measure"

// Ladder fills d.Ladder where cells have a rung. links is the nominal rate of a
// rung's path; a RateBps of 0 is none. It comes after Groups.
func Ladder(d *measure.Document, links func(rung string) Link) {}
