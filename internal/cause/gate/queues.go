package gate

import (
	"fmt"

	"thru/internal/knob"
)

// RxQueues is how many receive queues are set; 0 where it is not known.
func (f *Face) RxQueues() int {
	if c := f.Channels; c != nil && c.Combined+c.RX > 0 {
		return max(c.Combined, 0) + max(c.RX, 0)
	}
	if f.Queues != nil && *f.Queues > 0 {
		return *f.Queues
	}
	return 0
}

// PacketSteering spreads the packets of a queue over all CPUs by software.
func PacketSteering(f *Face) Remedy {
	n := f.Host.CPUs()
	if f.Host.System != "linux" || n <= 0 || n > 32 {
		return Remedy{}
	}
	mask := uint64(1)<<n - 1
	return Commands(LinkLasts, f.Typed(knob.RPS, fmt.Sprintf("rx-0 %x", mask))...)
}
