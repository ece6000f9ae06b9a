package nic

import (
	"thru/internal/cause/below"
	"thru/internal/cause/diagnose"
)

// ringOverflow joins what the receiver counted with what its port did.
func ringOverflow(f *diagnose.Flow) *diagnose.Outcome {
	return below.Seconded(ringSeen(f), below.RingBelow(f))
}
