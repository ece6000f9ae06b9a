package vsphere

import (
	"testing"

	"github.com/vmware/govmomi/simulator"

	"thru/internal/hypervisor"
	"thru/internal/hypervisor/hypervisortest"
)

// TestContract runs the contract of all sources on vCenter and ESXi.
func TestContract(t *testing.T) {
	for name, model := range map[string]func() *simulator.Model{"vcenter": small, "esxi": simulator.ESX} {
		t.Run(name, func(t *testing.T) {
			cfg := simulated(t, model(), nil)
			hypervisortest.Suite{Secrets: []string{"hush-7f3a"}, Open: func(t *testing.T) hypervisor.Source {
				c, err := Dial(t.Context(), cfg)
				if err != nil {
					t.Fatal(err)
				}
				return c
			}}.Run(t)
		})
	}
}

// small is a vCenter with a cluster of two hosts.
func small() *simulator.Model {
	m := simulator.VPX()
	m.Host, m.ClusterHost = 0, 2
	return m
}
