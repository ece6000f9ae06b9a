package measure

// Machine is the hardware that a host runs on, or what its hypervisor shows of it (SMBIOS).
type Machine struct {
	Vendor      string `json:"vendor,omitempty"`       // maker of the machine
	Product     string `json:"product,omitempty"`      // model
	Version     string `json:"version,omitempty"`      // revision of the model
	Board       string `json:"board,omitempty"`        // maker and model of the main board
	UUID        string `json:"uuid,omitempty"`         // UUID of the machine, from the firmware (root only)
	Chassis     string `json:"chassis,omitempty"`      // kind of chassis: "rack mount", "blade", "notebook"
	BIOSVendor  string `json:"bios_vendor,omitempty"`  // maker of the firmware
	BIOSVersion string `json:"bios_version,omitempty"` // version of the firmware
	BIOSDate    string `json:"bios_date,omitempty"`    // date of the firmware, in the firmware's format
	UEFI        *bool  `json:"uefi,omitempty"`         // booted by UEFI, not by a BIOS
}

// Processors describes the CPUs of a host: topology and frequency control.
type Processors struct {
	Sockets    *int     `json:"sockets,omitempty"`           // processor packages
	Cores      *int     `json:"physical_cores,omitempty"`    // cores, of all sockets
	Threads    *int     `json:"threads,omitempty"`           // logical CPUs on line
	Possible   *int     `json:"threads_possible,omitempty"`  // logical CPUs that the machine has, on line or not
	Usable     *int     `json:"usable_cpus,omitempty"`       // logical CPUs that thru may use (affinity, cpuset)
	SMT        *bool    `json:"smt_active,omitempty"`        // hyper-threading is on
	MaxHz      *int64   `json:"max_hz,omitempty"`            // highest clock that the frequency driver allows
	BaseHz     *int64   `json:"base_hz,omitempty"`           // guaranteed clock, or the clock in the model name
	CurrentHz  *int64   `json:"current_hz,omitempty"`        // clock of the fastest core at the reading
	Driver     *string  `json:"frequency_driver,omitempty"`  // frequency driver: "intel_pstate"
	Governors  []string `json:"governors,omitempty"`         // governors in use, each once: "performance"
	Available  []string `json:"governors_known,omitempty"`   // governors that can be chosen
	Preference *string  `json:"energy_preference,omitempty"` // energy-performance preference: "balance_performance"
	Boost      *bool    `json:"boost,omitempty"`             // turbo is allowed
	IdleDriver *string  `json:"idle_driver,omitempty"`       // idle driver: "intel_idle"
	IdleState  *string  `json:"deepest_idle,omitempty"`      // deepest enabled idle state: "C6"
	IdleExit   *int64   `json:"deepest_idle_ns,omitempty"`   // exit latency of that state
	Isolated   []int    `json:"isolated_cpus,omitempty"`     // CPUs kept from the scheduler (isolcpus, nohz_full)
}

// NUMANode is a group of CPUs with their memory.
type NUMANode struct {
	Node  int    `json:"node"`                   // number of the node
	CPUs  []int  `json:"cpus"`                   // its logical CPUs
	Total *int64 `json:"memory_bytes,omitempty"` // its memory
	Free  *int64 `json:"free_bytes,omitempty"`   // its unused memory
}

// RAM is the memory of a host and its use.
type RAM struct {
	Total     *int64  `json:"total_bytes,omitempty"`          // memory of the host
	Available *int64  `json:"available_bytes,omitempty"`      // memory available to programs without swapping
	SwapTotal *int64  `json:"swap_total_bytes,omitempty"`     // swap space
	SwapUsed  *int64  `json:"swap_used_bytes,omitempty"`      // swap space in use
	HugePages *int64  `json:"huge_pages,omitempty"`           // huge pages in the pool
	HugeFree  *int64  `json:"huge_pages_free,omitempty"`      // of these, unused
	HugeSize  *int64  `json:"huge_page_bytes,omitempty"`      // size of one
	THP       *string `json:"transparent_huge,omitempty"`     // transparent huge pages: "always", "madvise", "never"
	Balloon   *int64  `json:"balloon_bytes,omitempty"`        // memory that the hypervisor has reclaimed
	TCPPages  *int64  `json:"tcp_memory_bytes,omitempty"`     // memory of all TCP sockets now
	TCPMax    *int64  `json:"tcp_memory_max_bytes,omitempty"` // limit of the memory of all TCP sockets (tcp_mem)
}

// Cgroup holds the limits of the control groups around thru.
type Cgroup struct {
	Version     int      `json:"version"`                     // 1 or 2
	Path        string   `json:"path,omitempty"`              // group of this process
	QuotaCPUs   *float64 `json:"quota_cpus,omitempty"`        // CPU time per time, in CPUs: the smallest quota of all parent groups; absent: no quota
	MemoryMax   *int64   `json:"memory_max_bytes,omitempty"`  // the smallest limit of all parent groups; absent: no limit
	CPUs        []int    `json:"cpus,omitempty"`              // cpuset
	Periods     *int64   `json:"periods,omitempty"`           // periods of the quota so far
	Throttled   *int64   `json:"throttled_periods,omitempty"` // of these, periods in which the quota was used up
	ThrottledNs *int64   `json:"throttled_ns,omitempty"`      // time for which threads waited for the next period
	Container   string   `json:"container,omitempty"`         // container runtime by its traces: "docker", "podman", "kubernetes", "lxc"
}

