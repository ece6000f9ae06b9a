package measure

import "time"

// Kinds of a source of inventories.
const (
	KindVSphere = "vsphere" // vCenter or one ESXi host, by its web service
	KindESXi    = "esxi"    // one ESXi host, by its commands over ssh
	KindKVM     = "kvm"     // one Linux host that runs QEMU, by an agent there
)

// Inventory is what a hypervisor, or who manages many, says of virtual
// machines, hosts and networks; in the result of a test only what lies below
// its end points, with counters over its time. Ids are the source's own
// ("vm-42", "host-9") and unique within the inventory; what refers to
// something carries its id. A nil field of an item stands in its NotChecked
// with the reason.
type Inventory struct {
	Source      string            `json:"source"`                   // as it was asked, without secrets: "vsphere://ro@vc.example"
	Kind        string            `json:"kind"`                     // "vsphere", "esxi", "kvm"
	Product     string            `json:"product,omitempty"`        // "VMware vCenter Server 8.0.3 build-24022515", "QEMU 9.2 on Debian GNU/Linux 13"
	ReadAt      time.Time         `json:"read_at"`                  // by the clock of who ran the command
	ClockNs     *int64            `json:"clock_ahead_ns,omitempty"` // of the source, ahead of the clock of who ran the command
	Guests      []Guest           `json:"guests,omitempty"`
	Hosts       []GuestHost       `json:"hosts,omitempty"`
	Switches    []VirtualSwitch   `json:"switches,omitempty"`
	PortGroups  []SwitchPortGroup `json:"port_groups,omitempty"`
	Datastores  []Datastore       `json:"datastores,omitempty"`
	GuestsTotal *int              `json:"guests_total,omitempty"` // that the source has, where Guests are some of them
	HostsTotal  *int              `json:"hosts_total,omitempty"`  // the same of Hosts
	Series      []Series          `json:"series,omitempty"`       // of a test: counters over its time
	NotChecked  []NotChecked      `json:"not_checked,omitempty"`
}

// Guest is a virtual machine: what it is made of (C-08).
type Guest struct {
	ID           string            `json:"id"`
	Name         string            `json:"name"`
	Host         string            `json:"host,omitempty"`          // id of the host that it is on
	Site         string            `json:"datacenter,omitempty"`    // name of its data center
	Cluster      string            `json:"cluster,omitempty"`       // name
	Folder       string            `json:"folder,omitempty"`        // path of folders
	Pool         string            `json:"resource_pool,omitempty"` // name
	UUID         string            `json:"uuid,omitempty"`          // of SMBIOS, as its own system shows it: lower case with hyphens
	InstanceUUID string            `json:"instance_uuid,omitempty"` // that the manager knows it by
	Power        string            `json:"power,omitempty"`         // "on", "off", "suspended"
	Template     bool              `json:"template,omitempty"`
	OS           *string           `json:"os,omitempty"`         // that it is configured for
	OSRuns       *string           `json:"os_running,omitempty"` // that its tools report
	Hostname     *string           `json:"hostname,omitempty"`   // that its tools report
	Addrs        []string          `json:"addresses,omitempty"`  // that its tools report
	Tools        *GuestTools       `json:"tools,omitempty"`
	Hardware     *string           `json:"hardware_version,omitempty"` // "vmx-19", "pc-q35-9.2"
	Firmware     *string           `json:"firmware,omitempty"`         // "bios", "efi"
	CPUs         *int              `json:"cpus,omitempty"`             // virtual CPUs
	PerSocket    *int              `json:"cores_per_socket,omitempty"`
	CPUModel     *string           `json:"cpu_model,omitempty"` // that it is shown, where that is chosen: "host", "Skylake-Server"
	Memory       *int64            `json:"memory_bytes,omitempty"`
	CPUShare     *Allocation       `json:"cpu_allocation,omitempty"`      // in Hz; of KVM in Hz of nothing: see CPUQuota
	MemoryShare  *Allocation       `json:"memory_allocation,omitempty"`   // in bytes
	CPUQuota     *float64          `json:"cpu_quota_cpus,omitempty"`      // of KVM: CPUs' worth of time that its control group allows; absent: none
	Affinity     []int             `json:"cpu_affinity,omitempty"`        // CPUs of the host that it may use; absent: all
	Pins         []Pin             `json:"cpu_pins,omitempty"`            // CPUs of the host that each virtual CPU may use, where that is set
	Latency      *string           `json:"latency_sensitivity,omitempty"` // "normal", "high"
	HotAddCPU    *bool             `json:"cpu_hot_add,omitempty"`         // hides the NUMA nodes from it
	NUMANodes    []int             `json:"numa_nodes,omitempty"`          // that it is bound to
	Disks        []GuestDisk       `json:"disks,omitempty"`
	NICs         []GuestNIC        `json:"nics,omitempty"`
	Advanced     map[string]string `json:"advanced,omitempty"` // settings that bear on its traffic, by the hypervisor's names: "ethernet0.ctxPerDev"
	PID          *int              `json:"pid,omitempty"`      // of KVM: its process; of ESXi: its world
	Threads      []GuestThread     `json:"threads,omitempty"`  // of KVM: what moves its packets and runs its CPUs
	NotChecked   []NotChecked      `json:"not_checked,omitempty"`
}

