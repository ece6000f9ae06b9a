package host

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"thru/internal/host/tree"
	"thru/internal/measure"
)

// parseNetDev reads one interface of /proc/net/dev (net/core/net-procfs.c,
// dev_seq_printf_stats). It uses this file and not /sys/class/net since the
// file shows the calling thread's network namespace, whatever is mounted on
// /sys. Received drops include the packets that the NIC itself missed
// (rx_missed_errors), which `ip -s` shows separately: RxRing counts them too,
// so the two must not be added. On vmxnet3 the two are separate (driverRing).
func parseNetDev(text, name string) (measure.NICSpan, error) {
	for line := range strings.Lines(text) {
		who, v, err := netDevLine(line)
		if who != name {
			continue
		}
		return measure.NICSpan{
			Name:    name,
			RxBytes: v[0], RxPackets: v[1], RxErrors: v[2], RxDropped: v[3],
			TxBytes: v[8], TxPackets: v[9], TxErrors: v[10], TxDropped: v[11],
		}, err
	}
	return measure.NICSpan{}, errors.New("no interface " + name)
}

// DeviceColumns are the counters of an interface in /proc/net/dev: 8 for
// receiving, then 8 for sending, each beginning with bytes, packets, errors
// and drops.
type DeviceColumns [16]uint64

// Devices returns the counters of all interfaces of the calling thread's
// network namespace.
func (h *Host) Devices() (map[string]DeviceColumns, error) {
	return tree.Parsed(h.fs.net, "dev", func(text string) (map[string]DeviceColumns, error) {
		all := map[string]DeviceColumns{}
		for line := range strings.Lines(text) {
			if name, v, err := netDevLine(line); name != "" && err == nil {
				all[name] = v
			}
		}
		return all, nil
	})
}

// netDevLine reads the counters of one interface; header lines have no name.
func netDevLine(line string) (name string, v DeviceColumns, err error) {
	name, rest, ok := strings.Cut(line, ":")
	if !ok {
		return "", v, nil
	}
	name = strings.TrimSpace(name)
	f := strings.Fields(rest)
	if len(f) < len(v) {
		return name, v, fmt.Errorf("%.40s has %d columns, want %d", name, len(f), len(v))
	}
	for i := range v {
		if v[i], err = strconv.ParseUint(f[i], 10, 64); err != nil {
			return name, v, fmt.Errorf("%.40s: %.40q is not a count", name, f[i])
		}
	}
	return name, v, nil
}

// parseSoftnet reads /proc/net/softnet_stat: one line of hexadecimal columns
// a core (net/core/net-procfs.c, softnet_seq_show). Column 1 counts packets
// processed, 2 packets dropped for a full backlog, 3 how often the budget ran
// out. Kernels have 9 columns at least; since 5.10 column 13 is the core's
// number. Before that the line number stands for it, which is wrong where a
// core is offline.
func parseSoftnet(text string) ([]measure.Softnet, error) {
	var cores []measure.Softnet
	for line := range tree.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 9 {
			return nil, fmt.Errorf("line %.80q has %d columns, want 9", line, len(f))
		}
		var v [13]uint64
		for i := range min(len(f), len(v)) {
			n, err := strconv.ParseUint(f[i], 16, 32)
			if err != nil {
				return nil, fmt.Errorf("%.80q is not a 32-bit number", f[i])
			}
			v[i] = n
		}
		c := measure.Softnet{Core: len(cores), Processed: v[0], Dropped: v[1], TimeSqueeze: v[2]}
		if len(f) >= 13 {
			c.Core = int(v[12])
		}
		cores = append(cores, c)
	}
	return cores, tree.UnlessEmpty(len(cores), "empty")
}
