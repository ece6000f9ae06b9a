package lab

import "thru/lab/wire"

// Inside does something in the host, in this process: a socket that it opens
// is the host's.
func (h *Host) Inside(do func() error) {
	h.lab.t.Helper()
	if err := wire.Inside(netnsDir+h.netns, do); err != nil {
		h.lab.t.Fatalf("lab: in %s: %v", h.Name, err)
	}
}
