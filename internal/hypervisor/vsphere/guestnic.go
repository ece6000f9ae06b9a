package vsphere

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/vmware/govmomi/vim25/types"

	"thru/internal/measure"
)

// takeNICs reads a machine's virtual network adapters. It sets the ids of
// their networks; join adds the rest.
func takeNICs(g *measure.Guest, r *reader, devices []types.BaseVirtualDevice) {
	for _, d := range devices {
		b, is := d.(types.BaseVirtualEthernetCard)
		if !is {
			continue
		}
		card := b.GetVirtualEthernetCard()
		if card == nil {
			continue
		}
		nic := measure.GuestNIC{Name: label(&card.VirtualDevice), Key: strconv.Itoa(int(card.Key)),
			Model: nicModel(b), MAC: word(strings.ToLower(card.MacAddress))}
		if nic.MAC == nil {
			r.gap("nics."+nic.Name+".mac", noReason)
		}
		if c := card.Connectable; c != nil {
			nic.Connected, nic.AtStart = &c.Connected, &c.StartConnected
		}
		if a := card.ResourceAllocation; a != nil && a.Limit != nil && *a.Limit >= 0 { // Mb/s, by Network I/O Control
			nic.IOLimit = &measure.Shaping{Enabled: new(true), AverageBps: new(*a.Limit * 1_000_000)}
		}
		takeBacking(&nic, g.Host, card.Backing)
		g.NICs = append(g.NICs, nic)
	}
}

// takeBacking reads what an adapter is connected to.
func takeBacking(nic *measure.GuestNIC, host string, backing types.BaseVirtualDeviceBackingInfo) {
	switch b := backing.(type) {
	case *types.VirtualEthernetCardNetworkBackingInfo:
		nic.Network = word(b.DeviceName)
		if host != "" && b.DeviceName != "" {
			nic.PortGroup = standardID(host, b.DeviceName)
		}
	case *types.VirtualEthernetCardDistributedVirtualPortBackingInfo:
		nic.PortGroup, nic.Port, nic.Switch = b.Port.PortgroupKey, word(b.Port.PortKey), b.Port.SwitchUuid
	case *types.VirtualEthernetCardOpaqueNetworkBackingInfo:
		nic.Network = word(b.OpaqueNetworkId)
	}
}

// standardID returns the id of a standard switch or port group: each host has
// its own, and the API identifies them by name only.
func standardID(host, name string) string { return host + "/" + name }

// label returns the name that people see.
func label(d *types.VirtualDevice) string {
	if d.DeviceInfo != nil {
		if i := d.DeviceInfo.GetDescription(); i != nil && i.Label != "" {
			return i.Label
		}
	}
	return fmt.Sprintf("device %d", d.Key)
}

// nicModel returns the model that the guest sees, by the driver's name.
func nicModel(card types.BaseVirtualEthernetCard) *string {
	kind := strings.ToLower(strings.TrimPrefix(kindOf(card), "Virtual")) // "vmxnet3", "e1000e"
	other := map[string]string{"vmxnet3vrdma": "vrdma", "sriovethernetcard": "sriov"}[kind]
	return new(cmp.Or(other, kind))
}

// takeAddrs reads the addresses that VMware Tools report.
func takeAddrs(g *measure.Guest, r *reader, tools string) {
	n := len(r.gaps)
	list, _ := value[types.ArrayOfGuestNicInfo](r, "addresses", "guest.net", tools)
	for _, i := range list.GuestNicInfo {
		addrs := i.IpAddress
		if len(addrs) == 0 && i.IpConfig != nil {
			for _, a := range i.IpConfig.IpAddress {
				addrs = append(addrs, a.IpAddress)
			}
		}
		for _, a := range addrs {
			at, err := netip.ParseAddr(a)
			if err != nil {
				continue
			}
			text := at.WithZone("").String()
			if nic := nicOf(g, &i); nic != nil {
				nic.Addrs = append(nic.Addrs, text)
			}
			if !slices.Contains(g.Addrs, text) {
				g.Addrs = append(g.Addrs, text)
			}
		}
	}
	if a := r.text("", "guest.ipAddress", ""); a != nil && len(g.Addrs) == 0 {
		g.Addrs = []string{*a}
	}
	switch {
	case len(g.Addrs) > 0:
		r.gaps = r.gaps[:n]
	case len(r.gaps) == n:
		r.gap("addresses", tools)
	}
}

// nicOf returns the adapter that VMware Tools report on: by its key, or by
// its MAC where the key is unknown (-1: an interface of the guest's own).
func nicOf(g *measure.Guest, i *types.GuestNicInfo) *measure.GuestNIC {
	for n := range g.NICs {
		nic := &g.NICs[n]
		if nic.Key == strconv.Itoa(int(i.DeviceConfigId)) {
			return nic
		}
	}
	for n := range g.NICs {
		nic := &g.NICs[n]
		if nic.MAC != nil && i.MacAddress != "" && strings.EqualFold(*nic.MAC, i.MacAddress) {
			return nic
		}
	}
	return nil
}
