package kvm

import (
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"thru/internal/measure"
	"thru/internal/unit"
)

// Folders in which managers keep the definitions of guests. Only root can
// read them.
const (
	libvirtDir = "etc/libvirt/qemu"
	proxmoxDir = "etc/pve/qemu-server"
)

// mostDefined limits how many files of a folder are read.
const mostDefined = 10000

// defined returns the guests that managers define and that do not run.
func (t files) defined(running []process) (guests []measure.Guest, missing []measure.NotChecked) {
	isRunning := func(g *measure.Guest) bool {
		return slices.ContainsFunc(running, func(p process) bool {
			return p.ID == g.ID || g.UUID != "" && p.UUID == g.UUID
		})
	}
	for _, from := range []struct {
		dir, suffix string
		read        func(name string, b []byte) (measure.Guest, error)
	}{{libvirtDir, ".xml", readDomain}, {proxmoxDir, ".conf", readProxmox}} {
		names, err := t.Names(from.dir)
		if err != nil {
			if errors.Is(err, fs.ErrPermission) {
				missing = append(missing, measure.NotChecked{Fact: "guests", Why: "guests that do not run are not known: " + err.Error()})
			}
			continue
		}
		for _, file := range names[:min(len(names), mostDefined)] {
			name, ok := strings.CutSuffix(file, from.suffix)
			if !ok {
				continue
			}
			b, err := t.Read(path.Join(from.dir, file))
			g, rerr := from.read(name, b)
			if err != nil || rerr != nil {
				missing = append(missing, measure.NotChecked{Fact: "guests." + clean(name), Why: fmt.Sprintf("/%s/%s could not be read", from.dir, clean(file))})
				continue
			}
			if g.Host = hostID; !isRunning(&g) {
				guests = append(guests, g)
			}
		}
	}
	return guests, missing
}

// domain is the part of libvirt's definition of a guest that thru reads
// (libvirt.org/formatdomain.html).
type domain struct {
	XMLName xml.Name `xml:"domain"`
	Name    string   `xml:"name"`
	UUID    string   `xml:"uuid"`
	Memory  struct {
		Unit string `xml:"unit,attr"`
		Text string `xml:",chardata"`
	} `xml:"memory"`
	VCPU string `xml:"vcpu"`
	Pins []struct {
		CPU  int    `xml:"vcpu,attr"`
		Host string `xml:"cpuset,attr"`
	} `xml:"cputune>vcpupin"`
	OS struct {
		Firmware string     `xml:"firmware,attr"`
		Loader   attributes `xml:"loader"`
		Type     attributes `xml:"type"`
	} `xml:"os"`
	CPU struct {
		Mode  string `xml:"mode,attr"`
		Model string `xml:"model"`
	} `xml:"cpu"`
	Disks []domainDisk `xml:"devices>disk"`
	NICs  []domainNIC  `xml:"devices>interface"`
}

// attributes are all attributes that thru reads; each element has some of
// them.
type attributes struct {
	Type    string `xml:"type,attr"`
	Machine string `xml:"machine,attr"`
	File    string `xml:"file,attr"`
	Dev     string `xml:"dev,attr"`
	Name    string `xml:"name,attr"`
	Bus     string `xml:"bus,attr"`
	Cache   string `xml:"cache,attr"`
	Bridge  string `xml:"bridge,attr"`
	Network string `xml:"network,attr"`
	Address string `xml:"address,attr"`
	State   string `xml:"state,attr"`
	Queues  int    `xml:"queues,attr"`
	Size    int    `xml:"size,attr"`
}

type domainDisk struct {
	Type      string     `xml:"type,attr"`
	Device    string     `xml:"device,attr"`
	Driver    attributes `xml:"driver"`
	Source    attributes `xml:"source"`
	Target    attributes `xml:"target"`
	Transient *struct{}  `xml:"transient"`
}

type domainNIC struct {
	Type   string     `xml:"type,attr"`
	MAC    attributes `xml:"mac"`
	Source attributes `xml:"source"`
	Model  attributes `xml:"model"`
	Driver attributes `xml:"driver"`
	MTU    attributes `xml:"mtu"`
	Link   attributes `xml:"link"`
}

