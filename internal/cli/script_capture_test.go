package cli

import (
	"bytes"
	"encoding/binary"
	"os"
	"slices"

	"github.com/rogpeppe/go-internal/testscript"
)

// A capture of an artificial test of six seconds: a segment every 5 ms from 10.0.0.1 to 10.0.0.2, each
// acknowledged; one in fifty is lost on the path and retransmitted.
const (
	packetsEvery   = 5_000 // us
	packetsCount   = 1_200
	packetsDelay   = 2_000 // us, one way
	packetsLoseOne = 50
	packetsMSS     = 1448
)

// tapped is one packet at a capture point.
type tapped struct {
	at    int64 // us
	frame []byte
}

// writeCapture FILE PLACE: writes the packets as captured at the sender (left) or at the receiver (right);
// "udp" contains no TCP, and "other" is from other hosts.
func writeCapture(ts *testscript.TestScript, neg bool, args []string) {
	right := args[1] == "right"
	var all []tapped
	add := func(at int64, back, lost bool, flags byte, seq, ack uint32, payload int, ttl byte) {
		switch crosses := right != back; {
		case crosses && lost:
			return
		case crosses:
			at += packetsDelay
			ttl--
		}
		if right {
			at += 3_000_000 // its clock
		}
		all = append(all, tapped{at, tcpFrame(args[1], back, flags, seq, ack, payload, ttl, uint32(at/1000))})
	}
	const syn, ackFlag = 2, 16
	add(0, false, false, syn, 999, 0, 0, 64)
	add(packetsDelay, true, false, syn|ackFlag, 4999, 1000, 0, 64)
	add(2*packetsDelay, false, false, ackFlag, 1000, 5000, 0, 64)
	for i := range packetsCount {
		at, seq := int64(10_000+i*packetsEvery), uint32(1000+i*packetsMSS)
		lost := i%packetsLoseOne == packetsLoseOne-1
		add(at, false, lost, ackFlag, seq, 5000, packetsMSS, 64)
		if lost {
			at += 4_500
			add(at, false, false, ackFlag, seq, 5000, packetsMSS, 64)
		}
		add(at+packetsDelay, true, false, ackFlag, 5000, seq+packetsMSS, 0, 64)
	}
	slices.SortStableFunc(all, func(a, b tapped) int { return int(a.at - b.at) })
	file := binary.LittleEndian.AppendUint32(nil, 0xa1b2c3d4)
	file = append(file, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	file = binary.LittleEndian.AppendUint32(file, 96)
	file = binary.LittleEndian.AppendUint32(file, 1) // Ethernet
	for _, p := range all {
		for _, x := range []uint32{uint32(1_700_000_000 + p.at/1_000_000), uint32(p.at % 1_000_000), uint32(min(len(p.frame), 96)), uint32(len(p.frame))} {
			file = binary.LittleEndian.AppendUint32(file, x)
		}
		file = append(file, p.frame[:min(len(p.frame), 96)]...)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), file, 0o600))
}

// tcpFrame returns an Ethernet frame; of kind "udp" one of UDP.
func tcpFrame(kind string, back bool, flags byte, seq, ack uint32, payload int, ttl byte, stamp uint32) []byte {
	a, b := []byte{10, 0, 0, 1}, []byte{10, 0, 0, 2}
	if kind == "other" {
		a[2]++
		b[2]++
		seq, ack = seq+77_777, ack+77_777
	}
	ports := []byte{0x9c, 0x40, 0x14, 0x51} // 40000, 5201
	if back {
		a, b = b, a
		ports = []byte{0x14, 0x51, 0x9c, 0x40}
	}
	options := []byte{1, 1, 8, 10}
	options = binary.BigEndian.AppendUint32(options, stamp)
	options = append(options, 0, 0, 0, 0)
	if flags&2 != 0 {
		options = append([]byte{2, 4, 5, 180, 4, 2, 1, 3, 3, 7, 1, 1}, options[2:]...)
		options = append(options, 0, 0)
	}
	proto := byte(6)
	if kind == "udp" {
		proto = 17
	}
	tcp := slices.Clone(ports)
	tcp = binary.BigEndian.AppendUint32(tcp, seq)
	tcp = binary.BigEndian.AppendUint32(tcp, ack)
	tcp = append(tcp, byte(5+len(options)/4)<<4, flags, 2, 0, 0, 0, 0, 0)
	tcp = append(append(tcp, options...), make([]byte, payload)...)
	frame := append(bytes.Repeat([]byte{2}, 12), 8, 0, 0x45, 0)
	frame = binary.BigEndian.AppendUint16(frame, uint16(20+len(tcp)))
	frame = append(frame, byte(seq>>8), byte(seq+ack), 0x40, 0, ttl, proto, 0, 0)
	frame = append(append(frame, a...), b...)
	return append(frame, tcp...)
}
