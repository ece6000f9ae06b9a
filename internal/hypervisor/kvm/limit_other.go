//go:build !linux

package kvm

import "errors"

// portLimits fails: only Linux has these limits.
func portLimits(string) (limits, error) {
	return limits{}, errors.New("kvm: only Linux has such disciplines")
}
