package gate

import ()

// MoreTracked doubles the table.
func MoreTracked(h *Host) Remedy {
	if h.System != "linux" {
		return Remedy{}
	}
	r := Sysctls(h, "net.netfilter.nf_conntrack_max="+twice(*h.Firewall.TrackedMax))
	return r.Risking("can be set in the host's own network namespace only (of a container: at its host); " + r.Risk)
}
