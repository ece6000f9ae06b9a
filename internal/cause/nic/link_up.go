package nic

import (
	"thru/internal/cause/gate"
	"thru/internal/cause/scene"
)

// LinkUpGate is the gate `link-up`.
func LinkUpGate() gate.Rule {
	return gate.Rule{ID: "link-up", Words: "carrier link up", Title: "Link", About: "whether the interface is up and has a carrier",
		Fails: "the interface of the route is down or has no carrier",
		Why:   "without a link nothing can be measured", Source: "netdevice(7): IFF_UP, IFF_LOWER_UP",
		Fix: "bring the interface up, check cable and switch port", Checklist: []string{"C-24"}, Face: gateLinkUp}
}

func gateLinkUp(f *scene.Face) *gate.Finding {
	if scene.IsLoopback(f.Interface) || f.Member { // the bond covers its members
		return nil
	}
	up := command(f, map[string]string{
		"linux": "ip link set dev %s up", "freebsd": "ifconfig %s up", "darwin": "ifconfig %s up",
		"solaris": "ipadm enable-if -t %s", "illumos": "ipadm enable-if -t %s",
		"windows": "Enable-NetAdapter -Name %s", "esxi": "esxcli network nic up -n %s",
	})
	switch {
	case scene.IsFalse(f.Up):
		return gate.FailIf(f.Firm, "%s is down", f.Name).Do(up)
	case scene.IsFalse(f.Carrier):
		return gate.FailIf(f.Firm, "%s is up, but has no carrier", f.Name).Do(scene.Advise("check cable, optics and the switch port"))
	case f.Up == nil:
		return gate.Missing(f, "whether "+f.Name+" is up", "up")
	case f.Carrier == nil:
		return gate.Pass("%s is up", f.Name)
	}
	return gate.Pass("%s is up, with carrier", f.Name)
}

// command returns this host's command with the interface's name.
func command(f *scene.Face, bySystem map[string]string) scene.Fix {
	if format, ok := bySystem[f.Host.System]; ok {
		return scene.Commands("", scene.Command(format, f.NIC()))
	}
	return scene.Advise(scene.Command("check the settings of %s", f.NIC()))
}
