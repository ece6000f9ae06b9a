//go:build !linux

package mover

// Room is not known on this system.
func Room(string) (int64, bool) { return 0, false }
