package measure

import "time"

// Kinds of an inventory's source.
const (
	KindVSphere = "vsphere" // vCenter or one ESXi host, over its web service
	KindESXi    = "esxi"    // one ESXi host, by commands over ssh
	KindKVM     = "kvm"     // one Linux host that runs QEMU, by its agent
)

// Inventory lists the virtual machines, hosts and networks that a hypervisor or its manager reports. In the result of a test it holds only those of its end
// points, with counters over the time of the test. Ids are the source's own ("vm-42", "host-9") and unique within the inventory; items refer to each other by
// id. A nil field of an item has its reason in the item's NotChecked.
type Inventory struct {
	Source      string            `json:"source"`                   // as given, without secrets: "vsphere://ro@vc.example"
	Kind        string            `json:"kind"`                     // "vsphere", "esxi", "kvm"
	Product     string            `json:"product,omitempty"`        // "VMware vCenter Server 8.0.3 build-24022515", "QEMU 9.2 on Debian GNU/Linux 13"
	ReadAt      time.Time         `json:"read_at"`                  // by the controller's clock
	ClockNs     *int64            `json:"clock_ahead_ns,omitempty"` // clock of the source minus the controller's clock
	Guests      []Guest           `json:"guests,omitempty"`
	Hosts       []GuestHost       `json:"hosts,omitempty"`
	Switches    []VirtualSwitch   `json:"switches,omitempty"`
	PortGroups  []SwitchPortGroup `json:"port_groups,omitempty"`
	Datastores  []Datastore       `json:"datastores,omitempty"`
	GuestsTotal *int              `json:"guests_total,omitempty"` // guests that the source has, where Guests holds only some
	HostsTotal  *int              `json:"hosts_total,omitempty"`  // hosts that the source has, likewise
	Series      []Series          `json:"series,omitempty"`       // for a test: counters over its time
	NotChecked  []NotChecked      `json:"not_checked,omitempty"`
}

// Guest is a virtual machine and its configuration (C-08).
type Guest struct {
	ID           string            `json:"id"`
	Name         string            `json:"name"`
	Host         string            `json:"host,omitempty"`          // id of its host
	Site         string            `json:"datacenter,omitempty"`    // name of its data center
	Cluster      string            `json:"cluster,omitempty"`       // name
	Folder       string            `json:"folder,omitempty"`        // path of folders
	Pool         string            `json:"resource_pool,omitempty"` // name
	UUID         string            `json:"uuid,omitempty"`          // of SMBIOS, as its own system shows it: lower case with hyphens
	InstanceUUID string            `json:"instance_uuid,omitempty"` // by which the manager identifies it
	Power        string            `json:"power,omitempty"`         // "on", "off", "suspended"
	Template     bool              `json:"template,omitempty"`
	OS           *string           `json:"os,omitempty"`         // configured system
	OSRuns       *string           `json:"os_running,omitempty"` // system that its tools report
	Hostname     *string           `json:"hostname,omitempty"`   // that its tools report
	Addrs        []string          `json:"addresses,omitempty"`  // that its tools report
	Tools        *GuestTools       `json:"tools,omitempty"`
	Hardware     *string           `json:"hardware_version,omitempty"` // "vmx-19", "pc-q35-9.2"
	Firmware     *string           `json:"firmware,omitempty"`         // "bios", "efi"
	CPUs         *int              `json:"cpus,omitempty"`             // virtual CPUs
	PerSocket    *int              `json:"cores_per_socket,omitempty"`
	CPUModel     *string           `json:"cpu_model,omitempty"` // model shown to the guest, where that is configured: "host", "Skylake-Server"
	Memory       *int64            `json:"memory_bytes,omitempty"`
	CPUShare     *Allocation       `json:"cpu_allocation,omitempty"`      // in Hz; for KVM without a unit: see CPUQuota
	MemoryShare  *Allocation       `json:"memory_allocation,omitempty"`   // in bytes
	CPUQuota     *float64          `json:"cpu_quota_cpus,omitempty"`      // for KVM: CPU time per time that its control group allows, in CPUs; absent: no quota
	Affinity     []int             `json:"cpu_affinity,omitempty"`        // CPUs of the host that it may use; absent: all
	Pins         []Pin             `json:"cpu_pins,omitempty"`            // CPUs of the host that each virtual CPU may use, where that is set
	Latency      *string           `json:"latency_sensitivity,omitempty"` // "normal", "high"
	HotAddCPU    *bool             `json:"cpu_hot_add,omitempty"`         // hides the NUMA nodes from the guest
	NUMANodes    []int             `json:"numa_nodes,omitempty"`          // NUMA nodes that it is bound to
	Disks        []GuestDisk       `json:"disks,omitempty"`
	NICs         []GuestNIC        `json:"nics,omitempty"`
	Advanced     map[string]string `json:"advanced,omitempty"` // settings that affect its traffic, by the hypervisor's names: "ethernet0.ctxPerDev"
	PID          *int              `json:"pid,omitempty"`      // for KVM: its process; for ESXi: its world
	Threads      []GuestThread     `json:"threads,omitempty"`  // for KVM: threads that forward its packets and run its CPUs
	NotChecked   []NotChecked      `json:"not_checked,omitempty"`
}

