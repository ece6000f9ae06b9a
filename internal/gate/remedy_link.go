package gate

import (
	"fmt"
	"slices"
	"strings"
)

// setMTU changes the MTU of an interface.
func setMTU(f *face, mtu int) remedy {
	n := f.nic()
	switch f.host.os {
	case "linux":
		return commands(linkMayFlap+"; "+linkLasts, command("ip link set dev %s mtu %d", n, mtu))
	case "freebsd", "darwin":
		return commands(linkMayFlap+"; "+linkLasts, command("ifconfig %s mtu %d", n, mtu))
	case "windows":
		r := commands(cmdletLasts, command("Set-NetIPInterface -InterfaceAlias %s -NlMtuBytes %d", n, mtu))
		if mtu > 1500 { // the adapter counts the Ethernet header too
			r.lines = append([]string{command("Set-NetAdapterAdvancedProperty -Name %s -RegistryKeyword '*JumboPacket' -RegistryValue %d", n, mtu+layer2Bytes)}, r.lines...)
		}
		return r
	case "solaris", "illumos":
		return commands("the interface must be unplumbed for it; "+dladmLasts,
			command("ipadm disable-if -t %s", n), command("dladm set-linkprop -p mtu=%d %s", mtu, n), command("ipadm enable-if -t %s", n))
	case "esxi":
		r := commands(linkMayFlap+"; "+esxcliLasts, command("esxcli network vswitch standard set -m %d -v %s", mtu, vswitch(f)))
		if f.kind() == "vmkernel" {
			r.lines = append(r.lines, command("esxcli network ip interface set -m %d -i %s", mtu, n))
		}
		return r
	}
	return advise(fmt.Sprintf("set the MTU to %d", mtu))
}

// vswitch is what the interface belongs to.
func vswitch(f *face) string {
	if f.Master == nil {
		return "VSWITCH"
	}
	return *f.Master
}

// device is how FreeBSD's settings name the device of an interface: "dev.vmx.0" of vmx0.
func (n nic) device() string {
	driver := strings.TrimRight(n.name, "0123456789")
	if !plain(n.name, "") || driver == "" || driver == n.name {
		return "dev.DRIVER.UNIT"
	}
	return "dev." + driver + "." + n.name[len(driver):]
}

// loader sets what FreeBSD's network library reads when the driver is loaded
// (iflib(4), loader.conf(5)).
func (n nic) loader(name string, value int) string {
	return fmt.Sprintf("echo '%s.iflib.%s=\"%d\"' >> /boot/loader.conf", n.device(), name, value)
}

// offload is a work that the adapter does for the kernel.
type offload struct {
	name  string // as in Facts, by ethtool
	short string // as ethtool -K takes it
	words string // for people
	soft  bool   // the kernel's own: any interface can have it
}

// offloads that a test wants, in the order in which they are shown.
func offloads() []offload {
	return []offload{
		{"tcp-segmentation-offload", "tso", "TSO", false},
		{"generic-segmentation-offload", "gso", "GSO", true},
		{"generic-receive-offload", "gro", "GRO", true},
		{"scatter-gather", "sg", "scatter-gather", false},
		{"tx-checksumming", "tx", "TX checksum", false},
		{"rx-checksumming", "rx", "RX checksum", false},
	}
}

// offloadsOn switches offloads on. What others need comes first: segmentation
// needs scatter-gather, which needs checksums.
func offloadsOn(f *face, names []string) remedy {
	n := f.nic()
	switch f.host.os {
	case "linux":
		order := []string{"rx", "tx", "sg", "tso", "gso", "gro"}
		slices.SortStableFunc(names, func(a, b string) int { return slices.Index(order, a) - slices.Index(order, b) })
		return commands(linkLasts, command("ethtool -K %s "+strings.Join(names, " on ")+" on", n))
	case "freebsd", "darwin":
		return commands(linkLasts, command("ifconfig %s tso lro txcsum rxcsum", n))
	case "windows":
		return commands(cmdletLasts, command("Enable-NetAdapterLso -Name %s", n), command("Enable-NetAdapterRsc -Name %s", n),
			command("Enable-NetAdapterChecksumOffload -Name %s", n))
	case "solaris":
		return commands("lasts until the next boot", "ndd -set /dev/ip ip_lso_outbound 1")
	case "illumos":
		return ipadmIP("_lso_outbound=1")
	case "esxi":
		return commands(esxcliLasts, "esxcli system settings advanced set -o /Net/UseHwTSO -i 1", "esxcli system settings advanced set -o /Net/UseHwTSO6 -i 1")
	}
	return remedy{}
}

