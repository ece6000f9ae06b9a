// Package hypervisor defines the sources of facts about the hypervisors of a
// test's end points: a vCenter, an ESXi host, or a Linux host that runs QEMU.
// A source reports the configuration of a virtual machine, its host, and the
// host's counters, in the types of package measure. Each kind of source has a
// subpackage; hypervisortest is the contract that all of them keep.
//
// # One inventory
//
// remote/hypervisor.go makes a Source of a URL: vsphere (vCenter or ESXi by its web service), esx (by its commands over ssh), or
// control.AgentSource, for which an agent reads its own host (kvm). Package report prints tables and a fact sheet of each host
// and guest. place/observe.go finds anomalies in the settings.
//
// # One test with hypervisors
//
//  1. Before the traffic, control/hypervisors.go asks the sources of --hypervisor for the machines that the end points may be. Package
//     place matches them (UUID, MAC, address), reports the placement of two end points, and fills the rungs of a ladder.
//  2. The counters of these machines and their hosts are watched over all runs. Their samples are on the clock of the end that
//     runs the command, and so is the measured time of each run (Run.Span): only samples within it count.
//  3. Any failure here is a warning, never an error.
package hypervisor

import (
	"context"
	"time"

	"thru/internal/measure"
)

// Source is a connected source. It only reads. It may be used by many
// goroutines; every call ends with its context.
type Source interface {
	// Name returns the user's name for the source, without secrets.
	Name() string

	// Inventory reads guests, hosts, networks and datastores. want chooses guests
	// by their identity: id, name, UUIDs, power, adapters' MACs and addresses
	// (other fields may be missing in the call); nil chooses all guests and all
	// hosts. A choice has the chosen guests, their hosts, the hosts that hosts
	// chooses (nil: no others) by id, name, UUID and the addresses and MACs of
	// their interfaces, and the networks and datastores of both.
	// NotChecked names what could not be read; an error means that nothing
	// could, and has a hint.
	Inventory(ctx context.Context, want func(*measure.Guest) bool, hosts func(*measure.GuestHost) bool) (measure.Inventory, error)

	// Watch starts reading counters of guests and hosts, by their ids in the
	// inventory. End reports unknown ids. The end of the context ends the watch,
	// even without a call of End; a later End returns what was counted until then.
	Watch(ctx context.Context, ids []string) (Watch, error)

	// Close ends the session.
	Close() error
}

// Watch is a running reading of counters.
type Watch interface {
	// End returns what was counted between Watch and now. Where counters come
	// late, End waits until the last sample reaches until now or the context ends,
	// and reports what did not come. It is called once.
	End(ctx context.Context) ([]measure.Series, []measure.NotChecked)
}

// Pause waits; it is false where the context ends before.
func Pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
