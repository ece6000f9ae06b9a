package host

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"thru/internal/host/tree"
)

// parseProtocols reads /proc/net/netstat and /proc/net/snmp, which have pairs
// of lines: "Tcp: names ..." and "Tcp: values ..." (net/ipv4/proc.c). Keys of
// the result are "Tcp.InSegs".
func parseProtocols(text string) (map[string]uint64, error) {
	all := map[string]uint64{}
	for pairs := range slices.Chunk(slices.Collect(tree.Lines(text)), 2) {
		group, names, ok := strings.Cut(pairs[0], ":")
		if !ok {
			return nil, fmt.Errorf("line %.40q has no name", pairs[0])
		}
		if len(pairs) < 2 {
			return nil, fmt.Errorf("%.40q has no line of values", group)
		}
		values, ok := strings.CutPrefix(pairs[1], group+":")
		if !ok {
			return nil, fmt.Errorf("%.40q is followed by %.40q", group, pairs[1])
		}
		if err := pair(all, group, strings.Fields(names), strings.Fields(values)); err != nil {
			return nil, err
		}
	}
	return all, tree.UnlessEmpty(len(all), "no counters")
}

// pair parses the counters of one group. It leaves out groups other than IP,
// ICMP, TCP and UDP, and values that are no counters.
func pair(all map[string]uint64, group string, names, values []string) error {
	if len(names) != len(values) {
		return fmt.Errorf("%.40q has %d names and %d values", group, len(names), len(values))
	}
	if !slices.Contains([]string{"TcpExt", "IpExt", "Ip", "Icmp", "IcmpMsg", "Tcp", "Udp"}, group) {
		return nil
	}
	for i, name := range names {
		if gauge(group, name) {
			continue
		}
		n, err := strconv.ParseUint(values[i], 10, 64)
		if err != nil {
			return fmt.Errorf("%.40s.%.40s is %.40q, not a count", group, name, values[i])
		}
		all[group+"."+name] = n
	}
	return nil
}

// gauge reports whether a value is a setting or a level and not a counter: it
// may fall, and its difference means nothing. Tcp.MaxConn is even negative.
func gauge(group, name string) bool {
	switch group {
	case "Ip":
		return name == "Forwarding" || name == "DefaultTTL"
	case "Tcp":
		return slices.Contains([]string{"RtoAlgorithm", "RtoMin", "RtoMax", "MaxConn", "CurrEstab"}, name)
	}
	return false
}

// parseSNMP6 reads /proc/net/snmp6, which has one "Ip6InReceives 0" a line
// (net/ipv6/proc.c). Keys become "Ip6.InReceives", as for IPv4.
func parseSNMP6(text string) (map[string]uint64, error) {
	all := map[string]uint64{}
	for line := range tree.Lines(text) {
		f := strings.Fields(line)
		if len(f) != 2 {
			return nil, fmt.Errorf("line %.40q has %d columns, want 2", line, len(f))
		}
		for _, group := range []string{"Ip6", "Icmp6", "Udp6"} {
			name, ok := strings.CutPrefix(f[0], group)
			if !ok || name == "" {
				continue
			}
			n, err := strconv.ParseUint(f[1], 10, 64)
			if err != nil {
				return nil, fmt.Errorf("%.40s is %.40q, not a count", f[0], f[1])
			}
			all[group+"."+name] = n
		}
	}
	return all, tree.UnlessEmpty(len(all), "no counters")
}

// parseConntrack reads /proc/net/stat/nf_conntrack: names, then a line of
// hexadecimal counts for each CPU (net/netfilter/nf_conntrack_standalone.c).
// It returns the sum of refusals as "Conntrack.Drop": packets dropped since
// the table was full, connections evicted for others, and connections that
// could not be inserted.
func parseConntrack(text string) (map[string]uint64, error) {
	head, text, _ := strings.Cut(text, "\n")
	if head == "" {
		return nil, errors.New("empty")
	}
	names := strings.Fields(head)
	all := map[string]uint64{}
	for line := range tree.Lines(text) {
		f := strings.Fields(line)
		if len(f) != len(names) {
			return nil, fmt.Errorf("line %.80q has %d columns, want %d", line, len(f), len(names))
		}
		for i, name := range names {
			key, kept := map[string]string{"drop": "Drop", "early_drop": "EarlyDrop", "insert_failed": "InsertFailed"}[name]
			if !kept {
				continue
			}
			n, err := strconv.ParseUint(f[i], 16, 32)
			if err != nil {
				return nil, fmt.Errorf("%.80q is not a 32-bit number", f[i])
			}
			all["Conntrack."+key] += n
		}
	}
	return all, nil
}