// ipadmIP sets a property of IP on illumos.
func ipadmIP(setting string) remedy {
	return commands(ipadmLasts, "ipadm set-prop -p "+setting+" ip")
}

// lroOff switches LRO off, for a host that passes packets on.
func lroOff(f *face) remedy {
	n := f.nic()
	switch f.host.os {
	case "linux":
		return commands(linkLasts, command("ethtool -K %s lro off", n))
	case "freebsd":
		return commands(linkLasts, command("ifconfig %s -lro", n))
	case "windows":
		return commands(cmdletLasts, command("Disable-NetAdapterRsc -Name %s", n))
	case "esxi":
		return commands(esxcliLasts, "esxcli system settings advanced set -o /Net/Vmxnet3HwLRO -i 0")
	}
	return remedy{}
}

// segmentationOff takes the splitting of what is longer than a packet from the adapter.
func segmentationOff(f *face) remedy {
	n := f.nic()
	switch f.host.os {
	case "linux":
		return commands("more work for the CPU; "+linkLasts, command("ethtool -K %s tso off gso off", n))
	case "freebsd", "darwin":
		return commands("more work for the CPU; "+linkLasts, command("ifconfig %s -tso", n))
	case "windows":
		return commands("more work for the CPU; "+cmdletLasts, command("Disable-NetAdapterLso -Name %s", n))
	case "solaris":
		return commands("more work for the CPU; lasts until the next boot", "ndd -set /dev/ip ip_lso_outbound 0")
	case "illumos":
		return ipadmIP("_lso_outbound=0")
	case "esxi":
		return commands("more work for the CPU; "+esxcliLasts, "esxcli system settings advanced set -o /Net/UseHwTSO -i 0")
	}
	return advise("switch TSO and GSO off")
}

// setQueues gives an interface more queues. kind is what its driver counts:
// "combined" or "rx".
func setQueues(f *face, kind string, count int) remedy {
	n := f.nic()
	switch f.host.os {
	case "linux":
		return commands(linkMayFlap+"; "+linkLasts, command("ethtool -L %s "+kind+" %d", n, count))
	case "freebsd":
		return commands("after the next boot", n.loader("override_nrxqs", count))
	case "windows":
		return commands(cmdletLasts, "netsh int tcp set global rss=enabled", command("Set-NetAdapterRss -Name %s -NumberOfReceiveQueues %d", n, count))
	case "solaris", "illumos":
		return commands(dladmLasts, command("dladm set-linkprop -p rxrings=%d %s", count, n))
	case "esxi":
		return commands("after the next boot; "+esxcliLasts, "esxcli system settings kernel set -s netNetqueueEnabled -v TRUE")
	}
	return remedy{}
}

// spread makes RSS use all queues, and ports as well as addresses.
func spread(f *face, queues int) remedy {
	n := f.nic()
	switch f.host.os {
	case "linux":
		return commands(linkLasts, command("ethtool -X %s equal %d", n, queues), command("ethtool -N %s rx-flow-hash udp4 sdfn", n))
	case "windows":
		return commands(cmdletLasts, command("Enable-NetAdapterRss -Name %s", n))
	}
	return remedy{}
}

// setRing gives a receive queue more descriptors.
func setRing(f *face, count int) remedy {
	n := f.nic()
	switch f.host.os {
	case "linux":
		return commands(linkMayFlap+"; "+linkLasts, command("ethtool -G %s rx %d", n, count))
	case "freebsd":
		return commands("after the next boot", n.loader("override_nrxds", count))
	case "windows":
		return commands(cmdletLasts, command("Set-NetAdapterAdvancedProperty -Name %s -RegistryKeyword '*ReceiveBuffers' -RegistryValue %d", n, count))
	case "esxi":
		return commands(linkMayFlap, command("esxcli network nic ring current set -n %s -r %d", n, count))
	}
	return remedy{}
}
