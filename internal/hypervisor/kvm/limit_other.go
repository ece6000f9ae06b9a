//go:build !linux

package kvm

import "errors"

// portLimits has no kernel to ask.
func portLimits(string) (limits, error) {
	return limits{}, errors.New("kvm: only Linux has such disciplines")
}
