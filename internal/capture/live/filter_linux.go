package live

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/sys/unix"
)

// Values that the filter compares (IEEE 802.1Q; RFC 791, 792, 4443, 8200).
const (
	ethernetBytes = 14
	tagBytes      = 4
	etherTypeAt   = 12
	tagged        = 0x8100
	protoICMP     = 1
	protoTCP      = 6
	protoICMP6    = 58
	fragTooBig    = 3<<8 | 4 // type and code
	packetTooBig  = 2        // type
	fragOffset    = 0x1fff
	header6       = 40
	hopByHop      = 0
	jumboBytes    = 8 // hop-by-hop options with only the jumbo payload option (RFC 2675)
)

// Ancillary data and the IP header, as offsets (linux/filter.h).
const (
	netOffset = 0xfff00000 // SKF_NET_OFF
	adPktType = 0xfffff000 + 4
	adHatype  = 0xfffff000 + 28
)

// step is an instruction, or a test that may leave its block.
type step struct {
	unix.SockFilter
	leave when
}

// when is the outcome of a comparison that leaves the block.
type when uint8

const (
	never when = iota
	onFalse
	onTrue
)

func op(code int, k uint32) step { return step{unix.SockFilter{Code: uint16(code), K: k}, never} }

// at loads 1, 2 or 4 bytes of the frame; of loads them at an offset from X.
func at(size int, k uint32) step { return op(unix.BPF_LD|unix.BPF_ABS|size, k) }
func of(size int, k uint32) step { return op(unix.BPF_LD|unix.BPF_IND|size, k) }

// A test leaves the block unless the loaded value meets its condition.
func test(code int, k uint32, leave when) step {
	s := op(unix.BPF_JMP|unix.BPF_K|code, k)
	s.leave = leave
	return s
}
func is(k uint32) step       { return test(unix.BPF_JEQ, k, onFalse) }
func isNot(k uint32) step    { return test(unix.BPF_JEQ, k, onTrue) }
func hasAny(k uint32) step   { return test(unix.BPF_JSET, k, onFalse) }
func atLeast(k uint32) step  { return test(unix.BPF_JGE, k, onFalse) }
func atMost(k uint32) step   { return test(unix.BPF_JGT, k, onTrue) }
func take(bytes uint32) step { return op(unix.BPF_RET|unix.BPF_K, bytes) } // 0: drop
func store(slot uint32) step { return op(unix.BPF_ST, slot) }
func recall(slot uint32) step {
	return op(unix.BPF_LD|unix.BPF_MEM, slot)
}

// block joins steps: a failing test jumps behind the last of them. A block is
// short: a comparison's jump has 8 bits.
func block(steps ...step) []unix.SockFilter {
	code := make([]unix.SockFilter, len(steps))
	for i, s := range steps {
		code[i] = s.SockFilter
		behind := uint8(len(steps) - 1 - i)
		switch s.leave {
		case onFalse:
			code[i].Jf = behind
		case onTrue:
			code[i].Jt = behind
		}
	}
	return code
}

// dropAll drops the frame.
func dropAll() []unix.SockFilter { return block(take(0)) }

// filter returns the program for a Config
// (linux/Documentation/networking/filter.rst). Its result for a frame is how
// many bytes of it the kernel copies.
func filter(c Config) []unix.SockFilter {
	var code []unix.SockFilter
	add := func(steps ...step) { code = append(code, block(steps...)...) }
	// Loopback shows each packet twice, outgoing and incoming.
	add(at(unix.BPF_W, adHatype), is(unix.ARPHRD_LOOPBACK), at(unix.BPF_W, adPktType), is(unix.PACKET_OUTGOING), take(0))
	// X becomes the offset of the IP header. The kernel knows the offset, but
	// before Linux 6.16 it does not read bytes there that are in a fragment
	// of the buffer. So the filter computes it for Ethernet.
	link := func(bytes uint32) step { return op(unix.BPF_LDX|unix.BPF_IMM, bytes) }
	add(link(netOffset))
	add(at(unix.BPF_W, adHatype), is(unix.ARPHRD_LOOPBACK), link(ethernetBytes))
	add(at(unix.BPF_W, adHatype), is(unix.ARPHRD_ETHER), link(ethernetBytes))
	add(at(unix.BPF_W, adHatype), is(unix.ARPHRD_ETHER), at(unix.BPF_H, etherTypeAt), is(tagged), link(ethernetBytes+tagBytes))

	version := []step{of(unix.BPF_B, 0), op(unix.BPF_ALU|unix.BPF_RSH|unix.BPF_K, 4)}
	code = append(code, where(4, filter4(c), version...)...)
	code = append(code, where(6, filter6(c), version...)...)
	return append(code, dropAll()...)
}

