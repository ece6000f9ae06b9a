package live

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"

	"thru/internal/capture/frame"
	"thru/internal/capture/pcapfile"
	"thru/internal/fault"
)

// etherAddresses is the offset of a VLAN tag: after the two addresses.
const etherAddresses = 12

// oneMoment is the largest time step backwards, in ns, between packets that
// two CPUs captured at once. The order of the ring is right: a packet is in
// it before it is sent. A larger step means that the clock was set.
const oneMoment = 100_000

// Stop ends the capture, and returns the packets of one interface. Of several
// Peers that were dialled in turn, peer is the one that answered: the packets
// of the others are left out. The zero peer leaves out nothing. The ring is
// closed in any case.
func (r *Ring) Stop(iface string, peer netip.AddrPort) (Recording, error) {
	r.ending.Lock()
	defer r.ending.Unlock()
	if r.socket < 0 {
		return Recording{}, errors.New("live: the capture has been closed")
	}
	defer r.free()
	if err := r.finish(); err != nil {
		return Recording{}, err
	}
	statistics, err := unix.GetsockoptTpacketStatsV3(r.socket, unix.SOL_PACKET, unix.PACKET_STATISTICS)
	if err != nil {
		return Recording{}, fmt.Errorf("live: reading what was dropped: %w", err)
	}
	index, link, mtu, err := r.lookUp(iface)
	if err != nil {
		return Recording{}, err
	}
	rec := Recording{
		Interface: iface, MTU: mtu, Dropped: int64(statistics.Drops), // includes those of a frozen queue
		Full: r.full, Began: r.began, Ended: r.ended, CPUNs: r.cpuNs,
	}
	if err := r.write(&rec, index, link, peer); err != nil {
		return Recording{}, fmt.Errorf("live: writing the packets of %s: %w", iface, err)
	}
	return rec, nil
}

// lookUp requests an interface in the namespace of the socket, whatever that
// of the calling thread (netdevice(7)).
func (r *Ring) lookUp(name string) (index int32, link frame.LinkType, mtu int, err error) {
	ask := func(question uint) *unix.Ifreq {
		request, cause := unix.NewIfreq(name)
		if cause == nil {
			cause = unix.IoctlIfreq(r.socket, question, request)
		}
		if cause != nil {
			request, err = &unix.Ifreq{}, fault.Failf("", "live: asking for the interface %q: %w", name, cause)
		}
		return request
	}
	index, mtu = int32(ask(unix.SIOCGIFINDEX).Uint32()), int(ask(unix.SIOCGIFMTU).Uint32())
	switch ask(unix.SIOCGIFHWADDR).Uint16() { // the family of its address
	case unix.ARPHRD_ETHER, unix.ARPHRD_LOOPBACK:
		link = frame.Ethernet
	default:
		link = frame.Raw
	}
	return index, link, mtu, err
}

// write writes the file with the packets of one interface.
func (r *Ring) write(rec *Recording, index int32, link frame.LinkType, peer netip.AddrPort) error {
	var file bytes.Buffer
	about := []pcapfile.Interface{{Name: rec.Interface, Link: link, Snap: Snap6}}
	w, err := pcapfile.NewWriter(&file, about)
	if err != nil {
		return err
	}
	var room [Snap6 + tagBytes]byte
	lastNs := int64(0)
	for p, data := range r.kept.all() {
		if p.iface != index {
			rec.Elsewhere++
			continue
		}
		whole, wire := asOnWire(p, data, link, room[:0])
		if peer.IsValid() && !concerns(whole, wire, link, peer) {
			continue
		}
		rec.Packets++
		if back := lastNs - p.timeNs; back > 0 && back < oneMoment {
			p.timeNs = lastNs
		}
		lastNs = p.timeNs
		if err := w.Write(pcapfile.Record{TimeNs: p.timeNs, WireBytes: wire, Data: whole}); err != nil {
			return err
		}
	}
	about[0].Dropped = &rec.Dropped
	if err := w.Close(about); err != nil {
		return err
	}
	rec.Pcapng = file.Bytes()
	return nil
}

// concerns reports whether a frame goes to a peer or comes from it, or is an
// ICMP message that a packet was too large, which any router may send.
func concerns(whole []byte, wire int, link frame.LinkType, peer netip.AddrPort) bool {
	far := frame.Endpoint{Addr: peer.Addr().As16(), Port: peer.Port()}
	p := frame.Packet{WireBytes: wire}
	return frame.Decode(link, whole, &p) == frame.IsTooBig || p.Source == far || p.Target == far
}

// asOnWire restores a frame's VLAN tag, which the kernel keeps separately,
// and removes a link layer header that no link type describes.
func asOnWire(p packet, data []byte, link frame.LinkType, room []byte) (whole []byte, wire int) {
	wire = int(p.wire)
	if link != frame.Ethernet {
		cut := min(int(p.link), len(data))
		return data[cut:], wire - cut
	}
	if p.tpid == 0 || len(data) < etherAddresses {
		return data, wire
	}
	room = append(room, data[:etherAddresses]...)
	room = binary.BigEndian.AppendUint16(room, p.tpid)
	room = binary.BigEndian.AppendUint16(room, p.tci)
	return append(room, data[etherAddresses:]...), wire + tagBytes
}
