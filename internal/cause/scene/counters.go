package scene

import (
	"slices"
	"strings"
)

// Class is a class of error and drop counters.
type Class int

const (
	WireErrors Class = iota // packets that arrived damaged
	NoRoom                  // packets that arrived well and found no free descriptor or buffer
)

// counterNames returns parts of the counter names of a class on a system, in lower case; nil if the system does
// not count it. Linux has the counters of its drivers and its own (if_link.h, `ethtool -S`). FreeBSD and macOS
// have the columns of netstat(1), Windows the properties of Get-NetAdapterStatistics, Solaris the statistics of
// kstat's module link, ESXi the lines of `esxcli network nic stats get`. Ierrs, ierrors and ReceivedPacketErrors
// count all receive errors: some drivers include packets that found no buffer.
func (c Class) counterNames(system string) []string {
	return map[string][2][]string{
		"linux": {
			{"crc", "symbol_err", "uncorrectable", "fec_uncorr", "fcs", "rx_jabber", "rx_errors_phy"},
			{"rx_missed", "no_dma_resource", "out_of_buffer", "no_buffer", "rx_fifo", "rx_over_err", "rx oob", "rx_nobuf", "imissed"},
		},
		"freebsd": {{"ierrs"}, {"idrop"}},
		"darwin":  {{"ierrs"}, nil},
		"windows": {{"receivedpacketerrors"}, {"receiveddiscardedpackets"}},
		"solaris": {{"ierrors"}, {"norcvbuf"}},
		"illumos": {{"ierrors"}, {"norcvbuf"}},
		"esxi": {
			{"receive crc errors", "receive frame errors"},
			{"receive packets dropped", "receive missed errors", "receive over errors", "receive fifo errors"},
		},
	}[system][c]
}

// Uncounted returns why a class is not known for the interface; "" if it is known. No counters and no reason means
// that all were zero, except with an older agent, which knows no interface kinds and reads no counters.
func (f *Face) Uncounted(c Class) string {
	why := Reason(f.Host.NotChecked, "interfaces."+f.Name+".error_counters", "interfaces."+f.Name+".*", "interfaces."+f.Name)
	switch {
	case len(c.counterNames(f.Host.System)) == 0:
		return "this system does not count them"
	case f.Errors != nil || why == NotRead && f.Kind != nil:
		return ""
	}
	return why
}

// Counted returns how many packets a class counts, and the name of the counter. Counters whose names differ only
// in a number belong to queues and are summed. Others may count the same packets (rx_missed_errors of the kernel
// is rx_out_of_buffer of mlx5); of those the largest counts.
func (f *Face) Counted(c Class) (most uint64, name string) {
	parts := c.counterNames(f.Host.System)
	sums := map[string]uint64{}
	largest := map[string]string{} // counter with the largest value of each sum
	for _, key := range SortedKeys(f.Errors) {
		low := strings.ToLower(key)
		if !slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(low, p) }) {
			continue
		}
		kind, n := strings.Map(withoutDigits, low), f.Errors[key]
		if at, ok := largest[kind]; !ok || n > f.Errors[at] {
			largest[kind] = key
		}
		if sums[kind] += n; sums[kind] < n {
			sums[kind] = ^uint64(0)
		}
	}
	for _, kind := range SortedKeys(sums) {
		if sums[kind] > most {
			most, name = sums[kind], largest[kind]
		}
	}
	return most, name
}

// withoutDigits drops digits from a text (for strings.Map).
func withoutDigits(c rune) rune {
	if c >= '0' && c <= '9' {
		return -1
	}
	return c
}

// Received counts the packets of all receive queues; 0 if they are not known.
func (f *Face) Received() (packets uint64) {
	for _, c := range f.Counters {
		if strings.HasPrefix(c.Queue, "rx") {
			packets += c.Packets
		}
	}
	return packets
}
