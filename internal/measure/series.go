package measure

import (
	"strconv"
	"time"
)

// Counters of a Series. Each source translates its counters into these, so that rules do not depend on the source. Where a counter covers a guest and each of
// its CPUs, Instance shows which.
const (
	// For a guest and, by number, each of its virtual CPUs.
	CounterReady    = "cpu.ready_pct"    // time that a virtual CPU was ready to run and had no CPU; for a guest the mean of its CPUs
	CounterCoStop   = "cpu.costop_pct"   // time that it waited for the guest's other CPUs to be scheduled too
	CounterLimited  = "cpu.limited_pct"  // time that it was ready and not scheduled because of a limit
	CounterUsed     = "cpu.used_pct"     // of one CPU for each virtual CPU; for a guest the sum
	CounterSwapWait = "cpu.swapwait_pct" // time that it waited for memory to be swapped in
	CounterDelayed  = "cpu.latency_pct"  // for a guest: time that it wanted to run and did not, or not at full speed (all of the above, hyper-threading, a slower clock)
	// For a host and, by number, each of its CPUs.
	CounterUsage = "cpu.usage_pct" // for a host: of all its CPUs
	// For a guest and for a host.
	CounterBalloon  = "mem.balloon_bytes"  // reclaimed from guests
	CounterSwapped  = "mem.swapped_bytes"  // swapped out by the hypervisor
	CounterSwapIn   = "mem.swapin_bytes_s" // swapped in again
	CounterConsumed = "mem.consumed_bytes" // of the host's memory
	CounterActive   = "mem.active_bytes"   // recently used, as the hypervisor estimates
	CounterGranted  = "mem.granted_bytes"  // mapped to the guest
	CounterMemWait  = "mem.latency_pct"    // time spent waiting for memory from swap or compression
	CounterFree     = "mem.free_bytes"     // of a host
	// For a guest (Instance: its NIC's Key, or "" for all) and for a host (its NIC).
	CounterRxBps     = "net.rx_bps"
	CounterTxBps     = "net.tx_bps"
	CounterRxPps     = "net.rx_packets_s"
	CounterTxPps     = "net.tx_packets_s"
	CounterRxDropped = "net.rx_dropped_packets" // in each interval, towards a guest or at a NIC
	CounterTxDropped = "net.tx_dropped_packets"
	CounterRxErrors  = "net.rx_errors_packets"
	CounterTxErrors  = "net.tx_errors_packets"
	CounterRxDropPct = "net.rx_dropped_pct" // esxtop's %DRPRX
	CounterTxDropPct = "net.tx_dropped_pct" // esxtop's %DRPTX
	// For a guest's port at the switch.
	CounterRingFull = "port.rx_ring_full_packets" // the guest's receive ring was full
	CounterNoBuffer = "port.rx_no_buffer_packets" // it had no buffer at all
	// For a host: one receive queue of a NIC, as "vmnic0:3"; a thread that forwards packets, by its name. With KVM such a thread belongs to the guest that it
	// works for.
	CounterQueueRx = "queue.rx_packets_s"
	CounterThread  = "thread.used_pct" // of one CPU
)

// Series are the values of one counter over the time of a test.
type Series struct {
	Of       string    `json:"of"`                 // id of a guest or of a host
	Instance string    `json:"instance,omitempty"` // part of it: CPU, NIC, queue, thread; empty: all of it
	Counter  string    `json:"counter"`            // one of the constants: its name ends with the unit
	Native   string    `json:"native"`             // name at the source: "cpu.ready.summation", "%DRPRX"
	EveryNs  int64     `json:"interval_ns"`        // time that a sample covers
	Samples  []Reading `json:"samples"`            // sorted by time
}

// Reading is the value of one interval.
type Reading struct {
	EndedAt time.Time `json:"ended_at"` // by the controller's clock: corrected from the source's clock
	Value   float64   `json:"value"`
}

// Within returns the samples whose interval lies between begin and end. A sample may extend beyond either by a quarter of its interval.
func (s *Series) Within(begin, end time.Time) []Reading {
	every := time.Duration(s.EveryNs)
	var in []Reading
	for _, x := range s.Samples {
		if !x.EndedAt.Add(-every).Before(begin.Add(-every/4)) && !x.EndedAt.After(end.Add(every/4)) {
			in = append(in, x)
		}
	}
	return in
}

// Placement identifies the guest or host of an inventory that is an end point of the test.
type Placement struct {
	Source    string   `json:"source"`               // of the inventory
	Guest     string   `json:"guest,omitempty"`      // id; empty where the end point is a host itself
	GuestName string   `json:"guest_name,omitempty"` //
	Host      string   `json:"host,omitempty"`       // id of its host, or of itself
	HostName  string   `json:"host_name,omitempty"`  //
	Cluster   string   `json:"cluster,omitempty"`
	Site      string   `json:"datacenter,omitempty"`
	By        []string `json:"matched_by"`        // "uuid", "mac", "address"
	NIC       string   `json:"nic,omitempty"`     // name of the adapter that carries the test
	Network   string   `json:"network,omitempty"` // name of its port group or bridge
	VLAN      string   `json:"vlan,omitempty"`
	Switch    string   `json:"switch,omitempty"`     // name
	PortGroup string   `json:"port_group,omitempty"` // id
	SwitchID  string   `json:"switch_id,omitempty"`
}

// Placements of two end points relative to each other.
const (
	SameMachine = "same machine"      // one end point, or two of the same guest
	SameHost    = "same host"         // two guests of one host, or a guest and its host
	SameVLAN    = "same VLAN"         // two hosts, one network
	SameSite    = "same data center"  // two hosts, two networks of one data center
	OtherSite   = "other data center" //
)

// Relation is the placement of two end points of a test relative to each other.
type Relation struct {
	From string `json:"from"`
	To   string `json:"to"`
	Kind string `json:"relation"` // one of the constants
	Why  string `json:"because"`  // "both are on esx1", "esx1 and esx2, VLAN 100 of dvs-prod"
}

// FewSamples explains that the samples of a source's counters are too long: less than two of them fit into the time of the test, so that they also cover other
// times. ok is false where two fit.
func FewSamples(source string, span, every time.Duration) (n NotChecked, ok bool) {
	if every <= 0 || span >= 2*every {
		return NotChecked{}, false
	}
	return NotChecked{
		Fact: CountersOf(source),
		Why: "the test took " + seconds(span) + ", a sample covers " + seconds(every) +
			": fewer than two are within the test (a test of " + seconds(3*every) + " always has two)",
	}, true
}

func seconds(d time.Duration) string {
	return strconv.FormatFloat(d.Round(100*time.Millisecond).Seconds(), 'f', -1, 64) + " s"
}
