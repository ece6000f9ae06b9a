//go:build !linux

package kvm

import "errors"

// bridgeVLANs fails: only Linux has it.
func bridgeVLANs() (map[string]string, error) {
	return nil, errors.New("kvm: only Linux has such bridges")
}
