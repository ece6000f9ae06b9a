package diagnose

// Thresholds of packets and interrupts.
const (
	OneShare     = 0.95   // of all interrupts or packets on one CPU or queue
	FewPackets   = 1000   // per second: below it they fill no CPU
	ManyCounted  = 10_000 // packets from which a share is meaningful
	OfRetransmit = 0.5    // of the retransmissions: drops above it may explain them
)

// Flows returns the number of the end's concurrent connections.
func (e *End) Flows() (n int) {
	c := e.Flow.Cell
	if c.AtOnce > 1 {
		for _, x := range CellsOf(e.Flow.Doc, c.Group) {
			if x.From == e.Name || x.To == e.Name {
				n += max(1, x.Streams)
			}
		}
	}
	return max(n, c.Streams, 1)
}

// MeanPacket returns the mean length of the packets between the kernel and the interface, in bytes; it exceeds the
// MTU if packets are merged.
func (e *End) MeanPacket() (float64, bool) {
	n := e.NIC()
	if n == nil {
		return 0, false
	}
	bytes, packets := n.RxBytes, n.RxPackets
	if e.Sends() {
		bytes, packets = n.TxBytes, n.TxPackets
	}
	if packets < ManyCounted {
		return 0, false
	}
	return float64(bytes) / float64(packets), true
}

// Dropped judges packets that a receiver's host dropped.
func (f *Flow) Dropped(e *End, n float64, counter, format string) *Outcome {
	return f.Blame(Possible(format, n).By(Above(e.Proof(counter, n, "packets"), 0)), n)
}

// MostBacklog is the largest backlog proposed, in packets: more adds more delay than use.
const MostBacklog = 1 << 20
