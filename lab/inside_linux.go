package lab

import "thru/lab/wire"

// Inside calls a function of this process in the host's namespace: a socket that it opens belongs to the
// host.
func (h *Host) Inside(do func() error) {
	h.lab.t.Helper()
	if err := wire.Inside(netnsDir+h.netns, do); err != nil {
		h.lab.t.Fatalf("lab: in %s: %v", h.Name, err)
	}
}