// Allocation is the reservation and the limit of a resource for a guest, and its weight under contention.
type Allocation struct {
	Reserved *int64  `json:"reserved,omitempty"` // Hz or bytes
	Limited  *bool   `json:"limited,omitempty"`  // there is a limit
	Limit    *int64  `json:"limit,omitempty"`    // Hz or bytes, where there is one
	Shares   *int64  `json:"shares,omitempty"`
	Level    *string `json:"shares_level,omitempty"` // "low", "normal", "high", "custom"
}

// Pin binds a virtual CPU to CPUs of the host.
type Pin struct {
	CPU  int   `json:"cpu"`
	Host []int `json:"host_cpus"`
}

// GuestTools are the guest tools of the hypervisor, such as VMware Tools.
type GuestTools struct {
	Version *string `json:"version,omitempty"`
	Status  *string `json:"status,omitempty"` // "current", "old", "not installed", "unmanaged"
	Running *bool   `json:"running,omitempty"`
}

// GuestDisk is a virtual disk.
type GuestDisk struct {
	Name       string  `json:"name"`                         // "Hard disk 1", "drive-virtio0"
	Adapter    *string `json:"adapter,omitempty"`            // "pvscsi", "lsilogic", "nvme", "virtio-blk"
	Type       *string `json:"type,omitempty"`               // "flat", "raw device", "file", "block device"
	Format     *string `json:"format,omitempty"`             // "thin", "thick", "thick eager zeroed", "qcow2", "raw"
	Mode       *string `json:"mode,omitempty"`               // "persistent", "nonpersistent", "independent persistent", ...
	Size       *int64  `json:"size_bytes,omitempty"`         //
	Created    *string `json:"created,omitempty"`            // how: "of its own", "clone of PATH", "snapshot of PATH"
	Path       *string `json:"path,omitempty"`               // path of its file or device
	Datastore  string  `json:"datastore,omitempty"`          // id
	LimitIOPS  *int64  `json:"limit_operations_s,omitempty"` // where there is a limit
	LimitBytes *int64  `json:"limit_bytes_per_s,omitempty"`  // where there is a limit
	Shares     *int64  `json:"shares,omitempty"`             //
	Cache      *string `json:"cache,omitempty"`              // for KVM: "none", "writeback"
}

// GuestNIC is a virtual adapter.
type GuestNIC struct {
	Name      string          `json:"name"`                // "Network adapter 1", "net0"
	Key       string          `json:"key,omitempty"`       // instance name in counters: "4000", a tap
	Model     *string         `json:"model,omitempty"`     // "vmxnet3", "e1000", "e1000e", "pcnet32", "virtio", "rtl8139", "sriov"
	MAC       *string         `json:"mac,omitempty"`       // lower case
	Connected *bool           `json:"connected,omitempty"` //
	AtStart   *bool           `json:"connected_at_start,omitempty"`
	PortGroup string          `json:"port_group,omitempty"`    // id
	Switch    string          `json:"switch,omitempty"`        // id, where there is no port group: a bridge
	Network   *string         `json:"network,omitempty"`       // name of port group or bridge
	VLAN      *string         `json:"vlan,omitempty"`          // "0", "100", "trunk 1-10", "private 5", where the port has its own setting
	Port      *string         `json:"port,omitempty"`          // port of the switch
	Addrs     []string        `json:"addresses,omitempty"`     // that its tools report
	Device    *string         `json:"host_device,omitempty"`   // host interface behind it: "tap0", "vnet3"
	Uplink    *string         `json:"uplink,omitempty"`        // physical NIC that carries its traffic now (C-37)
	Queues    *int            `json:"queues,omitempty"`        //
	Vhost     *bool           `json:"vhost,omitempty"`         // for KVM: the kernel forwards its packets
	Offloads  map[string]bool `json:"offloads,omitempty"`      // offloads of the adapter, where the hypervisor can switch them
	Limit     *Shaping        `json:"limit,omitempty"`         // rate limit of this port alone, for what the guest sends
	LimitIn   *Shaping        `json:"limit_receive,omitempty"` // the same for what it receives
	IOLimit   *Shaping        `json:"io_limit,omitempty"`      // limit of the adapter by Network I/O Control, for what the guest sends, in addition to that of its port
	MTU       *int            `json:"mtu_bytes,omitempty"`     // of the host interface behind it
}

