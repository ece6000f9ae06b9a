// Package remote connects end points and hypervisors by the names that users give: this machine, a
// joined name, HOST[:PORT], a host of a controller's fleet, a host by ssh (thru is copied there and
// leaves no file), an ESXi host by its own iperf3, or an iperf server.
//
// # One end over ssh
//
//  1. sshend.go runs the system's ssh once. A script there (sshfar.go) reports the system, makes a private folder, receives the program
//     with its exact length, verifies its checksum, and runs `thru attend`.
//  2. attend opens its own program by a descriptor, removes the folder, and serves one client at stdin and stdout (bus.Carry,
//     bus.Over): no control port, no secret, no file. Data goes to the address that ssh has reached.
//  3. An ESXi host (vmkernel.go) gets another script (vmkernelfar.go): it reports its firewall, this end chooses a port (esx.Doors), and the
//     script starts the host's own iperf3. From then on the host is a foreign end point. Each change is recorded in a folder there before
//     it is made, so that it can be reverted.
//  4. No program reads input meant for another: the script says when it will read, and the control plane begins after a line that
//     thru prints. Where one program dies, the next reads the end of its input and ends.
//
// # A fleet
//
// CONTROLLER/NAME (fleet.go) is another way to connect an end point. All hosts of a controller share one connection of the process,
// and each is a bus.Client like that of a pair. So package control does not know about fleets.
package remote

import (
	"context"
	"io"
	"sync"
	"time"

	"thru/internal/bus"
)

// person shows the user the progress of connecting, and asks for input.
type person interface {
	// Line prints what happens, Warn an error that does not end the command.
	Line(text string)
	Warn(what string, err error)
	// Progress shows the current action, until it is cleared.
	Progress() progress
	// Asks is where a program may write that asks the user itself; nil: there is no user.
	Asks() io.Writer
	// Interruptible calls ask, until the context ends.
	Interruptible(ctx context.Context, ask func() (string, error)) (string, error)
}

// progress is a line with the current action.
type progress = interface {
	Checking(what string)
	Clear()
}

// Network holds the connections of this process that can be reused.
type Network struct {
	person  person
	version string
	fleets  fleets
	own     map[string]func() (Route, error) // to the controller that this process is
	parcels parcels
	asking  sync.Mutex // held by the one ssh process that may ask the user
}

// New returns a Network that talks to a user.
func New(p person, version string) *Network { return &Network{person: p, version: version} }

// Dialer connects the end points of a command.
type Dialer struct {
	*Network
	Family    int
	Port      int
	Device    string
	Source    string
	DataAddr  string
	Login     func() (*bus.Login, error)                            // login for a foreign end point that requires one
	Tunes     bool                                                  // settings are changed: what an earlier tuning left is reverted first
	VMkernel  bool                                                  // an ESXi host may use its own iperf3
	Firewall  bool                                                  // and a rule set of its firewall may be enabled for that
	Password  func(owner string, none error) func() (string, error) // of a hypervisor
	Insecure  bool                                                  // accept any certificate of a hypervisor
	Asking    func(ask func() (string, error)) (string, error)      // asks the user for a password; nil: at once
	ReachTime time.Duration                                         // for a hypervisor to answer; 0: reachTime
	Checks    bool                                                  // only facts are wanted: a system that is read by its own commands is rejected
}