// Allocation is what of a resource is kept for a guest, what it may have at
// most, and its weight where it is short.
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

// GuestTools are the hypervisor's helpers in a guest.
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
	Path       *string `json:"path,omitempty"`               // where it lies
	Datastore  string  `json:"datastore,omitempty"`          // id
	LimitIOPS  *int64  `json:"limit_operations_s,omitempty"` // where there is a limit
	LimitBytes *int64  `json:"limit_bytes_per_s,omitempty"`  // where there is a limit
	Shares     *int64  `json:"shares,omitempty"`             //
	Cache      *string `json:"cache,omitempty"`              // of KVM: "none", "writeback"
}

// GuestNIC is a virtual adapter.
type GuestNIC struct {
	Name      string          `json:"name"`                // "Network adapter 1", "net0"
	Key       string          `json:"key,omitempty"`       // by which counters name it: "4000", a tap
	Model     *string         `json:"model,omitempty"`     // "vmxnet3", "e1000", "e1000e", "pcnet32", "virtio", "rtl8139", "sriov"
	MAC       *string         `json:"mac,omitempty"`       // lower case
	Connected *bool           `json:"connected,omitempty"` //
	AtStart   *bool           `json:"connected_at_start,omitempty"`
	PortGroup string          `json:"port_group,omitempty"`    // id
	Switch    string          `json:"switch,omitempty"`        // id, where there is no port group: a bridge
	Network   *string         `json:"network,omitempty"`       // name of port group or bridge
	VLAN      *string         `json:"vlan,omitempty"`          // "0", "100", "trunk 1-10", "private 5", where the port has one of its own
	Port      *string         `json:"port,omitempty"`          // of the switch
	Addrs     []string        `json:"addresses,omitempty"`     // that its tools report
	Device    *string         `json:"host_device,omitempty"`   // interface of the host behind it: "tap0", "vnet3"
	Uplink    *string         `json:"uplink,omitempty"`        // physical NIC that carries its traffic now (C-37)
	Queues    *int            `json:"queues,omitempty"`        //
	Vhost     *bool           `json:"vhost,omitempty"`         // of KVM: packets are moved in the kernel
	Offloads  map[string]bool `json:"offloads,omitempty"`      // that the adapter offers, where the hypervisor switches them
	Limit     *Shaping        `json:"limit,omitempty"`         // of this port alone: of what the guest sends
	LimitIn   *Shaping        `json:"limit_receive,omitempty"` // the same of what it receives
	IOLimit   *Shaping        `json:"io_limit,omitempty"`      // of the adapter, by Network I/O Control: of what the guest sends, whatever its port allows
	MTU       *int            `json:"mtu_bytes,omitempty"`     // of the interface of the host behind it
}

// GuestThread is a thread of the host that works for one guest.
type GuestThread struct {
	TID  int    `json:"tid"`
	Name string `json:"name"`           // "CPU 0/KVM", "vhost-1234"
	Role string `json:"role"`           // "vcpu", "vhost", "io", "other"
	CPU  *int   `json:"cpu,omitempty"`  // number of the virtual CPU
	CPUs []int  `json:"cpus,omitempty"` // of the host that it may use; absent: all
}

