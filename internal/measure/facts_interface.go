package measure

// Interface describes one network interface. A fact that makes no sense for its kind is left out, also of NotChecked: for software (loopback, veth, bridge,
// bond, VLAN, tunnel ...) everything that only a device has, for an adapter of a hypervisor everything that belongs to a real port or slot. Most facts of a
// device that is down are not read: NotChecked has one line for it, "interfaces.NAME.*".
type Interface struct {
	Name     string   `json:"name"`
	Kind     *string  `json:"kind,omitempty"` // "physical", "virtual function", of a hypervisor "paravirtual" or "emulated", "loopback", or what the kernel calls it: "veth", "bond", "bridge", "vlan", "vxlan"
	MTU      *int     `json:"mtu_bytes,omitempty"`
	MaxMTU   *int     `json:"mtu_max_bytes,omitempty"` // largest MTU that the driver supports
	MAC      *string  `json:"mac,omitempty"`
	Addrs    []string `json:"addresses,omitempty"` // with prefix length
	Up       *bool    `json:"up,omitempty"`
	Carrier  *bool    `json:"carrier,omitempty"` // the link is up
	Driver   *string  `json:"driver,omitempty"`
	Version  *string  `json:"driver_version,omitempty"`
	InTree   *bool    `json:"driver_of_kernel,omitempty"` // the driver is part of this kernel, and was built for it
	Firmware *string  `json:"firmware,omitempty"`         // version of its firmware
	Bus      *string  `json:"bus,omitempty"`
	PCI      *PCI     `json:"pci,omitempty"` // its PCI slot
	SpeedBps *int64   `json:"speed_bps,omitempty"`
	MaxBps   *int64   `json:"speed_max_bps,omitempty"`      // highest speed that it supports
	PeerBps  *int64   `json:"speed_peer_max_bps,omitempty"` // highest speed that the link partner advertises
	Autoneg  *bool    `json:"autonegotiation,omitempty"`    // the speed is negotiated
	Duplex   *string  `json:"duplex,omitempty"`
	Port     *string  `json:"port,omitempty"` // "twisted pair", "fibre", "direct attach", "backplane"
	// Nominal is set where the speed is only a name (veth, virtio, vmxnet3 ...) and does not limit the rate.
	Nominal  *bool             `json:"speed_is_nominal,omitempty"`
	Queues   *int              `json:"rx_queues,omitempty"`
	TxQueues *int              `json:"tx_queues,omitempty"`               // transmit queues in use
	TxLength *int              `json:"tx_queue_length_packets,omitempty"` // txqueuelen
	Offloads map[string]bool   `json:"offloads,omitempty"`                // "tcp-segmentation-offload": true
	Fixed    []string          `json:"offloads_fixed,omitempty"`          // of these, offloads that the driver cannot change
	Channels *Channels         `json:"channels,omitempty"`                // queues in use and supported
	Rings    *Rings            `json:"rings,omitempty"`                   // descriptors per queue
	Coalesce *Coalesce         `json:"coalescing,omitempty"`              // interrupt moderation
	Pause    *Pause            `json:"pause,omitempty"`                   // flow control of the link
	RSS      *RSS              `json:"rss,omitempty"`                     // how flows are spread over queues
	RPS      map[string]string `json:"rps,omitempty"`                     // CPUs (as a list) that process the packets of a receive queue, where set: "rx-0": "0-3"
	XPS      map[string]string `json:"xps,omitempty"`                     // CPUs (as a list) that use a transmit queue, where set
	RFS      *int              `json:"rfs_flows,omitempty"`               // flows that RFS tracks, over all queues
	IRQs     []IRQ             `json:"interrupts,omitempty"`              // its interrupts, and the CPUs that take them
	Counters []QueueCounter    `json:"queue_counters,omitempty"`          // packets of each queue since the driver was loaded
	Errors   map[string]uint64 `json:"error_counters,omitempty"`          // error and drop counters that are not zero, by the driver's or kernel's name
	Qdisc    *string           `json:"qdisc,omitempty"`                   // root queueing discipline; "mq fq_codel" also names the one under mq
	NUMANode *int              `json:"numa_node,omitempty"`               // NUMA node of its slot
	Master   *string           `json:"master,omitempty"`                  // bond, bridge or VRF that it belongs to
	Lower    []string          `json:"lower,omitempty"`                   // interfaces under it; for a bridge those by which its frames may leave the host, for a tunnel none (tunnel.lower)
	Bond     *Bond             `json:"bond,omitempty"`                    // where it is one
	Bridge   *Bridge           `json:"bridge,omitempty"`                  // where it is one
	VLAN     *int              `json:"vlan,omitempty"`                    // VLAN id, where it is one
	Tunnel   *Tunnel           `json:"tunnel,omitempty"`                  // where it is one
}

// PCI is the slot of a device: the negotiated link, and what the device supports (PCI Express; gen 1 is 2.5 GT/s).
type PCI struct {
	Gen       *int     `json:"gen,omitempty"`            // generation of the link, 1 to 6
	Lanes     *int     `json:"lanes,omitempty"`          // lanes of the link
	MaxGen    *int     `json:"gen_max,omitempty"`        // of the device
	MaxLanes  *int     `json:"lanes_max,omitempty"`      // of the device
	SlotGen   *int     `json:"slot_gen_max,omitempty"`   // of the slot: the port upstream of the device
	SlotLanes *int     `json:"slot_lanes_max,omitempty"` // of the slot
	UsableBps *int64   `json:"usable_bps,omitempty"`     // usable rate of the link in each direction (methods.md, formula 7)
	PortsBps  *int64   `json:"ports_bps,omitempty"`      // summed rates of all ports of the card that have a link
	Vendor    string   `json:"vendor_id,omitempty"`      // "0x8086"
	Device    string   `json:"device_id,omitempty"`      // "0x10fb"
	Siblings  []string `json:"siblings,omitempty"`       // other interfaces of the same card
}

