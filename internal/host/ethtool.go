package host

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"thru/internal/measure"
)

// offloads maps the kernel's feature names to those of `ethtool -k`, and
// lists the features that cannot be changed. A group is on where one of its
// members is, and fixed where all are (ethtool(8); net/ethtool/ioctl.c,
// ethtool_get_feature_mask). The members of the TCP group are listed too,
// since one IP version alone can be off.
func offloads(features map[string]feature) (on map[string]bool, fixed []string) {
	groups := map[string][]string{
		"rx-checksumming":              {"rx-checksum"},
		"tx-checksumming":              {"tx-checksum-ipv4", "tx-checksum-ip-generic", "tx-checksum-ipv6", "tx-checksum-fcoe-crc", "tx-checksum-sctp"},
		"scatter-gather":               {"tx-scatter-gather", "tx-scatter-gather-fraglist"},
		"tcp-segmentation-offload":     {"tx-tcp-segmentation", "tx-tcp-ecn-segmentation", "tx-tcp-mangleid-segmentation", "tx-tcp6-segmentation"},
		"generic-segmentation-offload": {"tx-generic-segmentation"},
		"generic-receive-offload":      {"rx-gro"},
		"large-receive-offload":        {"rx-lro"},
		"rx-vlan-offload":              {"rx-vlan-hw-parse"},
		"tx-vlan-offload":              {"tx-vlan-hw-insert"},
		"receive-hashing":              {"rx-hashing"},
	}
	for _, name := range []string{
		"tx-tcp-segmentation", "tx-tcp6-segmentation", "rx-gro-hw", "tx-udp-segmentation", "rx-udp-gro-forwarding",
		"tx-udp_tnl-segmentation", "tx-gre-segmentation",
	} {
		groups[name] = []string{name}
	}
	on = map[string]bool{}
	for name, members := range groups {
		known, movable := false, false
		for _, m := range members {
			if f, ok := features[m]; ok {
				known, on[name], movable = true, on[name] || f.on, movable || !f.fixed
			}
		}
		if known && !movable {
			fixed = append(fixed, name)
		}
	}
	slices.Sort(fixed)
	return on, fixed
}

// driverCounters pairs the names and values of `ethtool -S`. vmxnet3 repeats
// its names for every queue, below a heading "Tx Queue#" whose value is the
// queue (drivers/net/vmxnet3/vmxnet3_ethtool.c): they become "Tx Queue#0 pkts
// tx discard". Other repeated names get a number.
func driverCounters(names []string, values []uint64) map[string]uint64 {
	all := make(map[string]uint64, len(names))
	heading := ""
	for i, name := range names[:min(len(names), len(values))] {
		if strings.HasSuffix(name, "Queue#") {
			heading = fmt.Sprintf("%s%d ", strings.TrimSpace(name), values[i])
			continue
		}
		if !strings.HasPrefix(name, " ") {
			heading = ""
		}
		key := strings.TrimSpace(name)
		if key == "" {
			continue
		}
		key = heading + key
		for n, base := 2, key; ; n++ {
			if _, taken := all[key]; !taken {
				break
			}
			key = fmt.Sprintf("%s #%d", base, n)
		}
		all[key] = values[i]
	}
	return all
}

// splitStrings splits a kernel string set into its names, each in 32 bytes
// with a zero at the end (include/uapi/linux/ethtool.h, ETH_GSTRING_LEN).
func splitStrings(b []byte) []string {
	var names []string
	for s := range slices.Chunk(b, gstringLen) {
		name, _, _ := strings.Cut(string(s), "\x00")
		names = append(names, name)
	}
	return names
}

const gstringLen = 32

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
