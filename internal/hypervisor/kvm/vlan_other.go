//go:build !linux

package kvm

import "errors"

// bridgeVLANs has no kernel to ask.
func bridgeVLANs() (map[string]string, error) {
	return nil, errors.New("kvm: only Linux has such bridges")
}
