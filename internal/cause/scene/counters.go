package scene

import (
	"slices"
	"strings"
)

// Class is a kind of counters of errors and drops.
type Class int

const (
	WireErrors Class = iota // packets that arrived damaged
	NoRoom                  // packets that arrived well and found no free descriptor or buffer
)

// counterNames are parts of the names that a system counts a class by, in
// small letters; nil where a system counts no such thing. Linux has those of its
// drivers beside its own (if_link.h, `ethtool -S`). FreeBSD and macOS have the
// columns of netstat(1), Windows the properties of Get-NetAdapterStatistics,
// Solaris the statistics of kstat's module link, ESXi the lines of
// `esxcli network nic stats get`. Ierrs, ierrors and ReceivedPacketErrors are
// all errors of received packets: some drivers add there what had no room.
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

// Uncounted says why a class is not known of the interface; "" where it is.
// Without counters and without a reason none of them was above zero; but an
// agent of an older version, which knows no kinds of interfaces, reads none.
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

// Counted is how many packets a class counts, and the name of the counter that
// tells so. Counters that differ in a number only are those of the queues, and
// are added up. Others may count the same packets: rx_missed_errors of the
// kernel is rx_out_of_buffer of mlx5. Of them the largest counts.
func (f *Face) Counted(c Class) (most uint64, name string) {
	parts := c.counterNames(f.Host.System)
	sums := map[string]uint64{}
	largest := map[string]string{} // counter of each sum
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

// withoutDigits drops digits from a text (strings.Map).
func withoutDigits(c rune) rune {
	if c >= '0' && c <= '9' {
		return -1
	}
	return c
}

// Received counts the packets of all receive queues; 0 where they are not known.
func (f *Face) Received() (packets uint64) {
	for _, c := range f.Counters {
		if strings.HasPrefix(c.Queue, "rx") {
			packets += c.Packets
		}
	}
	return packets
}
