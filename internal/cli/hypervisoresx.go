package cli

import (
	"context"

	"thru/internal/fault"
	"thru/internal/host/platform"
	"thru/internal/hypervisor"
	"thru/internal/hypervisor/esx"
)

// esxSource is an ESXi host that is read by its commands.
func esxSource(ctx context.Context, r platform.Runner, at string) (hypervisor.Source, error) {
	system, err := platform.Detect(ctx, r)
	if err != nil {
		return nil, err
	}
	if system == "esxi" {
		return esx.New(r, at), nil
	}
	return nil, fault.Usagef(hypervisorForms, "cli: %s runs %s, on which thru lists no virtual machines", at, system)
}