// Channels are the queues of an interface (ethtool -l).
type Channels struct {
	RX          int `json:"rx"`           // receive queues alone
	TX          int `json:"tx"`           // transmit queues alone
	Combined    int `json:"combined"`     // queues for both
	RXMax       int `json:"rx_max"`       // supported
	TXMax       int `json:"tx_max"`       // supported
	CombinedMax int `json:"combined_max"` // supported
}

// Rings are the descriptors of one queue (ethtool -g).
type Rings struct {
	RX    int `json:"rx"`     // received packets that wait for the kernel
	TX    int `json:"tx"`     // packets that wait for the wire
	RXMax int `json:"rx_max"` // supported
	TXMax int `json:"tx_max"` // supported
}

// Coalesce is how long an interface collects packets before it interrupts (ethtool -c).
type Coalesce struct {
	AdaptiveRX bool  `json:"adaptive_rx"` // the driver chooses
	AdaptiveTX bool  `json:"adaptive_tx"` // the driver chooses
	RXNs       int64 `json:"rx_ns"`       // longest wait after a received packet
	RXFrames   int   `json:"rx_frames"`   // most packets to collect; 0: unlimited
	TXNs       int64 `json:"tx_ns"`       // longest wait after a sent packet
	TXFrames   int   `json:"tx_frames"`   // most packets to collect; 0: unlimited
}

// Pause is the flow control of a link (IEEE 802.3x; ethtool -a).
type Pause struct {
	Autoneg bool `json:"autonegotiation"` // pause is negotiated
	RX      bool `json:"rx"`              // this end obeys pause frames of the partner
	TX      bool `json:"tx"`              // this end sends pause frames
}

// RSS is how an interface spreads flows over its receive queues (ethtool -x, -n).
type RSS struct {
	Hash   string              `json:"hash,omitempty"`        // hash function: "toeplitz"
	Table  int                 `json:"table_entries"`         // entries of the indirection table
	Queues []int               `json:"entries_by_queue"`      // how many entries point to queue 0, 1, ...
	Fields map[string][]string `json:"hash_fields,omitempty"` // fields hashed for a flow type: "tcp4": ["src-ip","dst-ip","src-port","dst-port"]
}

// IRQ is one interrupt of an interface.
type IRQ struct {
	Number    int              `json:"number"`                 // as in /proc/interrupts
	Name      string           `json:"name"`                   // name of its handler
	Allowed   []int            `json:"cpus_allowed,omitempty"` // CPUs that may take it
	Effective []int            `json:"cpus,omitempty"`         // CPUs that take it
	Counts    map[string]int64 `json:"counts,omitempty"`       // interrupts by CPU since boot; zeros left out
	Shared    []string         `json:"shared_with,omitempty"`  // other devices on the same interrupt
}

// QueueCounter are the packets of one queue.
type QueueCounter struct {
	Queue   string  `json:"queue"`           // "rx-0", "tx-3"
	Packets uint64  `json:"packets"`         // since the driver was loaded
	Bytes   *uint64 `json:"bytes,omitempty"` // the same
	Drops   *uint64 `json:"drops,omitempty"` // the same
}

// Bond is a group of interfaces that act as one.
type Bond struct {
	Mode      string       `json:"mode"`                    // "802.3ad", "active-backup"
	Hash      string       `json:"hash_policy,omitempty"`   // policy that selects a member: "layer2", "layer3+4"
	Active    string       `json:"active_member,omitempty"` // where one member works at a time
	LACP      string       `json:"lacp_rate,omitempty"`     // "slow" or "fast"
	Aggregate *int         `json:"aggregator,omitempty"`    // LACP group in use
	Members   []BondMember `json:"members"`                 // its interfaces
}

// BondMember is an interface of a bond.
type BondMember struct {
	Name      string `json:"name"`                    // name of the interface
	Up        bool   `json:"up"`                      // it carries traffic
	SpeedBps  *int64 `json:"speed_bps,omitempty"`     // its speed
	Aggregate *int   `json:"aggregator,omitempty"`    // LACP group: members outside the bond's group carry no traffic
	Failures  *int64 `json:"link_failures,omitempty"` // since the bond was made
}

// Bridge is a virtual switch of the kernel.
type Bridge struct {
	Ports     []string `json:"ports"`                    // its interfaces
	STP       *bool    `json:"stp,omitempty"`            // spanning tree
	VLANs     *bool    `json:"vlan_filtering,omitempty"` // it filters VLANs
	Netfilter *bool    `json:"calls_iptables,omitempty"` // its frames pass the firewall (br_netfilter)
}

// Tunnel is an interface that encapsulates packets.
type Tunnel struct {
	Kind     string `json:"kind"`                    // "vxlan", "gre", "wireguard", "ipip"
	Local    string `json:"local,omitempty"`         // outer source address
	Remote   string `json:"remote,omitempty"`        // outer destination
	ID       *int64 `json:"id,omitempty"`            // VNI or key
	Overhead int    `json:"overhead_bytes,omitzero"` // headers that it adds to a packet
	Lower    string `json:"lower,omitempty"`         // interface by which the encapsulated packets leave
}
