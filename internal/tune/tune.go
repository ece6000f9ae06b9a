// Package tune changes settings of this host, and can always undo it: each
// change is written to a journal on disk, and synced, before it is made; it is
// read back afterwards; and the journal alone is enough to bring back every
// value, after a crash or a boot too.
//
// What can be set is package knob's list. Linux is changed; on other systems
// the knobs are printed as commands (package knob) and nothing is changed here.
//
// # One tuning
//
//  1. `thru tune` (control/tune.go) reads the hosts and what can be set there (Machine), measures each direction, and diagnoses. cause.Propose
//     orders the changes that findings and gates ask for, what binds first.
//  2. Each change is tried alone: the agent's Tuner writes it to the journal, sets it, and reads it back; knob.InForce shows from the
//     traffic that it has its effect. Runs with it and without it alternate (the same A/B as a plan's variants), at a level that all changes of the
//     tuning share. A change that is not shown to improve is undone at once. After one that is kept all begins anew, since the
//     bottleneck has moved.
//  3. Whoever dies, the host ends as before: the agent undoes the tuning of a client that is gone; where the agent dies, a guard beside it
//     does (Guard); where both die, the journal is enough (`thru tune --rollback`). What somebody else has changed meanwhile is
//     never overwritten.
//
// What cannot be undone exactly is not set. The value that is read of a setting must bring back all that setting it can move: of
// an offload it is what was asked for, not what is active, since the kernel keeps one off without another and gives it back with that. An MTU
// that would take addresses along, a queueing discipline of somebody else, and a route that expires are refused.
package tune

import (
	"errors"
	"fmt"

	"thru/internal/fault"
	"thru/internal/measure"
)

// Machine reads and sets the knobs of a host. Values are text, in one form: what
// Read gives can be given to Set, and a Set that worked is what Read then gives.
type Machine interface {
	// Knobs lists those of the host and of the interfaces named, with their values;
	// one that is not there (the file, the driver's answer) is left out.
	Knobs(interfaces []string) []measure.KnobState
	// Read tells the value of one; errUnknown (wrapped) where it is not there.
	Read(knob, iface string) (string, error)
	// Set changes one. An error leaves it as it was, or as Read then tells.
	Set(knob, iface, value string) error
}

// Errors that callers tell apart, wrapped by what is returned.
var (
	ErrUnknown = errors.New("there is no such knob here")
	ErrForeign = fault.Because(fault.Foreign, errors.New("somebody else has changed it meanwhile"))
	ErrTaken   = fault.Because(fault.Taken, errors.New("this host is being tuned by another"))
)

// errElsewhere is ErrTaken by a process whose journals are in another folder: what
// is in this one is not its own.
var errElsewhere = fmt.Errorf("%w, with another state folder", ErrTaken)
