package vsphere

import (
	"slices"
	"strings"

	"github.com/vmware/govmomi/vim25/types"

	"thru/internal/measure"
)

// Types of managed objects that are watched, in the API's names.
const (
	guestKind = "VirtualMachine"
	hostKind  = "HostSystem"
)

// counter maps a vSphere counter to one of measure.
type counter struct {
	native string // group, name and rollup: "cpu.ready.summation"
	unit   types.PerformanceManagerUnit
	ours   string // measure.Counter*
	kind   string // guestKind, hostKind; none: both
	parts  parts  // which parts have values besides the whole
	mean   bool   // the whole is a sum over virtual CPUs, ours is their mean
	scale  scale
}

// parts says what the instances of a counter are.
type parts int

const (
	whole  parts = iota // there are none, or they are irrelevant to traffic
	ofCPUs              // "0", "1": virtual CPUs of a guest, logical ones of a host
	ofNICs              // "4000": key of a guest's adapter; "vmnic0"
)

// scale converts a value that covers a number of seconds.
type scale func(v, seconds float64) float64

func ofTime(ms, seconds float64) float64   { return ms / (seconds * 1000) * 100 }
func ofHundred(v, _ float64) float64       { return v / 100 }
func toBytes(kb, _ float64) float64        { return kb * 1024 }
func toBits(kb, _ float64) float64         { return kb * 1024 * 8 }
func perSecond(n, seconds float64) float64 { return n / seconds }
func asIs(n, _ float64) float64            { return n }

// counters lists all counters that are read. Where two rows of a kind have
// the same meaning, the first that the source offers is used. Names, units
// and instances: vSphere Web Services API reference, PerformanceManager, the
// pages on CPU, Memory and Network counters; a kilobyte has 1024 bytes:
// vSphere Monitoring and Performance, "Data Counters"; a percentage is a
// fixed point number of two digits: the page on CPU counters.
func counters() []counter {
	const (
		millis  = types.PerformanceManagerUnitMillisecond
		percent = types.PerformanceManagerUnitPercent
		kilo    = types.PerformanceManagerUnitKiloBytes
		kiloS   = types.PerformanceManagerUnitKiloBytesPerSecond
		number  = types.PerformanceManagerUnitNumber
	)
	return []counter{
		{"cpu.ready.summation", millis, measure.CounterReady, guestKind, ofCPUs, true, ofTime},
		{"cpu.readiness.average", percent, measure.CounterReady, guestKind, ofCPUs, false, ofHundred},
		{"cpu.costop.summation", millis, measure.CounterCoStop, guestKind, ofCPUs, true, ofTime},
		{"cpu.maxlimited.summation", millis, measure.CounterLimited, guestKind, ofCPUs, true, ofTime},
		{"cpu.swapwait.summation", millis, measure.CounterSwapWait, guestKind, ofCPUs, true, ofTime},
		{"cpu.used.summation", millis, measure.CounterUsed, guestKind, ofCPUs, false, ofTime},
		{"cpu.run.summation", millis, measure.CounterUsed, guestKind, ofCPUs, false, ofTime},
		{"cpu.latency.average", percent, measure.CounterDelayed, guestKind, whole, false, ofHundred},
		{"cpu.usage.average", percent, measure.CounterUsage, hostKind, ofCPUs, false, ofHundred},

		{"mem.vmmemctl.average", kilo, measure.CounterBalloon, "", whole, false, toBytes},
		{"mem.swapped.average", kilo, measure.CounterSwapped, guestKind, whole, false, toBytes},
		{"mem.swapused.average", kilo, measure.CounterSwapped, hostKind, whole, false, toBytes},
		{"mem.swapinRate.average", kiloS, measure.CounterSwapIn, "", whole, false, toBytes},
		{"mem.consumed.average", kilo, measure.CounterConsumed, "", whole, false, toBytes},
		{"mem.active.average", kilo, measure.CounterActive, "", whole, false, toBytes},
		{"mem.granted.average", kilo, measure.CounterGranted, "", whole, false, toBytes},
		{"mem.latency.average", percent, measure.CounterMemWait, "", whole, false, ofHundred},

		{"net.received.average", kiloS, measure.CounterRxBps, "", ofNICs, false, toBits},
		{"net.bytesRx.average", kiloS, measure.CounterRxBps, "", ofNICs, false, toBits},
		{"net.transmitted.average", kiloS, measure.CounterTxBps, "", ofNICs, false, toBits},
		{"net.bytesTx.average", kiloS, measure.CounterTxBps, "", ofNICs, false, toBits},
		{"net.packetsRx.summation", number, measure.CounterRxPps, "", ofNICs, false, perSecond},
		{"net.packetsTx.summation", number, measure.CounterTxPps, "", ofNICs, false, perSecond},
		{"net.droppedRx.summation", number, measure.CounterRxDropped, "", ofNICs, false, asIs},
		{"net.droppedTx.summation", number, measure.CounterTxDropped, "", ofNICs, false, asIs},
		{"net.errorsRx.summation", number, measure.CounterRxErrors, hostKind, ofNICs, false, asIs},
		{"net.errorsTx.summation", number, measure.CounterTxErrors, hostKind, ofNICs, false, asIs},
	}
}

// firsts returns the counters of a kind, each once: under the name that is
// tried first.
func firsts(kind string) []counter {
	var out []counter
	for _, row := range counters() {
		if row.of(kind) && !slices.ContainsFunc(out, func(c counter) bool { return c.ours == row.ours }) {
			out = append(out, row)
		}
	}
	return out
}

// of reports whether a counter is read for a type of object.
func (c counter) of(kind string) bool { return c.kind == "" || c.kind == kind }

// takes reports whether an instance of a counter is read. A guest's traffic
// is counted by its adapters and again by the NICs of its host, which are
// left out.
func (c counter) takes(kind, instance string) bool {
	if instance == "" {
		return true
	}
	switch c.parts {
	case ofCPUs:
		return isNumber(instance)
	case ofNICs:
		return isNumber(instance) == (kind == guestKind)
	}
	return false
}

// value converts a value that covers a number of seconds, of a guest with a
// number of CPUs.
func (c counter) value(raw int64, instance string, seconds float64, cpus int) float64 {
	v := c.scale(float64(raw), seconds)
	if c.mean && instance == "" {
		v /= float64(cpus)
	}
	return v
}

func isNumber(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}
