package host

import (
	"encoding/binary"
	"math"

	"thru/internal/measure"
)

// maxStrings limits the size of a string set or a table; drivers with a set
// for each queue reach some thousands.
const maxStrings = 1 << 16

// answerOf converts the n 32-bit words after the command.
func answerOf[T any](b []byte, n int, of func([]uint32) T) (answer T, err error) {
	if len(b) < 4*(n+1) {
		return answer, errShort
	}
	v := make([]uint32, n)
	for i := range v {
		v[i] = min(binary.NativeEndian.Uint32(b[4*(i+1):]), math.MaxInt32)
	}
	return of(v), nil
}

// Sizes of the answers in words, without the command
// (include/uapi/linux/ethtool.h).
const (
	ringWords, channelWords, coalesceWords, pauseWords = 8, 8, 22, 3
)

// ringsOf reads struct ethtool_ringparam.
func ringsOf(v []uint32) measure.Rings {
	return measure.Rings{RXMax: int(v[0]), TXMax: int(v[3]), RX: int(v[4]), TX: int(v[7])}
}

// channelsOf reads struct ethtool_channels. It leaves out channels for other
// purposes (link interrupts).
func channelsOf(v []uint32) measure.Channels {
	return measure.Channels{
		RXMax: int(v[0]), TXMax: int(v[1]), CombinedMax: int(v[3]),
		RX: int(v[4]), TX: int(v[5]), Combined: int(v[7]),
	}
}

// coalesceOf reads struct ethtool_coalesce.
func coalesceOf(v []uint32) measure.Coalesce {
	return measure.Coalesce{
		RXNs: int64(v[0]) * 1000, RXFrames: int(v[1]), TXNs: int64(v[4]) * 1000, TXFrames: int(v[5]),
		AdaptiveRX: v[9] != 0, AdaptiveTX: v[10] != 0,
	}
}

// pauseOf reads struct ethtool_pauseparam.
func pauseOf(v []uint32) measure.Pause {
	return measure.Pause{Autoneg: v[0] != 0, RX: v[1] != 0, TX: v[2] != 0}
}

// sizeofRXFH is struct ethtool_rxfh without its table and key.
const sizeofRXFH = 24

// parseRSS reads struct ethtool_rxfh, the indirection table after it, and
// skips the key, which is secret. It counts the table entries of each queue.
func parseRSS(b []byte) (measure.RSS, error) {
	if len(b) < sizeofRXFH {
		return measure.RSS{}, errShort
	}
	size := int(binary.NativeEndian.Uint32(b[8:]))
	if size < 0 || size > (len(b)-sizeofRXFH)/4 {
		return measure.RSS{}, errShort
	}
	r := measure.RSS{Table: size, Hash: hashFunction(b[16]), Queues: []int{}}
	for i := range size {
		q := int(binary.NativeEndian.Uint32(b[sizeofRXFH+4*i:]))
		if q < 0 || q > maxStrings {
			continue // no driver has as many queues
		}
		for len(r.Queues) <= q {
			r.Queues = append(r.Queues, 0)
		}
		r.Queues[q]++
	}
	return r, nil
}

// hashFunction returns the name of the hash function by its bit
// (ETH_RSS_HASH_TOP and so on).
func hashFunction(bits byte) string {
	switch bits {
	case 1:
		return "toeplitz"
	case 2:
		return "xor"
	case 4:
		return "crc32"
	}
	return ""
}

// hashFields returns the fields that a NIC hashes for one kind of flow
// (RXH_IP_SRC and so on).
func hashFields(bits uint64) []string {
	list := []string{}
	for _, f := range []struct {
		bit  int
		name string
	}{{1, "l2-dst"}, {2, "vlan"}, {3, "l3-proto"}, {4, "src-ip"}, {5, "dst-ip"}, {6, "src-port"}, {7, "dst-port"}, {8, "gtp-teid"}, {9, "ip6-flow-label"}} {
		if bits&(1<<f.bit) != 0 {
			list = append(list, f.name)
		}
	}
	return list
}

// feature is one of a driver's offloads.
type feature struct{ on, fixed bool }

// featureBlock is struct ethtool_get_features_block: 32 features, and four
// words of bits: can be changed, wanted, on, never changed.
const featureBlock = 16

// parseFeatures reads struct ethtool_gfeatures. Like `ethtool -k` it calls a
// feature fixed that the driver cannot or never changes.
func parseFeatures(names []string, b []byte) (map[string]feature, error) {
	const head = 8
	if len(b) < head+(len(names)+31)/32*featureBlock {
		return nil, errShort
	}
	all := make(map[string]feature, len(names))
	for i, n := range names {
		block := b[head+i/32*featureBlock:]
		bit := func(word int) bool { return binary.NativeEndian.Uint32(block[4*word:])&(1<<(i%32)) != 0 }
		all[n] = feature{on: bit(2), fixed: !bit(0) || bit(3)}
	}
	delete(all, "")
	return all, nil
}