// readDomain reads a libvirt file of a guest.
func readDomain(name string, b []byte) (measure.Guest, error) {
	var d domain
	if err := xml.Unmarshal(b, &d); err != nil && err != io.EOF {
		return measure.Guest{}, fmt.Errorf("kvm: reading %s.xml: %w", name, err)
	}
	g := measure.Guest{Name: clean(d.Name), UUID: measure.UUID(d.UUID), Power: "off", Hardware: known(d.OS.Type.Machine)}
	if g.Name == "" {
		return g, fmt.Errorf("kvm: reading %s.xml: no name", name)
	}
	g.ID = guestID(g.Name)
	if n, err := strconv.Atoi(strings.TrimSpace(d.VCPU)); err == nil && n > 0 {
		g.CPUs = &n
	}
	in := strings.TrimSuffix(cmp.Or(d.Memory.Unit, "KiB"), "iB")
	if n, ok := size(strings.TrimSpace(d.Memory.Text)+strings.TrimPrefix(in, "bytes"), "B"); ok {
		g.Memory = &n
	}
	g.CPUModel = cmp.Or(known(strings.TrimPrefix(d.CPU.Mode, "custom")), known(strings.TrimSpace(d.CPU.Model)))
	g.Firmware = new("bios")
	if d.OS.Firmware == "efi" || d.OS.Loader.Type == "pflash" {
		g.Firmware = new("efi")
	}
	for _, p := range d.Pins {
		if cpus, err := hostCPUs(p.Host); err == nil && p.CPU >= 0 {
			g.Pins = append(g.Pins, measure.Pin{CPU: p.CPU, Host: cpus})
		}
	}
	for _, x := range d.Disks {
		if disk := x.disk(); disk.Path != nil {
			g.Disks = append(g.Disks, disk)
		}
	}
	for i, x := range d.NICs {
		g.NICs = append(g.NICs, x.nic(i))
	}
	return g, nil
}

// hostCPUs reads libvirt's list of CPUs; a list with exclusions ("0-7,^3") is
// not read.
func hostCPUs(list string) ([]int, error) {
	return unit.ParseList(strings.ReplaceAll(list, " ", ""), unit.MaxCPU)
}

func (x *domainDisk) disk() measure.GuestDisk {
	d := measure.GuestDisk{Name: clean(x.Target.Dev), Adapter: known(x.Target.Bus), Format: known(x.Driver.Type), Cache: known(x.Driver.Cache), Mode: new("persistent")}
	if x.Target.Bus == "virtio" {
		d.Adapter = new("virtio-blk")
	}
	if x.Transient != nil {
		d.Mode = new("nonpersistent")
	}
	where := x.Source.File + x.Source.Dev + x.Source.Name
	d.Path = known(withoutSecrets(where))
	d.Type = known(cmp.Or(map[string]string{"block": "block device"}[x.Type], x.Type))
	if x.Device == "cdrom" {
		d.Type = new("cdrom")
	}
	return d
}

func (x *domainNIC) nic(number int) measure.GuestNIC {
	n := measure.GuestNIC{Name: "net" + strconv.Itoa(number), Model: known(model(x.Model.Type)), MAC: mac(x.MAC.Address)}
	n.Key = n.Name
	n.Network = cmp.Or(known(x.Source.Bridge+x.Source.Network+x.Source.Dev), known(x.Type))
	if x.Type == "bridge" && x.Source.Bridge != "" {
		n.Switch = bridgeID(clean(x.Source.Bridge))
	}
	if x.Driver.Queues > 0 {
		n.Queues = new(x.Driver.Queues)
	}
	if x.MTU.Size > 0 {
		n.MTU = new(x.MTU.Size)
	}
	if x.Link.State != "" {
		n.AtStart = new(x.Link.State == "up")
	}
	return n
}

