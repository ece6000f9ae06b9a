//go:build darwin || freebsd || windows

package store

// onNetwork is not known there: a file is taken to be on a local disk.
func onNetwork(string) bool { return false }
