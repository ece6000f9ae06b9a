// Package tune changes settings of this host and can always undo them: it
// writes each change to a journal on disk, synced, before making it, and reads
// the value back afterwards. The journal alone suffices to restore every value,
// even after a crash or a boot.
//
// Package knob lists the settings. Only Linux is changed; for other systems
// package knob prints the commands, and nothing is changed here.
//
// # One tuning
//
//  1. `thru tune` (control/tune.go) reads the hosts and their knobs (Machine), measures each direction, and diagnoses. cause.Propose
//     orders the changes that findings and gates ask for: first the change for the limit that binds now.
//  2. Each change is tried alone: the agent's Tuner writes it to the journal, sets it, and reads it back; knob.InForce verifies its
//     effect in the traffic. Runs with and without it alternate (the same A/B as a plan's variants), at a level that all changes of the
//     tuning share. A change without a proven improvement is undone at once. After a change that is kept, step 1 begins
//     anew, since the bottleneck has moved.
//  3. Whichever process dies, the host ends as before: the agent undoes the tuning of a client that is gone; where the agent dies, its guard
//     process does (Guard); where both die, the journal suffices (`thru tune --rollback`). tune never overwrites what somebody else has
//     changed meanwhile.
//
// tune does not set what it cannot undo exactly. The value read of a setting must restore everything that setting it can move. For an offload
// that is the requested state, not the active one, since the kernel turns a feature off with its prerequisite and on again with it. tune refuses
// an MTU that would remove addresses, a queueing discipline of somebody else, and a route that expires.
package tune

import (
	"errors"
	"fmt"

	"thru/internal/fault"
	"thru/internal/measure"
)

// Machine reads and sets the knobs of a host. Values are text in one canonical
// form: Set accepts what Read returns, and Read returns what Set has set.
type Machine interface {
	// Knobs lists the knobs of the host and of the given interfaces, with their
	// values, without those that do not exist here (no file, or not supported).
	Knobs(interfaces []string) []measure.KnobState
	// Read returns the value of a knob; ErrUnknown (wrapped) where it does not exist.
	Read(knob, iface string) (string, error)
	// Set changes a knob. After an error it is as before, or as Read returns.
	Set(knob, iface, value string) error
}

// Errors that callers distinguish; the returned errors wrap them.
var (
	ErrUnknown = errors.New("this host has no such knob")
	ErrForeign = fault.Because(fault.Foreign, errors.New("another program or user has changed it"))
	ErrTaken   = fault.Because(fault.Taken, errors.New("another client is tuning this host"))
)

// errElsewhere is ErrTaken by a process with another state folder: the journals
// in this one are not its own.
var errElsewhere = fmt.Errorf("%w, with another state folder", ErrTaken)