// GuestThread is a thread of the host that works for one guest.
type GuestThread struct {
	TID  int    `json:"tid"`
	Name string `json:"name"`           // "CPU 0/KVM", "vhost-1234"
	Role string `json:"role"`           // "vcpu", "vhost", "io", "other"
	CPU  *int   `json:"cpu,omitempty"`  // number of the virtual CPU
	CPUs []int  `json:"cpus,omitempty"` // CPUs of the host that it may use; absent: all
}

// GuestHost is a host that runs virtual machines (C-07). Its facts are those of any host; they list switches and VMkernel ports as interfaces.
type GuestHost struct {
	ID          string         `json:"id"`
	Name        string         `json:"name"`
	UUID        string         `json:"uuid,omitempty"`       // of its SMBIOS
	Site        string         `json:"datacenter,omitempty"` // name
	Cluster     string         `json:"cluster,omitempty"`    // name
	State       *string        `json:"state,omitempty"`      // "connected", "disconnected", "not responding"
	Maintenance *bool          `json:"maintenance,omitempty"`
	Guests      *int           `json:"guests_running,omitempty"`
	CPUsHanded  *int           `json:"guest_cpus,omitempty"`         // virtual CPUs of the running guests
	MemHanded   *int64         `json:"guest_memory_bytes,omitempty"` // memory of the running guests
	Facts       *Facts         `json:"facts,omitempty"`
	Ports       []VMkernelPort `json:"vmkernel_ports,omitempty"`
	PCI         []PCIDevice    `json:"pci_devices,omitempty"` // network and storage adapters, and other devices that are not part of the board
	Datastores  []string       `json:"datastores,omitempty"`  // ids
	NotChecked  []NotChecked   `json:"not_checked,omitempty"`
}

// PCIDevice is a card or a part of one in a slot of a host.
type PCIDevice struct {
	Slot   string `json:"slot"`             // address: "0000:3b:00.0"
	Vendor string `json:"vendor,omitempty"` // name
	Name   string `json:"name,omitempty"`   //
	Class  string `json:"class,omitempty"`  // "network", "storage", "display", "accelerator"
}

// VMkernelPort is an address of an ESXi host itself, with its services.
type VMkernelPort struct {
	Device    string   `json:"device"`               // "vmk0"
	PortGroup string   `json:"port_group,omitempty"` // id
	Network   *string  `json:"network,omitempty"`    // name of the port group
	MTU       *int     `json:"mtu_bytes,omitempty"`
	MAC       *string  `json:"mac,omitempty"`
	Addrs     []string `json:"addresses,omitempty"` // with prefix length
	Stack     *string  `json:"netstack,omitempty"`  // "defaultTcpipStack", "vmotion"
	TSO       *bool    `json:"tso,omitempty"`
	Services  []string `json:"services,omitempty"` // "management", "vmotion", "vsan", "faultToleranceLogging" ...
}

// VirtualSwitch forwards packets between guests and uplinks: a vSwitch, a distributed switch, a bridge.
type VirtualSwitch struct {
	ID         string            `json:"id"`
	Name       string            `json:"name"`
	Kind       string            `json:"kind"`            // "standard", "distributed", "bridge", "openvswitch"
	Host       string            `json:"host,omitempty"`  // id; none for a distributed one
	Hosts      []string          `json:"hosts,omitempty"` // ids, for a distributed one
	Version    *string           `json:"version,omitempty"`
	MTU        *int              `json:"mtu_bytes,omitempty"`
	Ports      *int              `json:"ports,omitempty"`
	Uplinks    []Uplink          `json:"uplinks,omitempty"`
	NIOC       *bool             `json:"network_io_control,omitempty"`       // it shares out the bandwidth
	NIOCPools  map[string]string `json:"network_io_control_pools,omitempty"` // bandwidth share of each traffic type: "virtualMachine": "shares 100 (high), no limit"
	Teaming    *Teaming          `json:"teaming,omitempty"`
	ShapeIn    *Shaping          `json:"shaping_in,omitempty"`  // for what guests receive; only distributed switches have it
	ShapeOut   *Shaping          `json:"shaping_out,omitempty"` // for what guests send
	Security   *PortSecurity     `json:"security,omitempty"`
	Snooping   *bool             `json:"multicast_snooping,omitempty"`
	VLANs      *bool             `json:"vlan_filtering,omitempty"` // for a bridge
	NotChecked []NotChecked      `json:"not_checked,omitempty"`
}

