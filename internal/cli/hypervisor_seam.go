package cli

import (
	"context"

	"thru/internal/fault"
	"thru/internal/hypervisor"
)

// hypervisor stands in until URLs lead to sources.
func (d dialer) hypervisor(_ context.Context, at string) (hypervisor.Source, error) {
	return nil, fault.Failf("", "cli: %s: not here yet", at)
}
