// Package tune changes settings of this host, and can always undo it: each
// change is written to a journal on disk, and synced, before it is made; it is
// read back afterwards; and the journal alone is enough to bring back every
// value, after a crash or a boot too.
//
// What can be set is package knob's list. Linux is changed; on other systems
// the knobs are printed as commands (package knob) and nothing is changed here.
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
