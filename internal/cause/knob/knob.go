// Package knob lists what can be set on a host to make a path carry more. For each knob it has the description,
// equivalents on other platforms, requirements and risks, the commands to read, set and undo it manually on each
// platform, how to make it persistent, and how it shows that it is in force. It changes nothing itself (package
// tune does), and makes no judgement (package advise does).
//
// docs/knobs.md is generated from it.
package knob

// Scope is what a knob belongs to.
type Scope string

// Scopes.
const (
	OfHost      Scope = "host"      // one value for the whole host (or network namespace)
	OfInterface Scope = "interface" // one for each interface, or route
	OfTest      Scope = "test"      // an option of a test: needs no privilege, changes no host
)

// Role is what a host does with the data of a direction.
type Role string

// Roles.
const (
	Sender   Role = "sender"
	Receiver Role = "receiver"
)

// Ids of the knobs. They are stable: journals, results and the lists of agents contain them.
const (
	TCPRmem         = "tcp-rmem"              // three numbers: minimum, default and maximum receive buffer of TCP, bytes
	TCPWmem         = "tcp-wmem"              // the same of the send buffer
	RmemMax         = "rmem-max"              // largest receive buffer that a program may request, bytes
	WmemMax         = "wmem-max"              // the same of the send buffer
	WindowScaling   = "window-scaling"        // "0" or "1"
	SACK            = "sack"                  // "0" or "1"
	Timestamps      = "timestamps"            // "0", "1" or "2"
	MTUProbing      = "mtu-probing"           // "0", "1" or "2"
	Congestion      = "congestion-control"    // name; for new connections of the host
	RouteCongestion = "route-congestion"      // name; for connections over one route, "" for none; Setting.Interface names the route: "10.0.0.0/24 dev eth0 table main metric 0" (a default is "0.0.0.0/0" or "::/0")
	DefaultQdisc    = "default-qdisc"         // name; for interfaces that come up later
	Qdisc           = "qdisc"                 // name of the interface's root discipline, if the kernel chose it or thru made it: "fq", "noqueue", "mq"; with its handle ("htb 1:") if somebody else did, which thru leaves alone
	SlowStartIdle   = "slow-start-after-idle" // "0" or "1"
	NoMetricsSave   = "no-metrics-save"       // "0" or "1"
	Backlog         = "netdev-max-backlog"    // packets
	Budget          = "netdev-budget"         // packets a softirq round
	MTU             = "mtu"                   // bytes
	TSO             = "tso"                   // "on" or "off", as for all offloads: the requested state of its features, even if a dependency keeps them off now; if only some of several are requested, each: "on tx-tcp-segmentation=on tx-tcp6-segmentation=off"
	GSO             = "gso"
	GRO             = "gro"
	LRO             = "lro"
	TXChecksum      = "tx-checksum"
	RXChecksum      = "rx-checksum"
	ScatterGather   = "scatter-gather"
	RXRing          = "rx-ring"      // descriptors
	TXRing          = "tx-ring"      // descriptors
	Channels        = "channels"     // "combined 4", or "rx 2 tx 2"; here and below a value to set may name some of the elements, and the others stay
	Coalescing      = "coalescing"   // "adaptive-rx on adaptive-tx off rx-usecs 50 rx-frames 0 tx-usecs 50 tx-frames 0"
	RSSHash         = "rss-hash"     // fields hashed of TCP and UDP over IPv4 and IPv6, as "tcp4 sdfn tcp6 sdfn udp4 sd", by the letters of ethtool -N; "-" for none
	RSSTable        = "rss-table"    // queues of the indirection table's entries, as "0 1 2 3 0 1 ..."
	RPS             = "rps"          // CPUs of each receive queue, as "rx-0 3 rx-1 3" (masks as in /sys, without leading zeros: "1,00000000")
	XPS             = "xps"          // CPUs of each transmit queue
	IRQAffinity     = "irq-affinity" // CPUs of each interrupt, as "24 0-1 25 2-3"
	Governor        = "cpu-governor" // one name, as "performance", or per CPU if they differ: "cpu0 powersave cpu1 performance"
	TxQueueLen      = "txqueuelen"   // packets
	Pause           = "pause"        // "autoneg on rx on tx on"

	Streams        = "streams" // options of a test
	Window         = "window"
	Length         = "length"
	Lean           = "lean"
	TestCongestion = "test-congestion"
	CPUAffinity    = "cpu-affinity"
)

// Knob is one setting.
type Knob struct {
	ID        string
	Scope     Scope
	Role      Role     // of the host, if it acts on one direction only: data that it sends, or receives; empty: on both
	Title     string   // a noun: "receive buffer of TCP"
	About     string   // what it does, a sentence
	Linux     string   // its name on Linux: "net.ipv4.tcp_rmem", "ethtool -K tso"
	Needs     string   // "root (CAP_NET_ADMIN)"; "nothing"
	Effect    string   // expected gain, with a figure
	Source    string   // of the effect: RFC, kernel document, a measured reference
	Risk      string   // possible side effects
	Cuts      bool     // the connection to the host may be cut or the link go down
	Verify    string   // how it shows that it is in force, in addition to reading it back
	shows     shown    // the same by a test's counters; none: no counter shows it
	Checklist []string // lines of the checklist that it covers
}

// Systems returns the systems for which By has commands. On Linux thru can set the knobs itself.
func Systems() []string {
	return []string{"linux", "freebsd", "darwin", "windows", "solaris", "illumos", "esxi"}
}
