package live

import "iter"

// packet is one captured packet, without its bytes.
type packet struct {
	timeNs    int64  // since 1970
	wire      uint32 // bytes of the frame on the wire
	iface     int32  // index of its interface
	captured  uint16 // bytes kept
	link      uint16 // of these, the link layer header
	tci, tpid uint16 // VLAN tag that the kernel removed from the frame; tpid 0: none
}

// chunkPackets limits a chunk to about half a megabyte.
const chunkPackets = 4096

// chunk holds packets and their bytes one after the other.
type chunk struct {
	packets []packet
	bytes   []byte
}

// kept holds the packets of a capture in memory that grows by chunks, so that
// none is moved while traffic runs.
type kept struct {
	chunks []chunk
	count  int64
}

// add keeps a copy of a packet.
func (k *kept) add(p packet, data []byte) {
	last := len(k.chunks) - 1
	if last < 0 || len(k.chunks[last].packets) == chunkPackets {
		k.chunks = append(k.chunks, chunk{make([]packet, 0, chunkPackets), make([]byte, 0, chunkPackets*Snap6)})
		last++
	}
	c := &k.chunks[last]
	data = data[:min(len(data), Snap6)] // the filter cuts them, so that a chunk never grows
	p.captured = uint16(len(data))
	c.packets = append(c.packets, p)
	c.bytes = append(c.bytes, data...)
	k.count++
}

// all yields the packets in order of arrival.
func (k *kept) all() iter.Seq2[packet, []byte] {
	return func(yield func(packet, []byte) bool) {
		for _, c := range k.chunks {
			rest := c.bytes
			for _, p := range c.packets {
				if !yield(p, rest[:p.captured]) {
					return
				}
				rest = rest[p.captured:]
			}
		}
	}
}