// Uplink is a physical NIC of a switch.
type Uplink struct {
	Host string `json:"host,omitempty"` // id
	NIC  string `json:"nic"`
	Name string `json:"name,omitempty"` // of the distributed switch's uplink port
}

// Teaming is how a switch spreads traffic over its uplinks.
type Teaming struct {
	Policy  string   `json:"policy,omitempty"` // "originating port", "ip hash", "mac hash", "explicit", "load based"
	Active  []string `json:"active,omitempty"`
	Standby []string `json:"standby,omitempty"`
}

// Shaping is the rate limit of a switch port.
type Shaping struct {
	Enabled    *bool  `json:"enabled,omitempty"`
	AverageBps *int64 `json:"average_bps,omitempty"`
	PeakBps    *int64 `json:"peak_bps,omitempty"`
	Burst      *int64 `json:"burst_bytes,omitempty"`
}

// PortSecurity is what a switch allows a guest.
type PortSecurity struct {
	Promiscuous *bool `json:"promiscuous,omitempty"`
	Forged      *bool `json:"forged_transmits,omitempty"`
	MACChanges  *bool `json:"mac_changes,omitempty"`
}

// SwitchPortGroup is a network that guests are connected to.
type SwitchPortGroup struct {
	ID         string        `json:"id"`
	Name       string        `json:"name"`
	Switch     string        `json:"switch,omitempty"`     // id
	Host       string        `json:"host,omitempty"`       // id; none for a distributed one
	VLAN       *string       `json:"vlan,omitempty"`       // "0", "100", "trunk 1-10", "private 5"
	Uplinks    bool          `json:"of_uplinks,omitempty"` // uplink port group of a distributed switch: it has no guests
	Teaming    *Teaming      `json:"teaming,omitempty"`
	ShapeIn    *Shaping      `json:"shaping_in,omitempty"`  // for what guests receive
	ShapeOut   *Shaping      `json:"shaping_out,omitempty"` // for what guests send
	Security   *PortSecurity `json:"security,omitempty"`
	NotChecked []NotChecked  `json:"not_checked,omitempty"`
}

// Datastore holds virtual disks.
type Datastore struct {
	ID      string   `json:"id"`
	Name    string   `json:"name"`
	Site    string   `json:"datacenter,omitempty"` // name
	Type    *string  `json:"type,omitempty"`       // "VMFS-6", "NFS-4.1", "vsan"
	Size    *int64   `json:"size_bytes,omitempty"`
	Free    *int64   `json:"free_bytes,omitempty"`
	Local   *bool    `json:"local,omitempty"` // local to one host
	SSD     *bool    `json:"ssd,omitempty"`
	Devices []string `json:"devices,omitempty"` // extents, or server and folder
}

// Guest returns the guest of that id, or nil.
func (v *Inventory) Guest(id string) *Guest {
	return byID(v, id, func(v *Inventory) []Guest { return v.Guests }, func(g *Guest) string { return g.ID })
}

// Host returns the host of that id, or nil.
func (v *Inventory) Host(id string) *GuestHost {
	return byID(v, id, func(v *Inventory) []GuestHost { return v.Hosts }, func(h *GuestHost) string { return h.ID })
}

// Switch returns the switch of that id, or nil.
func (v *Inventory) Switch(id string) *VirtualSwitch {
	return byID(v, id, func(v *Inventory) []VirtualSwitch { return v.Switches }, func(s *VirtualSwitch) string { return s.ID })
}

// PortGroup returns the port group of that id, or nil.
func (v *Inventory) PortGroup(id string) *SwitchPortGroup {
	return byID(v, id, func(v *Inventory) []SwitchPortGroup { return v.PortGroups }, func(p *SwitchPortGroup) string { return p.ID })
}

func byID[T any](v *Inventory, id string, list func(*Inventory) []T, of func(*T) string) *T {
	if v == nil || id == "" {
		return nil
	}
	all := list(v)
	for i := range all {
		if of(&all[i]) == id {
			return &all[i]
		}
	}
	return nil
}