// readProxmox reads a Proxmox file of a guest (qm.conf(5)): "key: value"
// lines. Lines after "[name]" belong to a snapshot.
func readProxmox(vmid string, b []byte) (measure.Guest, error) {
	if n, err := strconv.ParseUint(vmid, 10, 31); err != nil || n == 0 {
		return measure.Guest{}, fmt.Errorf("kvm: %s.conf does not describe a guest", vmid)
	}
	g := measure.Guest{ID: guestID(vmid), Name: vmid, Power: "off", Firmware: new("bios"), CPUModel: new("kvm64"), Memory: new(int64(512 << 20)), CPUs: new(1)}
	cores, sockets, only := 1, 1, 0
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			break
		}
		key, value, ok := strings.Cut(line, ":")
		if value = strings.TrimSpace(value); !ok || strings.HasPrefix(line, "#") {
			continue
		}
		n, _ := strconv.Atoi(value)
		switch {
		case key == "name":
			g.Name = clean(value)
		case key == "template":
			g.Template = value == "1"
		case key == "cores" && n > 0 && n < 1<<12:
			cores = n
		case key == "sockets" && n > 0 && n < 1<<12:
			sockets = n
		case key == "vcpus" && n > 0:
			only = n
		default:
			proxmoxSetting(&g, key, value)
		}
	}
	*g.CPUs, g.PerSocket = cores*sockets, &cores
	if only > 0 {
		*g.CPUs = min(*g.CPUs, only)
	}
	return g, nil
}

// proxmoxSetting reads a simple setting.
func proxmoxSetting(g *measure.Guest, key, value string) {
	bus := strings.TrimRight(key, "0123456789")
	p := parseProps(value, "first")
	switch {
	case key == "memory":
		if n, ok := size(p.first("first", "current"), "M"); ok {
			g.Memory = &n
		}
	case key == "cpu":
		g.CPUModel = known(p.first("first", "cputype"))
	case key == "machine":
		g.Hardware = known(p.first("first", "type"))
	case key == "bios":
		g.Firmware = new(map[bool]string{true: "efi", false: "bios"}[value == "ovmf"])
	case key == "smbios1":
		g.UUID = measure.UUID(p.get("uuid"))
	case key == "ostype":
		g.OS = known(value)
	case key == "affinity":
		g.Affinity, _ = unit.ParseList(value, unit.MaxCPU)
	case key == "cpulimit":
		if n, err := strconv.ParseFloat(value, 64); err == nil && n > 0 && n < 1<<16 {
			g.CPUQuota = &n
		}
	case bus == "net" && bus != key:
		g.NICs = append(g.NICs, proxmoxNIC(key, p))
	case slices.Contains([]string{"scsi", "virtio", "sata", "ide"}, bus) && bus != key && p.get("media") != "cdrom":
		d := measure.GuestDisk{Name: key, Adapter: &bus, Path: known(p.get("first")), Cache: known(p.get("cache")), Mode: new("persistent")}
		if n, ok := size(p.get("size"), "B"); ok && p.get("size") != "" {
			d.Size = &n
		}
		g.Disks = append(g.Disks, d)
	}
}

// proxmoxNIC reads "virtio=BC:24:11:00:00:01,bridge=vmbr0,firewall=1,tag=100,queues=4".
func proxmoxNIC(name string, p props) measure.GuestNIC {
	n := measure.GuestNIC{Name: name, Key: name, Network: known(p.get("bridge"))}
	n.Model = known(model(p.first("model")))
	n.MAC = mac(p.get("macaddr"))
	for _, x := range p {
		if m := mac(x.value); m != nil && x.key != "macaddr" {
			n.Model, n.MAC = known(model(x.key)), m
		}
	}
	if n.Network != nil {
		n.Switch = bridgeID(*n.Network)
	}
	switch trunks := p.get("trunks"); {
	case trunks != "":
		n.VLAN = known("trunk " + strings.ReplaceAll(trunks, ";", ","))
	default:
		n.VLAN = known(p.get("tag"))
	}
	if q, ok := p.number("queues"); ok && q > 0 {
		n.Queues = &q
	}
	if m, ok := p.number("mtu"); ok && m > 1 {
		n.MTU = &m
	}
	if p.get("link_down") != "" {
		n.AtStart = new(!p.on("link_down") && p.get("link_down") != "1")
	}
	if rate, err := strconv.ParseFloat(p.get("rate"), 64); err == nil && rate > 0 && rate < 1e6 {
		n.Limit = &measure.Shaping{Enabled: new(true), AverageBps: new(int64(rate * 8e6))} // MB/s
	}
	return n
}
