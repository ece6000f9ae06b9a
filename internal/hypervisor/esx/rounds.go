package esx

import (
	"context"
	"regexp"
	"strconv"
	"strings"
	"time"

	"thru/internal/measure"
)

// roundScript prints the counters of some ports and NICs, each part behind a line
// "== KIND NAME". A port is looked for in every port set, since that of a
// distributed switch has a name of its own (DvsPortset-0).
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

// meaning is what a counter of ESXi is in the vocabulary. A rate is per second.
type meaning struct {
	counter string
	rate    bool
	factor  float64
}

// meanings are the counters by the part of a round and by ESXi's name, in small
// letters without spaces. clientStats and rxSummary: VMware KB 1010071 and
// 2039495; the others: ESXCLI reference. Of a guest's port, received is what the
// guest has received.
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

// queue is a driver's counter of the packets of one receive queue: rx_queue_3_packets,
// rxq3_pkts, rxq3: pkts.
var queue = regexp.MustCompile(`^(?:rx_?queue_?|rxq_?|rx_?)(\d+)[_\.:]?(?:packets|pkts|totalpkts|total_pkts)$`)

// count is one counter of a round.
type count struct {
	of, part string // of a port, its id; of a NIC, its name; part: a queue's number
	native   string
	meaning
}

// round is what all counters were at a moment.
type round struct {
	at     time.Time
	values map[count]int64
}

// readRound reads what roundScript prints.
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
		} else if q := queue.FindStringSubmatch(key); kind == "queues" && q != nil {
			values[count{of: name, part: q[1], native: native, meaning: meaning{measure.CounterQueueRx, true, 1}}] = n
		}
	}
	return values
}

// ask reads the counters once. Their moment is the middle of the command's time.
func (w *watch) ask(ctx context.Context) (round, error) {
	begin := time.Now()
	out, err := w.host.run.Run(ctx, "/bin/sh", "-c", roundScript, "sh", strings.Join(w.ports(), " "), strings.Join(w.nics, " "))
	if err != nil {
		return round{}, err
	}
	return round{at: begin.Add(time.Since(begin) / 2), values: readRound(string(out))}, nil
}

// between is what has been counted between two rounds.
func (w *watch) between(a, b round) {
	every := b.at.Sub(a.at)
	for c, n := range b.values {
		before, ok := a.values[c]
		if !ok || n < before { // it was set back
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

// ownerOf is the guest or host that a counter is of, and the part of it.
func (w *watch) ownerOf(c count) (id, instance string) {
	if guest, ok := w.portOf[c.of]; ok {
		return guest, c.of
	}
	if c.part != "" {
		return hostID, c.of + ":" + c.part
	}
	return hostID, c.of
}
