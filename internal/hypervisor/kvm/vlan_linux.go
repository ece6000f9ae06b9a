package kvm

import (
	"fmt"
	"net"

	"github.com/vishvananda/netlink"
)

// bridgeVLANs requests the VLANs that each bridge port admits (rtnetlink(7),
// IFLA_BRIDGE_VLAN_INFO), by interface name.
func bridgeVLANs() (map[string]string, error) {
	list, err := netlink.BridgeVlanList()
	if err != nil {
		return nil, fmt.Errorf("kvm: asking the kernel for the VLANs of bridges: %w", err)
	}
	all := map[string]string{}
	for index, vlans := range list {
		face, err := net.InterfaceByIndex(int(index))
		if err != nil {
			continue // the interface has just gone
		}
		untagged, tagged := 0, []int{}
		for _, v := range vlans {
			if v.PortVID() {
				untagged = int(v.Vid)
			} else {
				tagged = append(tagged, int(v.Vid))
			}
		}
		all[face.Name] = vlanText(untagged, tagged)
	}
	return all, nil
}