// where puts a test before code of any length, which runs only for the value.
func where(value uint32, then []unix.SockFilter, load ...step) []unix.SockFilter {
	skip := op(unix.BPF_JMP|unix.BPF_JA, uint32(len(then)))
	return append(block(append(load, isNot(value), skip)...), then...)
}

// filter4 judges an IPv4 packet that begins at X.
func filter4(c Config) []unix.SockFilter {
	const source, target, protocol = 0, 1, 2 // memory slots
	var code []unix.SockFilter
	add := func(steps ...step) { code = append(code, block(steps...)...) }
	add(of(unix.BPF_H, 6), hasAny(fragOffset), take(0))
	add(of(unix.BPF_W, 12), store(source), of(unix.BPF_W, 16), store(target), of(unix.BPF_B, 9), store(protocol))
	// X becomes the offset of TCP, by the header length in the IP header.
	add(of(unix.BPF_B, 0), op(unix.BPF_ALU|unix.BPF_AND|unix.BPF_K, 0xf), op(unix.BPF_ALU|unix.BPF_LSH|unix.BPF_K, 2),
		op(unix.BPF_ALU|unix.BPF_ADD|unix.BPF_X, 0), op(unix.BPF_MISC|unix.BPF_TAX, 0))
	add(recall(protocol), is(protoICMP), of(unix.BPF_H, 0), is(fragTooBig), take(Snap4))
	add(recall(protocol), isNot(protoTCP), take(0))
	code = append(code, local(c.Ports, 0, Snap4)...)
	for _, p := range c.Peers {
		addr := p.Addr().Unmap()
		if !addr.Is4() {
			continue
		}
		b := addr.As4()
		word := binary.BigEndian.Uint32(b[:])
		add(append([]step{recall(source), is(word)}, port(p, 0, Snap4)...)...)
		add(append([]step{recall(target), is(word)}, port(p, 2, Snap4)...)...)
	}
	add(take(0))
	return code
}

// filter6 judges an IPv6 packet that begins at X. Packets of more than 64
// KiB, which the stack passes on with BIG TCP, have a header with their
// length before that of TCP.
func filter6(c Config) []unix.SockFilter {
	next := of(unix.BPF_B, 6)
	code := block(next, is(protoICMP6), of(unix.BPF_B, header6), is(packetTooBig), take(Snap6))
	code = append(code, where(protoTCP, tcp6(c, header6), next)...)
	jumbo := where(protoTCP, tcp6(c, header6+jumboBytes), of(unix.BPF_B, header6))
	jumbo = where(0, jumbo, of(unix.BPF_B, header6+1)) // units of 8 bytes after the first
	code = append(code, where(hopByHop, jumbo, next)...)
	return append(code, dropAll()...)
}

// tcp6 takes the requested TCP in an IPv6 packet at X; header is the offset
// of TCP.
func tcp6(c Config, header uint32) []unix.SockFilter {
	code := local(c.Ports, header, Snap6)
	for _, p := range c.Peers {
		addr := p.Addr().Unmap()
		if !addr.Is6() {
			continue
		}
		code = append(code, block(append(address6(addr, 8), port(p, header, Snap6)...)...)...)
		code = append(code, block(append(address6(addr, 24), port(p, header+2, Snap6)...)...)...)
	}
	return append(code, dropAll()...)
}

// local takes a packet from or to one of the ports in a range; header is the
// offset of TCP from X.
func local(ports [2]int, header, snap uint32) []unix.SockFilter {
	if ports == [2]int{} {
		return nil
	}
	from := block(of(unix.BPF_H, header), atLeast(uint32(ports[0])), atMost(uint32(ports[1])), take(snap))
	to := block(of(unix.BPF_H, header+2), atLeast(uint32(ports[0])), atMost(uint32(ports[1])), take(snap))
	return append(from, to...)
}

// port takes the packet if a port is the peer's.
func port(p netip.AddrPort, offset, snap uint32) []step {
	if p.Port() == 0 {
		return []step{take(snap)}
	}
	return []step{of(unix.BPF_H, offset), is(uint32(p.Port())), take(snap)}
}

// address6 tests an IPv6 address at an offset from X.
func address6(a netip.Addr, offset uint32) []step {
	var steps []step
	b := a.As16()
	for i := uint32(0); i < 16; i += 4 {
		steps = append(steps, of(unix.BPF_W, offset+i), is(binary.BigEndian.Uint32(b[i:])))
	}
	return steps
}