// GuestHost is a host that runs virtual machines (C-07). Its facts are those of
// any host; switches and VMkernel ports are interfaces there too.
type GuestHost struct {
	ID          string         `json:"id"`
	Name        string         `json:"name"`
	UUID        string         `json:"uuid,omitempty"`       // of its SMBIOS
	Site        string         `json:"datacenter,omitempty"` // name
	Cluster     string         `json:"cluster,omitempty"`    // name
	State       *string        `json:"state,omitempty"`      // "connected", "disconnected", "not responding"
	Maintenance *bool          `json:"maintenance,omitempty"`
	Guests      *int           `json:"guests_running,omitempty"`
	CPUsHanded  *int           `json:"guest_cpus,omitempty"`         // virtual CPUs of the guests that run
	MemHanded   *int64         `json:"guest_memory_bytes,omitempty"` // memory of the guests that run
	Facts       *Facts         `json:"facts,omitempty"`
	Ports       []VMkernelPort `json:"vmkernel_ports,omitempty"`
	PCI         []PCIDevice    `json:"pci_devices,omitempty"` // adapters of networks and storage, and what else is no part of the board
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

// VMkernelPort is an address of an ESXi host itself, with what it is for.
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

// VirtualSwitch moves packets between guests and uplinks: a vSwitch, a
// distributed switch, a bridge.
type VirtualSwitch struct {
	ID         string            `json:"id"`
	Name       string            `json:"name"`
	Kind       string            `json:"kind"`            // "standard", "distributed", "bridge", "openvswitch"
	Host       string            `json:"host,omitempty"`  // id; none of a distributed one
	Hosts      []string          `json:"hosts,omitempty"` // ids, of a distributed one
	Version    *string           `json:"version,omitempty"`
	MTU        *int              `json:"mtu_bytes,omitempty"`
	Ports      *int              `json:"ports,omitempty"`
	Uplinks    []Uplink          `json:"uplinks,omitempty"`
	NIOC       *bool             `json:"network_io_control,omitempty"`       // bandwidth is shared out by it
	NIOCPools  map[string]string `json:"network_io_control_pools,omitempty"` // what of the bandwidth each kind of traffic has: "virtualMachine": "shares 100 (high), no limit"
	Teaming    *Teaming          `json:"teaming,omitempty"`
	ShapeIn    *Shaping          `json:"shaping_in,omitempty"`  // of what guests receive; only distributed ones have it
	ShapeOut   *Shaping          `json:"shaping_out,omitempty"` // of what guests send
	Security   *PortSecurity     `json:"security,omitempty"`
	Snooping   *bool             `json:"multicast_snooping,omitempty"`
	VLANs      *bool             `json:"vlan_filtering,omitempty"` // of a bridge
	NotChecked []NotChecked      `json:"not_checked,omitempty"`
}

// Uplink is a physical NIC of a switch.
type Uplink struct {
	Host string `json:"host,omitempty"` // id
	NIC  string `json:"nic"`
	Name string `json:"name,omitempty"` // of the distributed switch's uplink port
}

// Teaming is how traffic is spread over uplinks.
type Teaming struct {
	Policy  string   `json:"policy,omitempty"` // "originating port", "ip hash", "mac hash", "explicit", "load based"
	Active  []string `json:"active,omitempty"`
	Standby []string `json:"standby,omitempty"`
}

// Shaping is a rate that a switch holds a port to.
type Shaping struct {
	Enabled    *bool  `json:"enabled,omitempty"`
	AverageBps *int64 `json:"average_bps,omitempty"`
	PeakBps    *int64 `json:"peak_bps,omitempty"`
	Burst      *int64 `json:"burst_bytes,omitempty"`
}

// PortSecurity is what a switch lets a guest do.
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
	Host       string        `json:"host,omitempty"`       // id; none of a distributed one
	VLAN       *string       `json:"vlan,omitempty"`       // "0", "100", "trunk 1-10", "private 5"
	Uplinks    bool          `json:"of_uplinks,omitempty"` // of a distributed switch: no guest is here
	Teaming    *Teaming      `json:"teaming,omitempty"`
	ShapeIn    *Shaping      `json:"shaping_in,omitempty"`  // of what guests receive
	ShapeOut   *Shaping      `json:"shaping_out,omitempty"` // of what guests send
	Security   *PortSecurity `json:"security,omitempty"`
	NotChecked []NotChecked  `json:"not_checked,omitempty"`
}

// Datastore is where virtual disks lie.
type Datastore struct {
	ID      string   `json:"id"`
	Name    string   `json:"name"`
	Site    string   `json:"datacenter,omitempty"` // name
	Type    *string  `json:"type,omitempty"`       // "VMFS-6", "NFS-4.1", "vsan"
	Size    *int64   `json:"size_bytes,omitempty"`
	Free    *int64   `json:"free_bytes,omitempty"`
	Local   *bool    `json:"local,omitempty"` // to one host
	SSD     *bool    `json:"ssd,omitempty"`
	Devices []string `json:"devices,omitempty"` // extents, or server and folder
}

// Guest returns the one of that id, or nil.
func (v *Inventory) Guest(id string) *Guest {
	return byID(v, id, func(v *Inventory) []Guest { return v.Guests }, func(g *Guest) string { return g.ID })
}

// Host returns the one of that id, or nil.
func (v *Inventory) Host(id string) *GuestHost {
	return byID(v, id, func(v *Inventory) []GuestHost { return v.Hosts }, func(h *GuestHost) string { return h.ID })
}

// Switch returns the one of that id, or nil.
func (v *Inventory) Switch(id string) *VirtualSwitch {
	return byID(v, id, func(v *Inventory) []VirtualSwitch { return v.Switches }, func(s *VirtualSwitch) string { return s.ID })
}

// PortGroup returns the one of that id, or nil.
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
