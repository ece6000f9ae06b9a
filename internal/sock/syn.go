package sock

import (
	"encoding/binary"
	"errors"
	"fmt"

	"thru/internal/measure"
)

// Numbers of IP and TCP headers (RFC 791, RFC 8200, RFC 9293, RFC 7323).
const (
	ip4Header, ip6Header, tcpHeader = 20, 40, 20

	protocolTCP = 6

	flagSYN, flagECE, flagCWR = 0x02, 0x40, 0x80

	kindEnd, kindNop, kindMSS, kindScale, kindSACK, kindTimestamps = 0, 1, 2, 3, 4, 8
)

// ParseSYN reads the options of a SYN from its IP and TCP headers, as the kernel has kept them (SavedSYN). An option that is not in the segment is false,
// because the segment is complete. It returns an error for other data.
func ParseSYN(b []byte) (measure.SYN, error) {
	tcp, err := tcpOf(b)
	if err != nil {
		return measure.SYN{}, err
	}
	length := int(tcp[12]>>4) * 4
	if length < tcpHeader || length > len(tcp) || tcp[13]&flagSYN == 0 {
		return measure.SYN{}, errors.New("sock: reading a SYN: the TCP header is truncated, or of another segment")
	}
	s := measure.SYN{
		HasScale: new(false), SACK: new(false), Timestamps: new(false),
		ECN: new(tcp[13]&(flagECE|flagCWR) == flagECE|flagCWR),
	}
	parseOptions(tcp[tcpHeader:length], &s)
	return s, nil
}

// tcpOf returns the data after the IP header. It does not read a SYN after IPv6 extension headers: no stack sends one.
func tcpOf(b []byte) ([]byte, error) {
	if len(b) == 0 {
		return nil, errors.New("sock: reading a SYN: the kernel saved none")
	}
	header, protocol := 0, byte(0)
	switch version := b[0] >> 4; {
	case version == 4 && len(b) >= ip4Header:
		header, protocol = int(b[0]&15)*4, b[9]
	case version == 6 && len(b) >= ip6Header:
		header, protocol = ip6Header, b[6]
	default:
		return nil, fmt.Errorf("sock: reading a SYN: %d bytes of IP version %d", len(b), version)
	}
	if header < ip4Header || len(b) < header+tcpHeader || protocol != protocolTCP {
		return nil, errors.New("sock: reading a SYN: no TCP header follows the IP header")
	}
	return b[header:], nil
}

// parseOptions reads TCP options up to the first truncated one.
func parseOptions(b []byte, s *measure.SYN) {
	for len(b) > 0 && b[0] != kindEnd {
		if b[0] == kindNop {
			b = b[1:]
			continue
		}
		if len(b) < 2 || b[1] < 2 || int(b[1]) > len(b) {
			return
		}
		value := b[2:b[1]]
		switch {
		case b[0] == kindMSS && len(value) == 2:
			s.MSS = new(int(binary.BigEndian.Uint16(value)))
		case b[0] == kindScale && len(value) == 1:
			s.HasScale, s.WindowScale = new(true), new(int(value[0]))
		case b[0] == kindSACK && len(value) == 0:
			s.SACK = new(true)
		case b[0] == kindTimestamps && len(value) == 8:
			s.Timestamps = new(true)
		}
		b = b[b[1]:]
	}
}
