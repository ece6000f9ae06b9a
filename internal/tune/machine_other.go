//go:build !linux

package tune

// New returns this machine. Nothing is set on this system: package knob has the
// commands for it.
func New() Machine { return &machine{link: anyLink} }
