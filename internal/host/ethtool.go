package host

import (
	"fmt"
	"slices"
	"strings"
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
