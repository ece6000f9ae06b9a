package measure

import (
	"strconv"
	"time"
)

// Counters of a Series. Each source translates its own into these, so that a
// rule knows no source. Where a counter is of a whole guest and of each of its
// CPUs, the Instance tells.
const (
	// Of a guest and, by number, of each of its virtual CPUs.
	CounterReady    = "cpu.ready_pct"    // time that a virtual CPU was ready to run and had no CPU; of a guest the mean of its CPUs
	CounterCoStop   = "cpu.costop_pct"   // time that it waited for its fellow CPUs to be scheduled too
	CounterLimited  = "cpu.limited_pct"  // time that it was ready and not run because of a limit
	CounterUsed     = "cpu.used_pct"     // of one CPU for each virtual CPU; of a guest the sum
	CounterSwapWait = "cpu.swapwait_pct" // time that it waited for memory to be swapped in
	CounterDelayed  = "cpu.latency_pct"  // of a guest: time that it wanted to run and did not, or not at full speed (all of the above, hyper-threading, a slower clock)
	// Of a host and, by number, of each of its CPUs.
	CounterUsage = "cpu.usage_pct" // of a host: of all its CPUs
	// Of a guest and of a host.
	CounterBalloon  = "mem.balloon_bytes"  // taken back from guests
	CounterSwapped  = "mem.swapped_bytes"  // swapped out by the hypervisor
	CounterSwapIn   = "mem.swapin_bytes_s" // read back from there
	CounterConsumed = "mem.consumed_bytes" // of the host's memory
	CounterActive   = "mem.active_bytes"   // used lately, as the hypervisor estimates
	CounterGranted  = "mem.granted_bytes"  // mapped to the guest
	CounterMemWait  = "mem.latency_pct"    // time that waited for memory from swap or compression
	CounterFree     = "mem.free_bytes"     // of a host
	// Of a guest (Instance: its NIC's Key, or "" for all) and of a host (its NIC).
	CounterRxBps     = "net.rx_bps"
	CounterTxBps     = "net.tx_bps"
	CounterRxPps     = "net.rx_packets_s"
	CounterTxPps     = "net.tx_packets_s"
	CounterRxDropped = "net.rx_dropped_packets" // in each interval, on the way to a guest or at a NIC
	CounterTxDropped = "net.tx_dropped_packets"
	CounterRxErrors  = "net.rx_errors_packets"
	CounterTxErrors  = "net.tx_errors_packets"
	CounterRxDropPct = "net.rx_dropped_pct" // esxtop's %DRPRX
	CounterTxDropPct = "net.tx_dropped_pct" // esxtop's %DRPTX
	// Of a guest's port at the switch.
	CounterRingFull = "port.rx_ring_full_packets" // the guest's receive ring had no room
	CounterNoBuffer = "port.rx_no_buffer_packets" // it had no buffer at all
	// Of a host: one receive queue of a NIC, as "vmnic0:3"; a thread that moves
	// packets, by its name, which of KVM is of the guest that it works for.
	CounterQueueRx = "queue.rx_packets_s"
	CounterThread  = "thread.used_pct" // of one CPU
)

// Series are the values of one counter over the time of a test.
type Series struct {
	Of       string    `json:"of"`                 // id of a guest or of a host
	Instance string    `json:"instance,omitempty"` // part of it: CPU, NIC, queue, thread; none: all of it
	Counter  string    `json:"counter"`            // one of the list: its name ends with the unit
	Native   string    `json:"native"`             // what the source calls it: "cpu.ready.summation", "%DRPRX"
	EveryNs  int64     `json:"interval_ns"`        // time that a sample covers
	Samples  []Reading `json:"samples"`            // in the order of time
}

// Reading is a value over the interval that ended at a moment.
type Reading struct {
	EndedAt time.Time `json:"ended_at"` // by the clock of who ran the command: the source's was corrected
	Value   float64   `json:"value"`
}

// Within returns the samples whose interval lies within a span of time, where a
// sample may reach out of it by a quarter of itself at either end.
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

// Placement is where an end point is among what an inventory lists.
type Placement struct {
	Source    string   `json:"source"`               // of the inventory
	Guest     string   `json:"guest,omitempty"`      // id; none where the end point is a host itself
	GuestName string   `json:"guest_name,omitempty"` //
	Host      string   `json:"host,omitempty"`       // id of the host that it is on, or that it is
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

// How two end points lie to each other.
const (
	SameMachine = "same machine"      // one end point, or two of one guest
	SameHost    = "same host"         // two guests of one host, or a guest and its host
	SameVLAN    = "same VLAN"         // two hosts, one network
	SameSite    = "same data center"  // two hosts, two networks of one data center
	OtherSite   = "other data center" //
)

// Relation is how two end points of a test lie to each other.
type Relation struct {
	From string `json:"from"`
	To   string `json:"to"`
	Kind string `json:"relation"` // one of the list
	Why  string `json:"because"`  // "both are on esx1", "esx1 and esx2, VLAN 100 of dvs-prod"
}

// FewSamples says of counters that cover so much time each that less than two
// of them fit into a span of a test: what they hold is of other times too. ok
// is false where two fit.
func FewSamples(source string, span, every time.Duration) (n NotChecked, ok bool) {
	if every <= 0 || span >= 2*every {
		return NotChecked{}, false
	}
	return NotChecked{
		Fact: CountersOf(source),
		Why: "the test took " + seconds(span) + ", a sample covers " + seconds(every) +
			": fewer than two lie within it (a test of " + seconds(3*every) + " has two for certain)",
	}, true
}

func seconds(d time.Duration) string {
	return strconv.FormatFloat(d.Round(100*time.Millisecond).Seconds(), 'f', -1, 64) + " s"
}
