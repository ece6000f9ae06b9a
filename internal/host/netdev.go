package host

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"thru/internal/measure"
)

// parseNetDev reads one interface of /proc/net/dev (net/core/net-procfs.c,
// dev_seq_printf_stats). The file is used instead of /sys/class/net because
// it shows the calling thread's network namespace, whatever is mounted on
// /sys. Received drops hold the packets that the NIC itself missed
// (rx_missed_errors), which `ip -s` shows apart: RxRing has them too, so that
// the two must not be added. On vmxnet3 they are apart (driverRing).
func parseNetDev(r io.Reader, name string) (measure.NICSpan, error) {
	s := bufio.NewScanner(r)
	for s.Scan() {
		who, rest, ok := strings.Cut(s.Text(), ":")
		if !ok || strings.TrimSpace(who) != name {
			continue
		}
		f := strings.Fields(rest)
		if len(f) < 16 {
			return measure.NICSpan{}, fmt.Errorf("%s has %d columns, want 16", name, len(f))
		}
		var v [16]uint64
		for i := range v {
			n, err := strconv.ParseUint(f[i], 10, 64)
			if err != nil {
				return measure.NICSpan{}, fmt.Errorf("%s: %.40q is no count", name, f[i])
			}
			v[i] = n
		}
		return measure.NICSpan{
			Name:    name,
			RxBytes: v[0], RxPackets: v[1], RxErrors: v[2], RxDropped: v[3],
			TxBytes: v[8], TxPackets: v[9], TxErrors: v[10], TxDropped: v[11],
		}, nil
	}
	if err := s.Err(); err != nil {
		return measure.NICSpan{}, err
	}
	return measure.NICSpan{}, errors.New("no interface " + name)
}