// Security names what may slow or deny a program's system calls.
type Security struct {
	SELinux     *string  `json:"selinux,omitempty"`          // "enforcing", "permissive", "disabled"
	AppArmor    *string  `json:"apparmor,omitempty"`         // profile and mode of thru: "unconfined", "thru (enforce)"; "disabled"
	LSMs        []string `json:"security_modules,omitempty"` // modules of the kernel that are active
	Seccomp     *string  `json:"seccomp,omitempty"`          // filter of thru's system calls: "none", "strict", "filter"
	Mitigations *string  `json:"cpu_mitigations,omitempty"`  // "off" where the kernel was started without them
}

// Firewall is the packet filter that every packet passes, and how full its connection table is.
type Firewall struct {
	Tables       *int            `json:"nft_tables,omitempty"`        // tables of nftables
	Chains       *int            `json:"nft_chains,omitempty"`        // base chains (hooks)
	Rules        *int            `json:"nft_rules,omitempty"`         // rules of all chains
	LongestChain *int            `json:"nft_longest_chain,omitempty"` // rules of the longest chain
	Legacy       []string        `json:"iptables_tables,omitempty"`   // tables of the older iptables that are loaded
	LegacyRules  *int            `json:"iptables_rules,omitempty"`    // their entries: rules, and a policy or an end for each chain
	Conntrack    *bool           `json:"conntrack,omitempty"`         // connections of this network namespace are tracked
	Tracked      *int64          `json:"conntrack_entries,omitempty"` // connections that are tracked now
	TrackedMax   *int64          `json:"conntrack_max,omitempty"`     // most that can be
	TrackDrops   *int64          `json:"conntrack_drops,omitempty"`   // packets dropped since the boot because the table was full or the entry could not be inserted
	On           map[string]bool `json:"firewalls,omitempty"`         // whether each firewall is on, by name, on systems other than Linux: "pf", "Windows Public profile"
}

// Clock is the clock source of a host, and its accuracy.
type Clock struct {
	Source       *string  `json:"source,omitempty"`        // clock source: "tsc", "kvm-clock"
	Available    []string `json:"sources,omitempty"`       // clock sources that can be chosen
	Synchronised *bool    `json:"synchronised,omitempty"`  // a time service synchronises it (adjtimex(2))
	MaxErrorNs   *int64   `json:"max_error_ns,omitempty"`  // error bound that the service reports
	OffsetNs     *int64   `json:"offset_ns,omitempty"`     // remaining correction
	DriftPPM     *float64 `json:"frequency_ppm,omitempty"` // correction of the clock's rate
	ReadNs       *int64   `json:"read_cost_ns,omitempty"`  // cost of one reading; some hundred ns where it is a system call
}

// Disk is a block device that a file test could use.
type Disk struct {
	Name       string  `json:"name"`                     // "nvme0n1"
	Model      string  `json:"model,omitempty"`          // maker and model
	SizeBytes  *int64  `json:"size_bytes,omitempty"`     // its size
	Rotational *bool   `json:"rotational,omitempty"`     // a spinning disk
	Scheduler  *string `json:"scheduler,omitempty"`      // I/O scheduler: "none", "mq-deadline"
	Queue      *int    `json:"queue_requests,omitempty"` // requests that its queue holds
	Driver     string  `json:"driver,omitempty"`         // "nvme", "virtio_blk", "sd"
	Mounts     []Mount `json:"mounts,omitempty"`         // file systems on it or its partitions
}

// Mount is a file system.
type Mount struct {
	Path      string `json:"path"`                 // where it is mounted
	Type      string `json:"type"`                 // "ext4", "xfs"
	FreeBytes *int64 `json:"free_bytes,omitempty"` // free for a user
}

// Hypervises shows that this host runs virtual machines or containers and forwards their traffic.
type Hypervises struct {
	Guests int      `json:"guests"`             // virtual machines that are running
	Vhost  int      `json:"vhost_threads"`      // kernel threads that forward guests' packets
	Switch []string `json:"switches,omitempty"` // virtual switches: "bridge br0", "openvswitch"
}

// Load is what the host does without a test of thru: other use of the CPUs and the links.
type Load struct {
	SpanNs     int64           `json:"length_ns"`                      // observation time
	CPUPct     *float64        `json:"cpu_pct,omitempty"`              // of the whole machine
	BusiestCPU *int            `json:"busiest_core,omitempty"`         // number of the busiest CPU
	BusiestPct *float64        `json:"busiest_core_pct,omitempty"`     // its utilization
	StealPct   *float64        `json:"steal_pct,omitempty"`            // time that the hypervisor gave to other guests, of the whole machine
	StealBoot  *float64        `json:"steal_since_boot_pct,omitempty"` // the same since boot
	Throttled  *int64          `json:"throttled_periods,omitempty"`    // periods of the cgroup's quota that were used up
	Squeezed   *int64          `json:"softnet_squeezed,omitempty"`     // times that the kernel ran out of budget for packets
	Dropped    *int64          `json:"softnet_dropped,omitempty"`      // packets dropped because the backlog was full
	VhostPct   *float64        `json:"busiest_vhost_pct,omitempty"`    // the busiest thread that forwards guests' packets, of one CPU
	Interfaces []InterfaceLoad `json:"interfaces,omitempty"`           // traffic of each interface that carried any
	Top        []ProcessLoad   `json:"processes,omitempty"`            // the busiest processes, without thru's own
}

// InterfaceLoad is the traffic of one interface.
type InterfaceLoad struct {
	Name  string  `json:"name"`   // name of the interface
	RxBps float64 `json:"rx_bps"` // received
	TxBps float64 `json:"tx_bps"` // sent
}

// ProcessLoad is a process and the CPU time that it took.
type ProcessLoad struct {
	PID    int     `json:"pid"`     // number of the process
	Name   string  `json:"name"`    // name of its program
	CPUPct float64 `json:"cpu_pct"` // of one CPU
}
