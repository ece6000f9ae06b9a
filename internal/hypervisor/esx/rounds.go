package esx

import (
	"context"
	"strconv"
	"strings"
	"time"

	"thru/internal/measure"
	"thru/internal/unit"
)

// roundScript prints the counters of some ports and NICs, each part after a
// line "== KIND NAME". It looks for a port in every port set, since that of a
// distributed switch has its own name (DvsPortset-0).
const roundScript = `
for p in $1; do
	found=
	for s in $(vsish -e ls /net/portsets 2>/dev/null); do
		d=/net/portsets/${s%/}/ports/$p
		c=$(vsish -e get $d/clientStats 2>/dev/null) || continue
		found=yes; echo "== clientStats $p"; echo "$c"
		echo "== rxSummary $p"; vsish -e get $d/vmxnet3/rxSummary 2>/dev/null
		break
	done
	test -n "$found" || { echo "== port $p"; esxcli network port stats get -p $p; }
done
for n in $2; do
	echo "== nic $n"; esxcli network nic stats get -n $n
	echo "== queues $n"; vsish -e get /net/pNics/$n/stats 2>/dev/null
done
exit 0
`

// meaning maps a counter of ESXi to one of measure. A rate is per second.
type meaning struct {
	counter string
	rate    bool
	factor  float64
}

// meanings returns the meaning of a counter by the part of a round and by
// ESXi's name, in lower case without spaces. clientStats and rxSummary:
// VMware KB 1010071 and 2039495; the others: ESXCLI reference. For a guest's
// port, received means received by the guest.
func meanings(kind, key string) (meaning, bool) {
	packets := func(c string) meaning { return meaning{c, false, 1} }
	pps := func(c string) meaning { return meaning{c, true, 1} }
	bps := func(c string) meaning { return meaning{c, true, 8} }
	of := map[string]map[string]meaning{
		"clientStats": {
			"droppedrx": packets(measure.CounterRxDropped), "droppedtx": packets(measure.CounterTxDropped),
			"pktsrxok": pps(measure.CounterRxPps), "pktstxok": pps(measure.CounterTxPps),
			"bytesrxok": bps(measure.CounterRxBps), "bytestxok": bps(measure.CounterTxBps),
		},
		"rxSummary": {
			"runningoutofbuffers": packets(measure.CounterNoBuffer), "#oftimesthe1stringisfull": packets(measure.CounterRingFull),
		},
		"port": {
			"receivepacketsdropped": packets(measure.CounterRxDropped), "transmitpacketsdropped": packets(measure.CounterTxDropped),
			"packetsreceived": pps(measure.CounterRxPps), "packetssent": pps(measure.CounterTxPps),
			"bytesreceived": bps(measure.CounterRxBps), "bytessent": bps(measure.CounterTxBps),
		},
		"nic": {
			"receivepacketsdropped": packets(measure.CounterRxDropped), "transmitpacketsdropped": packets(measure.CounterTxDropped),
			"totalreceiveerrors": packets(measure.CounterRxErrors), "totaltransmiterrors": packets(measure.CounterTxErrors),
			"packetsreceived": pps(measure.CounterRxPps), "packetssent": pps(measure.CounterTxPps),
			"bytesreceived": bps(measure.CounterRxBps), "bytessent": bps(measure.CounterTxBps),
		},
	}[kind]
	m, ok := of[key]
	return m, ok
}

// queue matches a driver's packet counter of one receive queue:
// rx_queue_3_packets, rxq3_pkts, rxq3: pkts.
var queue = unit.Pattern(`^(?:rx_?queue_?|rxq_?|rx_?)(\d+)[_\.:]?(?:packets|pkts|totalpkts|total_pkts)$`)

// count is one counter of a round.
type count struct {
	of, part string // of: port id or NIC name; part: number of a queue
	native   string
	meaning
}

// round holds the values of all counters at one time.
type round struct {
	at     time.Time
	values map[count]int64
}

// readRound reads the output of roundScript.
func readRound(in string) map[count]int64 {
	values := map[count]int64{}
	kind, name := "", ""
	for line := range strings.Lines(in) {
		line = strings.TrimSpace(line)
		if rest, ok := strings.CutPrefix(line, "== "); ok {
			kind, name, _ = strings.Cut(rest, " ")
			continue
		}
		i := strings.LastIndexByte(line, ':')
		if i < 0 {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(line[i+1:]), 10, 64)
		if err != nil || n < 0 {
			continue
		}
		native := strings.TrimSpace(line[:i])
		key := strings.ToLower(strings.ReplaceAll(native, " ", ""))
		if m, ok := meanings(kind, key); ok {
			values[count{of: name, native: native, meaning: m}] = n
		} else if q := queue().FindStringSubmatch(key); kind == "queues" && q != nil {
			values[count{of: name, part: q[1], native: native, meaning: meaning{measure.CounterQueueRx, true, 1}}] = n
		}
	}
	return values
}

// ask reads the counters once. Their time is the middle of the command's run.
func (w *watch) ask(ctx context.Context) (round, error) {
	begin := time.Now()
	out, err := w.host.run.Run(ctx, "/bin/sh", "-c", roundScript, "sh", strings.Join(w.ports(), " "), strings.Join(w.nics, " "))
	if err != nil {
		return round{}, err
	}
	return round{at: begin.Add(time.Since(begin) / 2), values: readRound(string(out))}, nil
}

// between adds what was counted between two rounds.
func (w *watch) between(a, b round) {
	every := b.at.Sub(a.at)
	for c, n := range b.values {
		before, ok := a.values[c]
		if !ok || n < before { // it was reset
			continue
		}
		value := float64(n-before) * c.factor
		if c.rate {
			value /= every.Seconds()
		}
		id, instance := w.ownerOf(c)
		w.add(id, instance, c.counter, c.native, every, measure.Reading{EndedAt: b.at, Value: value})
	}
}

// ownerOf returns the guest or host that a counter belongs to, and the part
// of it.
func (w *watch) ownerOf(c count) (id, instance string) {
	if guest, ok := w.portOf[c.of]; ok {
		return guest, c.of
	}
	if c.part != "" {
		return hostID, c.of + ":" + c.part
	}
	return hostID, c.of
}
