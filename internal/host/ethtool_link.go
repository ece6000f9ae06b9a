package host

import (
	"encoding/binary"
	"errors"
)

// linkSettings are the settings that `ethtool NAME` shows. A field that the
// driver does not report is zero.
type linkSettings struct {
	speedBps int64
	duplex   string // "full" or "half"
	port     string
	autoneg  bool
	maxBps   int64 // fastest supported mode
	peerBps  int64 // fastest mode that the link partner advertises
}

// sizeofLinkSettings is struct ethtool_link_settings without its masks
// (include/uapi/linux/ethtool.h).
const sizeofLinkSettings = 48

// parseLinkSettings reads struct ethtool_link_settings and the three masks of
// link modes after it: supported, advertised, and advertised by the partner.
// Byte 15 holds the number of words of each mask.
func parseLinkSettings(b []byte) (linkSettings, error) {
	if len(b) < sizeofLinkSettings {
		return linkSettings{}, errShort
	}
	words := int(int8(b[15]))
	if words < 0 || len(b) < sizeofLinkSettings+3*4*words {
		return linkSettings{}, errShort
	}
	s := linkSettings{autoneg: b[11] == 1}
	// -1 or 0: not known; a value above 100 Tb/s is no speed either.
	if mbps := binary.NativeEndian.Uint32(b[4:]); mbps > 0 && mbps <= 100_000_000 {
		s.speedBps = int64(mbps) * 1_000_000
	}
	switch b[8] {
	case 0:
		s.duplex = "half"
	case 1:
		s.duplex = "full"
	}
	masks := b[sizeofLinkSettings:]
	supported, partner := masks[:4*words], masks[8*words:12*words]
	s.port = port(b[9], modeSet(supported, backplaneMode))
	s.maxBps, s.peerBps = fastest(supported), fastest(partner)
	return s, nil
}

// port returns the connector type (PORT_TP and so on). Backplane ports have
// no number of their own.
func port(number byte, backplane bool) string {
	switch number {
	case 0:
		return "twisted pair"
	case 3:
		return "fibre"
	case 5:
		return "direct attach"
	}
	if backplane {
		return "backplane"
	}
	return ""
}

// backplaneMode is the number of ETHTOOL_LINK_MODE_Backplane_BIT.
const backplaneMode = 16

// modeSet reports whether a bit is set in a mask of 32-bit words.
func modeSet(mask []byte, bit int) bool {
	word := 4 * (bit / 32)
	return len(mask) >= word+4 && binary.NativeEndian.Uint32(mask[word:])&(1<<(bit%32)) != 0
}

// fastest returns the speed of the fastest link mode in a mask, in bit/s; 0
// for an empty mask. The numbers are those of enum
// ethtool_link_mode_bit_indices up to Linux 6.19; newer modes are left out.
func fastest(mask []byte) int64 {
	var mbps int64
	for _, m := range []struct {
		first, last int
		mbps        int64
	}{
		{0, 1, 10}, {2, 3, 100}, {4, 5, 1000}, {12, 12, 10_000}, {15, 15, 2500}, {17, 17, 1000}, {18, 20, 10_000},
		{21, 22, 20_000}, {23, 26, 40_000}, {27, 30, 56_000}, {31, 33, 25_000}, {34, 35, 50_000}, {36, 39, 100_000},
		{40, 40, 50_000}, {41, 41, 1000}, {42, 46, 10_000}, {47, 47, 2500}, {48, 48, 5000}, {52, 56, 50_000},
		{57, 61, 100_000}, {62, 66, 200_000}, {67, 67, 100}, {68, 68, 1000}, {69, 73, 400_000}, {75, 79, 100_000},
		{80, 84, 200_000}, {85, 89, 400_000}, {90, 91, 100}, {92, 92, 10}, {93, 98, 800_000}, {99, 102, 10},
		{103, 108, 200_000}, {109, 114, 400_000}, {115, 120, 800_000}, {121, 124, 1_600_000},
	} {
		for bit := m.first; bit <= m.last && m.mbps > mbps; bit++ {
			if modeSet(mask, bit) {
				mbps = m.mbps
			}
		}
	}
	return mbps * 1_000_000
}

// errUnknown means that the driver does not support a request.
var errUnknown = errors.New("the driver does not report it")
