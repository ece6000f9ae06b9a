package host

import (
	"fmt"
	"strconv"
	"strings"

	"thru/internal/host/tree"
	"thru/internal/measure"
)

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
