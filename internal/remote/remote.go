// Package remote connects end points and hypervisors by what a person calls them: this machine, a
// joined name, HOST[:PORT], a host of a controller's fleet, a host by ssh (to which thru is copied, and
// where it runs without a file), an ESXi host by its own iperf3, or a server of iperf.
//
// # One end over ssh
//
//  1. sshend.go runs the system's ssh once. A script there (sshfar.go) says what system it is, makes a private folder, takes the program
//     by its exact length, verifies it, and runs `thru attend`.
//  2. attend opens its own program by a descriptor, removes the folder, and serves one client at stdin and stdout (bus.Carry,
//     bus.Over): no port for control, no secret, no file. Data goes to the address that ssh has reached.
//  3. An ESXi host (vmkernel.go) gets another script (vmkernelfar.go): it describes its firewall, this end chooses (esx.Doors), and the script
//     starts the host's own iperf3. From then on it is a foreign end point. What is changed there is noted in a folder before it
//     is changed, for whoever has to undo it.
//  4. No end reads what is meant for another: the script says when it will read, and the control plane begins behind a line that
//     thru prints. Where one dies, the next reads the end of its input and ends.
//
// # A fleet
//
// CONTROLLER/NAME (fleet.go) is one more way to connect an end point. All hosts of a controller share one connection of the process,
// and each is a bus.Client like that of a pair. So package control knows no fleet.
package remote

import (
	"context"
	"io"
	"sync"
	"time"

	"thru/internal/bus"
)

// person hears what connecting does, and is asked where it takes one.
type person interface {
	// Line says what happens, Warn what goes wrong beside it.
	Line(text string)
	Warn(what string, err error)
	// Progress shows what is being done, until it is cleared.
	Progress() progress
	// Asks is where a program writes that asks a person itself; nil: nobody is there.
	Asks() io.Writer
	// Interruptible asks until the context ends.
	Interruptible(ctx context.Context, ask func() (string, error)) (string, error)
}

// progress is a line that says what is being done.
type progress = interface {
	Checking(what string)
	Clear()
}

// Network is what this process has connected to, and may connect to again.
type Network struct {
	person  person
	version string
	fleets  fleets
	parcels parcels
	asking  sync.Mutex // held by the one ssh that may ask a person
}

// New connects for a person.
func New(p person, version string) *Network { return &Network{person: p, version: version} }

// Dialer connects the end points of a command.
type Dialer struct {
	*Network
	Family    int
	Port      int
	Device    string
	Source    string
	DataAddr  string
	Login     func() (*bus.Login, error)                            // who we are, where a foreign end point asks
	Tunes     bool                                                  // settings are changed: what an earlier tuning has left is undone first
	VMkernel  bool                                                  // an ESXi host may answer with its own iperf3
	Firewall  bool                                                  // and a rule set of its firewall be enabled for that
	Password  func(owner string, none error) func() (string, error) // of a hypervisor
	Insecure  bool                                                  // any certificate of a hypervisor is accepted
	Asking    func(ask func() (string, error)) (string, error)      // asks a person for a password; nil: at once
	ReachTime time.Duration                                         // for a hypervisor to answer; 0: reachTime
	Checks    bool                                                  // facts alone are wanted: a system that is read by its own commands is refused
}
