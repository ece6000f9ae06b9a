package lab

import "thru/lab/wire"

// Inside does something in the host's namespace, such as opening a socket,
// which then stays there.
func (h *Host) Inside(do func() error) error { return wire.Inside(netnsDir+h.netns, do) }
